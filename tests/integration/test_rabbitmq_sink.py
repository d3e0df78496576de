"""The RabbitMQ sink on a real server: messages, what is refused, confirms, and a server that blocks, is full, or is away."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.rabbitmq import RabbitSinkConnector
from sluiceway.connectors.rabbitmq.sink import RabbitSinkTask
from sluiceway.data import STRING_SCHEMA, Header
from sluiceway.errors import ConfigError, ConnectError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext
from sluiceway.testing import SinkConnectorContract
from support.engine import RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.rabbitmq_server import RabbitServer
from support.sink_tasks import put_until_taken

pytestmark = pytest.mark.kafka

KINDS = ["classic", "quorum"]


@pytest.fixture(scope="module")
def server() -> Iterator[RabbitServer]:
    with closing(RabbitServer()) as server:
        server.start()
        yield server


@pytest.fixture
def queue(server: RabbitServer, unique: Callable[[str], str]) -> str:
    name = unique("queue")
    server.declare(name)
    return name


class Running:
    """A task without Kafka."""

    def __init__(self, server: RabbitServer, key: str, **more: str) -> None:
        given = {name.replace("_", "."): value for name, value in more.items()}
        self.config = {"name": "n", **server.config, "rabbitmq.routing.key": key, **given}
        self.context = MemorySinkContext(self.config)
        self.task = RabbitSinkTask()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def put(self, *records: SinkRecord) -> None:
        put_until_taken(self.task, self.context, records)

    @property
    def reasons(self) -> list[str]:
        return [str(error) for _record, error in self.context.reported]

    @property
    def connections(self) -> float:
        return self.task.metrics()["connections-opened"]


@pytest.fixture
def start(server: RabbitServer, queue: str) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def start(key: str = queue, **more: str) -> Running:
        made.append(Running(server, key, **more))
        return made[-1]

    yield start
    for each in made:
        each.task.stop()


Start = Callable[..., Running]


def record(offset: int, value: Any, key: Any = None, **more: Any) -> SinkRecord:
    return SinkRecord("t", 0, offset, value, None, key, None, **more)


def bodies(server: RabbitServer, queue: str) -> list[bytes]:
    return [body for _properties, body in server.take(queue)]


def test_values_are_bodies_of_persistent_messages(start: Start, server: RabbitServer, queue: str) -> None:
    start(rabbitmq_content_type="text/plain").put(
        *(record(number, value) for number, value in enumerate(["ä", b"\xff", 7, True, 1.5, Decimal("1.10"), ""]))
    )
    found = server.take(queue)
    assert [body for _properties, body in found] == ["ä".encode(), b"\xff", b"7", b"true", b"1.5", b"1.10", b""]
    assert {(each.delivery_mode, each.content_type, each.headers) for each, _body in found} == {(2, "text/plain", None)}


def test_messages_can_be_transient(start: Start, server: RabbitServer, queue: str) -> None:
    start(rabbitmq_delivery_mode="transient").put(record(0, "a"))
    assert [each.delivery_mode for each, _body in server.take(queue)] == [1]


def test_key_headers_and_metadata_are_forwarded(start: Start, server: RabbitServer, queue: str) -> None:
    headers = (
        *(
            Header("n", 7),
            Header("big", 2**40),
            Header("huge", 2**70),
            Header("text", "ä", STRING_SCHEMA),
            Header("raw", b"\xff"),
        ),
        *(Header("yes", True), Header("none", None), Header("float", 1.5), Header("list", [1, 2])),
        *(Header("rabbitmq.own", "x"), Header("rabbitmq.message.id", 17), Header("rabbitmq.priority", "3")),
        *(Header("rabbitmq.timestamp", 1_700_000_000), Header("rabbitmq.type", None), Header("rabbitmq.exchange", "e")),
        *(Header("rabbitmq.user.id", "somebody"), Header("rabbitmq.delivery.mode", 1), Header("rabbitmq.x-stream-offset", 3)),
    )
    forwarded = {f"rabbitmq_forward_kafka_{name}": "true" for name in ("key", "metadata", "headers")}
    start(**forwarded).put(record(5, "v", key="k", headers=headers), record(6, "v"))
    (first, _), (second, _) = server.take(queue)
    assert (first.correlation_id, first.message_id, first.priority, first.timestamp) == ("k", "17", 3, 1_700_000_000)
    assert (first.user_id, first.delivery_mode, first.type) == (None, 2, None)
    places = {"KAFKA_TOPIC": "t", "KAFKA_PARTITION": 0}
    assert first.headers == {
        **{**places, "KAFKA_OFFSET": 5, "n": 7, "big": 2**40, "huge": str(2**70), "text": "ä", "raw": b"\xff", "yes": True},
        **{"none": None, "float": "1.5", "list": "[1, 2]", "own": "x"},
    }
    assert (second.correlation_id, second.headers) == (None, {**places, "KAFKA_OFFSET": 6})


def test_exchange_and_routing_key_are_of_the_record(start: Start, server: RabbitServer, queue: str) -> None:
    with closing(server.connect()) as connection:
        channel = connection.channel()
        channel.exchange_declare(f"{queue}.t", "topic")
        channel.queue_bind(queue, f"{queue}.t", "t.0.*")
    sink = start("${topic}.${partition}.${key}", rabbitmq_exchange=queue + ".${topic}")
    sink.put(record(0, "a", key="x"), record(1, "b", key=7), record(2, "c"), record(3, "d", key="x.y"))
    assert bodies(server, queue) == [b"a", b"b"]
    first, second = sink.reasons
    assert "needs a key" in first
    assert "t.0.x.y" in second


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (record(1, None), "has no value"),
        (record(1, {"a": 1}), "no text, bytes or number, but dict"),
        (record(1, "\ud800"), "cannot be written"),
        (record(1, "a", key="x" * 256), "more than 255"),
        (record(1, "a", key={"a": 1}), "The key of t-0 at offset 1"),
        (record(1, "a", headers=(Header("x" * 256, 1),)), "t-0 at offset 1 cannot be written"),
        (record(1, "a", headers=(Header("x", "y" * 200_000),)), "more than the"),
        (record(1, "a", headers=(Header("rabbitmq.priority", "high"),)), "cannot be written"),
        (record(1, "a", headers=(Header("rabbitmq.priority", 256),)), "headers of t-0 at offset 1"),
        (record(1, "a", headers=(Header("rabbitmq.expiration", "soon"),)), "refused: RabbitMQ"),
    ],
)
def test_records_that_cannot_be_published_are_reported(
    start: Start, server: RabbitServer, queue: str, bad: SinkRecord, why: str
) -> None:
    sink = start(rabbitmq_forward_kafka_key="true", rabbitmq_forward_kafka_headers="true")
    sink.put(record(0, "first"), bad, record(2, "last"))
    [reason] = sink.reasons
    assert why in reason
    assert sorted(set(bodies(server, queue))) == [b"first", b"last"]


def test_a_message_that_no_queue_takes_is_a_bad_record(start: Start, server: RabbitServer, queue: str) -> None:
    sink = start("${key}")
    sink.put(*(record(number, str(number % 3), key=queue if number % 2 else "nowhere") for number in range(100)))
    assert bodies(server, queue) == [str(number % 3).encode() for number in range(1, 100, 2)]
    assert {bad.kafka_offset for bad, _error in sink.context.reported} == set(range(0, 100, 2))
    assert "the routing key 'nowhere' (312 NO_ROUTE)" in sink.reasons[0]
    careless = start("${key}", rabbitmq_mandatory="false")
    careless.put(record(0, "a", key="nowhere"), record(1, "b", key=queue))
    assert careless.reasons == []
    assert bodies(server, queue) == [b"b"]


def test_without_a_dead_letter_queue_such_a_message_fails_the_task(server: RabbitServer, unique: Callable[[str], str]) -> None:
    task, config = RabbitSinkTask(), {"name": "n", **server.config, "rabbitmq.routing.key": unique("nowhere")}
    task.initialize(MemorySinkContext(config, reports=False))
    task.start(config)
    try:
        with pytest.raises(ConnectError, match="no queue is bound"):
            task.put([record(0, "a")])
    finally:
        task.stop()


def test_an_exchange_that_does_not_exist_fails_the_task_and_is_named_before(start: Start, server: RabbitServer) -> None:
    sink = start(rabbitmq_exchange="absent")
    with pytest.raises(ConnectError, match="no exchange 'absent'") as error:
        sink.task.put([record(0, "a")])
    assert not isinstance(error.value, RetriableError)
    found = RabbitSinkConnector.validate({**server.config, "rabbitmq.exchange": "absent"})
    assert [name for name, each in found.items() if each.errors] == ["rabbitmq.exchange"]
    assert not any(each.errors for each in RabbitSinkConnector.validate({**server.config}).values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", ["1", "7", "1000"])
def test_many_records_are_in_the_queue_in_their_order(
    start: Start, server: RabbitServer, unique: Callable[[str], str], kind: str, window: str
) -> None:
    name = unique(kind)
    server.declare(name, kind)
    sink = start(name, rabbitmq_publish_max_batch_size=window)
    sink.put(*(record(number, str(number)) for number in range(2000 if window == "1000" else 200)))
    assert bodies(server, name) == [str(number).encode() for number in range(2000 if window == "1000" else 200)]
    assert sink.connections == 1


def test_a_server_that_blocks_is_waited_for_and_gets_each_message_once(start: Start, server: RabbitServer, queue: str) -> None:
    sink = start()
    sink.put(record(0, "0"))
    records = [record(number, str(number)) for number in range(1, 2000)]
    server.block_publishers(True)
    try:
        with pytest.raises(RetriableError, match=r"memory|confirms"):
            sink.task.put(records)
        eventually(lambda: put_says(sink, records, "memory"), what="the reason of the server")
    finally:
        server.block_publishers(False)
    sink.put(*records)
    assert bodies(server, queue) == [str(number).encode() for number in range(2000)]
    assert sink.task.metrics()["sink-throttled-ms"] > 0
    assert sink.connections == 1


def put_says(sink: Running, records: list[SinkRecord], text: str) -> bool:
    try:
        sink.task.put(records)
    except RetriableError as error:
        return text in str(error)
    return False


def test_a_queue_that_is_full_is_waited_for(start: Start, server: RabbitServer, unique: Callable[[str], str]) -> None:
    name = unique("full")
    server.declare(name, x_max_length=5, x_overflow="reject-publish")
    sink = start(name, rabbitmq_publish_max_batch_size="1")
    records = [record(number, str(number)) for number in range(8)]
    with pytest.raises(RetriableError, match="is the queue full"):
        sink.task.put(records)
    found = bodies(server, name)
    sink.put(*records)
    found += bodies(server, name)
    assert sorted(found) == [str(number).encode() for number in range(8)]


def test_what_was_not_confirmed_is_published_again_after_a_lost_connection(
    start: Start, server: RabbitServer, queue: str
) -> None:
    sink = start(rabbitmq_publish_max_batch_size="50")
    sink.put(*(record(number, str(number)) for number in range(50)))
    server.call('rabbit_networking:close_all_connections("test")')
    sink.put(*(record(number, str(number)) for number in range(50, 100)))
    found = [int(body) for body in bodies(server, queue)]
    assert set(found) == set(range(100))
    assert len(found) <= 150
    assert sink.connections == 2


def test_a_server_that_is_killed_under_load_has_every_record(kafka: Kafka, topic: str) -> None:
    with closing(RabbitServer()) as own:
        own.start()
        own.declare(topic)
        strings = dict.fromkeys(("key.converter", "value.converter"), "StringConverter")
        config = {"name": topic, "connector.class": "RabbitSink", "topics": topic, **own.config}
        with RunningTask({**config, **strings}, kafka.worker()) as task:
            kafka.produce(topic, *map(str, range(50)))
            eventually(lambda: own.count(topic) == 50)
            own.end(signal.SIGKILL)
            kafka.produce(topic, *map(str, range(50, 100)))
            eventually(lambda: "RabbitMQ at 127.0.0.1" in (task.reports.trace or ""), what="the reason in the status")
            own.start()
            eventually(lambda: own.count(topic) >= 100, what="the records that came meanwhile")
        assert {int(body) for body in bodies(own, topic)} == set(range(100))


def test_a_refused_login_fails_the_task_and_shows_no_password(start: Start) -> None:
    with pytest.raises(ConnectError, match="refused the login") as error:
        start(rabbitmq_password="hush").task.put([record(0, "a")])
    assert not isinstance(error.value, RetriableError)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"rabbitmq.exchange": "${key}"}, "rabbitmq.exchange"),
        ({"rabbitmq.routing.key": "x" * 256}, "rabbitmq.routing.key"),
        ({"rabbitmq.topic.queue.map": "a:b"}, "rabbitmq.topic.queue.map"),
        ({"rabbitmq.publish.max.retries": "1"}, "rabbitmq.publish.max.retries"),
        ({"rabbitmq.https.ssl.keystore.location": "/key.pem"}, "rabbitmq.security.protocol"),
        ({"rabbitmq.host": "amqp://user:hush@rabbit"}, "rabbitmq.host"),
        ({"rabbitmq.host": "rabbit:5672"}, "rabbitmq.host"),
        ({"rabbitmq.host": ""}, "rabbitmq.host"),
    ],
)
def test_keys_that_conflict_are_refused_by_name(config: dict[str, str], key: str) -> None:
    found = RabbitSinkConnector.check(config)
    assert {name for name, each in found.items() if each.errors} == {key}
    assert "hush" not in str(found[key].errors)
    with pytest.raises(ConfigError):
        RabbitSinkConnector().start(config)


class TestContract(SinkConnectorContract):
    connector_class = RabbitSinkConnector

    @pytest.fixture
    def config(self, server: RabbitServer, queue: str) -> dict[str, str]:
        return {**server.config, "rabbitmq.routing.key": queue}
