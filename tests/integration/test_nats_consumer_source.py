"""The source of JetStream's durable consumers on a real server: acknowledgements, pauses, ends, and consumers of others."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from sluiceway.api import SourceRecord
from sluiceway.connectors.nats import NatsConsumerSourceConnector
from sluiceway.errors import ConnectError
from sluiceway.runtime.memory import MemorySourceContext
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from sluiceway.testing import SourceConnectorContract
from support.engine import RunningTask
from support.eventually import LIMIT, eventually
from support.kafka import Kafka
from support.nats_server import NatsServer

pytestmark = pytest.mark.kafka

BYTES = {"key.converter": "StringConverter", "value.converter": "ByteArrayConverter"}
SECOND = 1_000_000_000  # in nanoseconds
WAIT = 2  # seconds in which a message must be acknowledged, where that matters


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    with NatsServer() as server:
        yield server


@pytest.fixture
def stream(server: NatsServer, unique: Callable[[str], str]) -> str:
    name = unique("stream")
    server.create(name)
    return name


@pytest.fixture
def into(kafka: Kafka, stream: str) -> Kafka:
    """The broker with a topic of the stream's name."""
    kafka.create(stream)
    return kafka


def publish(server: NatsServer, stream: str, low: int, high: int) -> None:
    server.publish(stream, *map(str, range(low, high)))


def config_of(server: NatsServer, stream: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    own = {"name": stream, "connector.class": "NatsConsumerSource", "nats.stream": stream, "nats.consumer": "c"}
    return {**own, **server.config, **BYTES, **given}


def create_consumer(server: NatsServer, stream: str, **config: Any) -> None:
    whole = {"durable_name": "c", "ack_policy": "explicit", **config}
    server.request(f"CONSUMER.DURABLE.CREATE.{stream}.c", {"stream_name": stream, "config": whole})


@contextmanager
def running(config: dict[str, str]) -> Iterator[Any]:
    """A task without Kafka."""
    connector = NatsConsumerSourceConnector()
    connector.start(config)
    [given] = connector.task_configs(1)
    made = connector.task_class()
    made.initialize(MemorySourceContext(given))
    made.start(given)
    try:
        yield made
    finally:
        made.stop()


def read(task: Any, count: int, *, acknowledge: bool = True) -> list[SourceRecord]:
    records: list[SourceRecord] = []

    def enough() -> bool:
        found = task.poll() or ()
        records.extend(found)
        for record in found if acknowledge else ():
            task.commit_record(record, 0, 0)
        return len(records) >= count

    eventually(enough, what=f"{count} records")
    return records


def numbers(records: Sequence[SourceRecord]) -> list[int]:
    return [int(record.value) for record in records]


def unacknowledged(server: NatsServer, stream: str) -> int:
    return int(server.consumer(stream, "c")["num_ack_pending"])


def left(server: NatsServer, stream: str) -> int:
    """Return the number of messages that are not acknowledged, delivered or not."""
    state = server.consumer(stream, "c")
    return int(state["num_ack_pending"]) + int(state["num_pending"])


def in_kafka(kafka: Kafka, topic: str, count: int) -> list[int]:
    return [int(value) for value in kafka.values(topic, count)]


def test_the_consumer_is_created_as_the_config_says(server: NatsServer, stream: str) -> None:
    server.publish(f"{stream}.a", "0")
    server.publish(f"{stream}.b", "1")
    more = {"nats_subject_filter": f"{stream}.b", "nats_consumer_ack_wait_ms": "5000"}
    with running(config_of(server, stream, **more)) as task:
        [record] = read(task, 1)
        eventually(lambda: task.metrics()["messages-acknowledged"] == 1)
    assert (record.value, record.key, record.source_partition, record.source_offset) == (b"1", f"{stream}.b", None, None)
    assert [(each.key, each.value) for each in record.headers] == [
        *(("nats.stream", stream), ("nats.sequence", 2), ("nats.deliveries", 1)),
    ]
    config = server.consumer(stream, "c")["config"]
    assert (config["ack_wait"], config["filter_subject"], config["ack_policy"]) == (5 * SECOND, f"{stream}.b", "explicit")


def test_a_consumer_may_begin_with_new_messages(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 3)
    with running(config_of(server, stream, nats_consumer_begin="next")) as task:
        eventually(lambda: not task.poll() and task._known)
        publish(server, stream, 3, 5)
        assert numbers(read(task, 2)) == [3, 4]


def test_messages_are_acknowledged_once_kafka_has_them(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 10)
    with running(config_of(server, stream)) as task:
        records = read(task, 10, acknowledge=False)
        for record in (*records[:3], *records[7:]):
            task.commit_record(record, 0, 0)
        eventually(lambda: task.metrics()["messages-acknowledged"] == 6)
        eventually(lambda: left(server, stream) == 4)
    with running(config_of(server, stream)) as task:
        again = read(task, 4)
        assert sorted(numbers(again)) == [3, 4, 5, 6], "they were given back, and not first after 30 s"
        assert task.metrics()["messages-redelivered"] == 4
        assert {header.value for header in again[0].headers if header.key == "nats.deliveries"} == {2}
        eventually(lambda: task.metrics()["messages-acknowledged"] == 4)
    eventually(lambda: left(server, stream) == 0)


def test_a_text_that_is_not_utf_8_is_a_bad_record_and_acknowledged_with_it(server: NatsServer, stream: str) -> None:
    server.publish(stream, b"\xff", "2")
    with running(config_of(server, stream, nats_values="string", errors_tolerance="all")) as task:
        assert numbers(read(task, 1)) == [2]
        [(bad, error)] = task.context.reported
        assert (bad.value, "nats.values=bytes" in str(error)) == (b"\xff", True)
        eventually(lambda: task.metrics()["messages-acknowledged"] == 1)
        assert left(server, stream) == 1
        task.commit()  # when the bad record is in Kafka
        eventually(lambda: task.metrics()["messages-acknowledged"] == 2)
    eventually(lambda: left(server, stream) == 0)


def test_a_task_holds_no_more_messages_than_it_may(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 20)
    with running(config_of(server, stream, nats_held="5")) as task:
        held = read(task, 5, acknowledge=False)
        assert not task.poll()
        assert unacknowledged(server, stream) == 5
        for record in held:
            task.commit_record(record, 0, 0)
        assert numbers(read(task, 15)) == list(range(5, 20))


def test_what_waits_for_kafka_is_not_delivered_again(server: NatsServer, stream: str) -> None:
    create_consumer(server, stream, ack_wait=WAIT * SECOND)
    publish(server, stream, 0, 9)
    with running(config_of(server, stream)) as task:
        records = read(task, 9, acknowledge=False)
        with running(config_of(server, stream)) as other:
            threading.Event().wait(2.5 * WAIT)  # longer than the server waits for acknowledgements
            assert not other.poll()
            assert server.consumer(stream, "c")["num_redelivered"] == 0
        for record in records:
            task.commit_record(record, 0, 0)
        eventually(lambda: left(server, stream) == 0)
        assert task.metrics()["messages-redelivered"] == 0


def test_a_message_that_is_delivered_twice_is_one_record(
    server: NatsServer, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_consumer(server, stream, ack_wait=SECOND)
    publish(server, stream, 0, 3)
    config = config_of(server, stream)
    with running(config) as task:
        monkeypatch.setattr(task, "extend", lambda _handles: None)
        records = read(task, 3, acknowledge=False)
        eventually(lambda: task.metrics()["messages-redelivered"] >= 3)
        assert not task.poll()
        for record in records:
            task.commit_record(record, 0, 0)
        eventually(lambda: left(server, stream) == 0)


def test_a_paused_task_gives_its_messages_to_others_and_takes_them_again(server: NatsServer, into: Kafka, stream: str) -> None:
    create_consumer(server, stream, ack_wait=WAIT * SECOND)
    publish(server, stream, 0, 100)
    with RunningTask(config_of(server, stream, nats_held="30"), into.worker()) as task:
        assert in_kafka(into, stream, 100) == list(range(100))
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        publish(server, stream, 100, 200)
        threading.Event().wait(1.5 * WAIT)  # longer than the server waits for acknowledgements
        assert left(server, stream) == 100
        with running(config_of(server, stream)) as other:
            assert sorted(numbers(read(other, 100))) == list(range(100, 200))
            eventually(lambda: left(server, stream) == 0)
        publish(server, stream, 100, 150)
        task.commands.give(TaskCommand.RUN)
        assert sorted(in_kafka(into, stream, 150)) == list(range(150))
    eventually(lambda: left(server, stream) == 0)


def test_a_task_gives_back_what_it_has_not_sent_when_it_pauses(server: NatsServer, stream: str) -> None:
    create_consumer(server, stream, ack_wait=3600 * SECOND)
    publish(server, stream, 0, 50)
    with running(config_of(server, stream)) as task:
        eventually(lambda: task.metrics()["messages-held"] == 50)
        task.paused()
        eventually(lambda: task.metrics()["messages-given-back"] == 50)
        with running(config_of(server, stream, nats_held="20")) as other:
            assert sorted(numbers(read(other, 20))) == list(range(20))
        task.resumed()
        assert sorted(numbers(read(task, 30))) == list(range(20, 50))


def test_tasks_share_a_consumer(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 400)
    config = config_of(server, stream, nats_held="20")
    with running(config) as one, running(config) as other:
        found: list[int] = []

        def enough() -> bool:
            for task in (one, other):
                records = task.poll() or ()
                found.extend(numbers(records))
                for record in records:
                    task.commit_record(record, 0, 0)
            return len(found) >= 400

        eventually(enough, what="400 records")
        assert sorted(found) == list(range(400))
        assert min(task.metrics()["messages-received"] for task in (one, other)) > 0


def test_a_server_that_restarts_is_waited_for(into: Kafka, stream: str) -> None:
    with NatsServer() as own:
        own.create(stream)
        with RunningTask(config_of(own, stream), into.worker()) as task:
            publish(own, stream, 0, 5)
            assert in_kafka(into, stream, 5) == list(range(5))
            eventually(lambda: left(own, stream) == 0)
            own.end(signal.SIGTERM)
            eventually(lambda: "NATS at 127.0.0.1" in (task.reports.trace or ""), what="the reason in the status")
            own.start()
            publish(own, stream, 5, 9)
            assert sorted(set(in_kafka(into, stream, 9))) == list(range(9))
            eventually(lambda: task.reports.trace is None)


def test_what_was_received_before_a_lost_connection_is_acknowledged_after_it(stream: str) -> None:
    with NatsServer() as own:
        own.create(stream)
        publish(own, stream, 0, 5)
        with running(config_of(own, stream)) as task:
            records = read(task, 5, acknowledge=False)
            own.end(signal.SIGKILL)
            eventually(lambda: task.metrics()["connections-lost"])
            own.start()
            for record in records:
                task.commit_record(record, 0, 0)
            eventually(lambda: task.metrics()["messages-acknowledged"] == 5)
            eventually(lambda: left(own, stream) == 0)


def test_another_server_of_the_cluster_is_tried(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 1)
    servers = f"nats://127.0.0.1:9,{server.url}"
    with running({**config_of(server, stream), "nats.servers": servers}) as task:
        assert numbers(read(task, 1)) == [0]


def test_a_consumer_that_is_deleted_fails_the_task(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 3)
    with running(config_of(server, stream, nats_timeout_ms="500")) as task:
        assert numbers(read(task, 3)) == [0, 1, 2]
        server.request(f"CONSUMER.DELETE.{stream}.c")
        with pytest.raises(ConnectError, match=r"was deleted while it was read.*nats\.consumer\.begin"):
            eventually(lambda: task.poll())


@pytest.mark.parametrize(
    ("given", "why", "key"),
    [
        ({"deliver_subject": "out"}, "push consumer", "nats.consumer"),
        ({"ack_policy": "none"}, "policy none", "nats.consumer"),
        ({"ack_policy": "all"}, "policy all", "nats.consumer"),
        ({"headers_only": True}, "headers only", "nats.consumer"),
        ({"filter_subject": "{}.a"}, r"is for .*\.a", "nats.subject.filter"),
        ({"ack_wait": 3 * SECOND}, "waits 3000 ms", "nats.consumer.ack.wait.ms"),
        ({"max_batch": 10}, "max_batch", "nats.consumer"),
    ],
)
def test_a_consumer_that_does_not_fit_is_refused_by_its_key(
    server: NatsServer, stream: str, given: dict[str, Any], why: str, key: str
) -> None:
    given = {name: value.format(stream) if isinstance(value, str) else value for name, value in given.items()}
    create_consumer(server, stream, **given)
    config = config_of(server, stream, nats_subject_filter=f"{stream}.b", nats_consumer_ack_wait_ms="2000")
    if key == "nats.consumer":
        del config["nats.subject.filter"], config["nats.consumer.ack.wait.ms"]
    elif key == "nats.consumer.ack.wait.ms":
        del config["nats.subject.filter"]
    else:
        del config["nats.consumer.ack.wait.ms"]
    with running(config) as task, pytest.raises(ConnectError, match=why):
        read(task, 1)
    found = NatsConsumerSourceConnector.validate(config)
    assert [name for name, each in found.items() if each.errors] == [key]


def test_a_run_of_what_there_is_ends(server: NatsServer, into: Kafka, stream: str) -> None:
    publish(server, stream, 0, 3000)
    with RunningTask(config_of(server, stream, nats_held="100"), into.worker(), bounded=True) as task:
        assert task.join().records == 3000
    assert in_kafka(into, stream, 3000) == list(range(3000))
    eventually(lambda: left(server, stream) == 0)
    with RunningTask(config_of(server, stream), into.worker(), bounded=True) as task:
        assert task.join().records == 0


def test_a_run_waits_for_what_another_client_has_and_does_not_acknowledge(server: NatsServer, stream: str) -> None:
    create_consumer(server, stream, ack_wait=WAIT * SECOND)
    publish(server, stream, 0, 6)
    with running(config_of(server, stream, nats_held="2")) as killed:
        read(killed, 2, acknowledge=False)
        killed.give_back = lambda _handles: None
    with running(config_of(server, stream)) as task:
        assert not task.ended
        assert sorted(numbers(read(task, 6))) == list(range(6))
        eventually(lambda: task.poll() is None and task.ended)


def test_a_run_ends_while_messages_come(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 10)
    stopping = threading.Event()

    def write() -> None:
        while not stopping.wait(0.01):
            server.publish(stream, *["0"] * 5)

    with running(config_of(server, stream)) as task:
        eventually(lambda: task.metrics()["messages-held"])
        writer = threading.Thread(target=write)
        writer.start()
        try:
            eventually(lambda: task.ended or (read(task, 0), False)[1], what="the end")
        finally:
            stopping.set()
            writer.join()


class TestContract(SourceConnectorContract):
    connector_class = NatsConsumerSourceConnector
    records_within = poll_within = LIMIT
    resumable = False

    @pytest.fixture
    def config(self, server: NatsServer, stream: str) -> dict[str, str]:
        publish(server, stream, 0, 3)
        return {**server.config, "nats.stream": stream, "nats.consumer": "c"}

    def identity(self, record: SourceRecord) -> object:
        return json.dumps([record.topic, record.value.decode()])
