"""The fault matrix's tools on a real broker: each fault takes effect and ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from support.faults.broker import FaultyBroker
from support.faults.worker_group import read

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyBroker]:
    made = FaultyBroker(tmp_path_factory.mktemp("broker"))
    try:
        made.start()
        yield made
    finally:
        made.close()


class Sending:
    """A producer through the proxy and the acknowledged records."""

    def __init__(self, broker: FaultyBroker, topic: str) -> None:
        self.producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True, "linger.ms": 0})
        self.topic = topic
        self.acknowledged = 0

    def send(self, text: str) -> None:
        self.producer.produce(self.topic, text, on_delivery=self._delivered)

    def left_after(self, seconds: float) -> int:
        return self.producer.flush(seconds)

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        self.acknowledged += error is None


def values(broker: FaultyBroker, topic: str) -> list[bytes | None]:
    return [message.value for message in read(broker.address, topic)]


@pytest.mark.long
def test_advertised_listeners_send_clients_through_the_proxy(broker: FaultyBroker) -> None:
    # Metadata requested from the broker directly names the proxy as well.
    direct = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"}).list_topics(timeout=20)
    assert [node.port for node in direct.brokers.values()] == [broker.proxy.port]


@pytest.mark.long
@pytest.mark.parametrize("fault", ["cut", "drop", "freeze"])
def test_a_producer_stalls_during_a_fault_and_continues_after_it(broker: FaultyBroker, fault: str) -> None:
    sending = Sending(broker, f"stalls-{fault}")
    sending.send("before")
    assert sending.left_after(30) == 0
    {"cut": broker.proxy.cut, "drop": broker.proxy.drop, "freeze": broker.freeze}[fault]()
    try:
        sending.send("during")
        assert sending.left_after(2) == 1
        assert sending.acknowledged == 1
    finally:
        broker.thaw() if fault == "freeze" else broker.proxy.restore()
    assert sending.left_after(60) == 0
    assert values(broker, sending.topic) == [b"before", b"during"]


@pytest.mark.long
def test_a_killed_broker_restarts_with_its_data_and_address(broker: FaultyBroker) -> None:
    sending = Sending(broker, "killed")
    sending.send("before")
    assert sending.left_after(30) == 0
    broker.kill()
    assert not broker.status().running
    sending.send("during")
    assert sending.left_after(1) == 1
    broker.start()
    assert sending.left_after(60) == 0
    assert values(broker, sending.topic) == [b"before", b"during"]


@pytest.mark.long
def test_the_next_producer_with_a_transactional_id_fences_a_transaction(broker: FaultyBroker) -> None:
    config = {"bootstrap.servers": broker.address, "transactional.id": "fenced"}
    old, new = Producer(config), Producer(config)
    old.init_transactions(30)
    old.begin_transaction()
    old.produce("fencing", "old")
    assert old.flush(30) == 0
    new.init_transactions(30)
    with pytest.raises(KafkaException):
        old.commit_transaction(30)
    new.begin_transaction()
    new.produce("fencing", "new")
    new.commit_transaction(30)
    assert values(broker, "fencing") == [b"new"]
