"""The source of RabbitMQ's streams on a real server: offsets, ends, messages removed unread, and streams that went back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest

from sluiceway.api import OffsetTarget, OffsetTargetKind, SourceRecord
from sluiceway.connectors.rabbitmq import RabbitStreamSourceConnector
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.runtime.memory import MemoryOffsets, MemorySourceContext
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from sluiceway.testing import SourceConnectorContract
from support.engine import Offsets, RunningTask
from support.eventually import LIMIT, eventually
from support.kafka import Kafka
from support.rabbitmq_server import RabbitServer

pytestmark = pytest.mark.kafka

BYTES = {"key.converter": "StringConverter", "value.converter": "ByteArrayConverter"}
SMALL = {"x_max_length_bytes": 20_000, "x_stream_max_segment_size_bytes": 5_000}
"""Lets a stream remove old messages soon."""


@pytest.fixture(scope="module")
def server() -> Iterator[RabbitServer]:
    with closing(RabbitServer()) as server:
        server.start()
        yield server


@pytest.fixture
def stream(server: RabbitServer, unique: Callable[[str], str]) -> str:
    name = unique("stream")
    server.declare(name, "stream")
    return name


@pytest.fixture
def into(kafka: Kafka, stream: str) -> Kafka:
    """The broker with a topic of the stream's name."""
    kafka.create(stream)
    return kafka


def publish(server: RabbitServer, stream: str, low: int, high: int, size: int = 0) -> None:
    server.publish(stream, *(str(number).ljust(size, ".") for number in range(low, high)))


def config_of(server: RabbitServer, stream: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"name": stream, "connector.class": "RabbitStreamSource", **server.config, "rabbitmq.queue": stream, **BYTES, **given}


@contextmanager
def running(config: dict[str, str], offsets: MemoryOffsets | None = None) -> Iterator[Any]:
    """A task without Kafka."""
    connector = RabbitStreamSourceConnector()
    connector.start(config)
    given = connector.task_configs(1)[0]
    made = connector.task_class()
    made.initialize(MemorySourceContext(given, offsets))
    made.start(given)
    try:
        yield made
    finally:
        made.stop()


def read(task: Any, count: int) -> list[SourceRecord]:
    records: list[SourceRecord] = []
    eventually(lambda: records.extend(task.poll() or ()) or len(records) >= count)
    return records


def numbers(records: Sequence[SourceRecord]) -> list[int]:
    return [int(record.value.rstrip(b".")) for record in records]


def offset_of(record: SourceRecord) -> int:
    return int((record.source_offset or {})["offset"])


def in_kafka(kafka: Kafka, topic: str, count: int) -> list[int]:
    return [int(value) for value in kafka.values(topic, count)]


def test_a_record_has_the_message_and_its_offset(server: RabbitServer, stream: str) -> None:
    server.publish(stream, b"\xff", message_id="m", timestamp=1_700_000_000, headers={"float": 7})
    with running(config_of(server, stream, kafka_topic="rabbit.${queue}")) as task:
        [record] = read(task, 1)
    assert (record.topic, record.key, record.value) == (f"rabbit.{stream}", "m", b"\xff")
    assert (record.source_partition, record.source_offset) == ({"stream": stream}, {"offset": 0})
    assert {header.key: header.value for header in record.headers}["rabbitmq.x-stream-offset"] == 0


def test_a_stream_goes_on_after_its_offset(server: RabbitServer, stream: str) -> None:
    publish(server, stream, 0, 10)
    offsets, config = MemoryOffsets(), config_of(server, stream, batch_size="4", rabbitmq_prefetch_count="3")
    with running(config, offsets) as task:
        offsets.store_all(read(task, 10)[:6])
    with running(config, offsets) as task:
        assert numbers(read(task, 4)) == [6, 7, 8, 9]
    publish(server, stream, 10, 12)
    offsets.store({"stream": stream}, {"offset": 9})
    with running(config, offsets) as task:
        assert numbers(read(task, 2)) == [10, 11]


@pytest.mark.parametrize(("begin", "first"), [("first", 0), ("7", 7), ("10", 10), ("2020-01-01T00:00:00Z", 0), ("next", 10)])
def test_a_stream_is_read_from_where_the_config_says(server: RabbitServer, stream: str, begin: str, first: int) -> None:
    publish(server, stream, 0, 10)
    with running(config_of(server, stream, rabbitmq_stream_offset=begin)) as task:
        found = list(task.poll() or ())
        publish(server, stream, 10, 12)
        eventually(lambda: found.extend(task.poll() or ()) or len(found) >= 12 - first)
        assert numbers(found) == list(range(first, 12))


def test_a_stream_that_is_read_from_its_end_keeps_the_end(server: RabbitServer, stream: str) -> None:
    publish(server, stream, 0, 3)
    offsets, config = MemoryOffsets(), config_of(server, stream, rabbitmq_stream_offset="next")
    with running(config, offsets) as task:
        assert not task.poll()
        for partition, offset in task.idle_offsets():
            offsets.store(partition, offset)
        assert task.idle_offsets() == []
    publish(server, stream, 3, 5)
    with running(config, offsets) as task:
        assert numbers(read(task, 2)) == [3, 4]


def test_streams_are_divided_among_tasks(server: RabbitServer) -> None:
    connector = RabbitStreamSourceConnector()
    connector.start(config_of(server, "a,b,c,d,e"))
    assert [each["rabbitmq.queue"] for each in connector.task_configs(2)] == ["a,c,e", "b,d"]
    assert len(connector.task_configs(9)) == 5


def test_the_end_of_a_stream_is_found_while_somebody_goes_on_publishing(server: RabbitServer, stream: str) -> None:
    stopping = threading.Event()

    def write() -> None:
        with closing(server.connect()) as connection:
            channel = connection.channel()
            while not stopping.wait(0.0001):
                channel.basic_publish("", stream, b"1")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        connector, config = RabbitStreamSourceConnector(), config_of(server, stream)
        for _ in range(50):
            connector.find_offsets(config, OffsetTarget(OffsetTargetKind.LATEST), [])
        with running(config) as task:
            read(task, 100)
    finally:
        stopping.set()
        writer.join()


def test_several_streams_are_read_by_one_task(server: RabbitServer, stream: str) -> None:
    other = f"{stream}-other"
    server.declare(other, "stream")
    publish(server, stream, 0, 500)
    publish(server, other, 0, 500)
    with running({**config_of(server, stream), "rabbitmq.queue": f"{stream},{other}"}) as task:
        records = read(task, 1000)
    for name in (stream, other):
        assert numbers([each for each in records if each.topic == name]) == list(range(500))


def test_messages_that_were_removed_unread_are_counted(
    server: RabbitServer, unique: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    stream = unique("small")
    server.declare(stream, "stream", **SMALL)
    publish(server, stream, 0, 10, size=100)
    offsets, config = MemoryOffsets(), config_of(server, stream)
    with running(config, offsets) as task:
        offsets.store_all(read(task, 10))
        assert task.metrics() == {"messages-missed": 0}
    total = 10

    def removed() -> int:
        nonlocal total
        publish(server, stream, total, total + 100, size=100)
        total += 100
        with running(config) as fresh:
            return numbers(read(fresh, 1))[0]

    eventually(lambda: removed() > 50, what="the first messages to be removed")
    with running(config, offsets) as task:
        records: list[SourceRecord] = []
        eventually(lambda: records.extend(task.poll() or ()) or numbers(records)[-1:] == [total - 1])
        first = numbers(records)[0]
        assert numbers(records) == list(range(first, total))
        missed = task.metrics()["messages-missed"]
        assert first - 10 <= missed == offset_of(records[0]) - 10
    assert f"up to {missed} messages, from offset 10 on, were removed" in caplog.text


def test_a_stream_that_was_created_again_fails_the_task_with_what_to_do(server: RabbitServer, stream: str) -> None:
    publish(server, stream, 0, 10)
    offsets, config = MemoryOffsets(), config_of(server, stream)
    with running(config, offsets) as task:
        offsets.store_all(read(task, 10))
        server.delete(stream)
        eventually(lambda: refused(task))
        server.declare(stream, "stream")
        for _ in range(3):
            assert not polled(task), "it is empty, so that nothing shows yet"
        publish(server, stream, 0, 3)
        with pytest.raises(ConnectError, match=r"ends at offset 2, before 9.*sluiceway offsets reset"):
            eventually(lambda: polled(task))
    with running(config, offsets) as task, pytest.raises(ConnectError, match="sluiceway offsets reset"):
        read(task, 1)


def refused(task: Any) -> bool:
    try:
        task.poll()
    except RetriableError:
        return True
    return False


def polled(task: Any) -> list[SourceRecord]:
    try:
        return list(task.poll() or ())
    except RetriableError:
        return []


def test_a_queue_is_not_read_as_a_stream(server: RabbitServer, unique: Callable[[str], str]) -> None:
    queue = unique("queue")
    server.declare(queue)
    publish(server, queue, 0, 3)
    with running(config_of(server, queue)) as task, pytest.raises(ConnectError, match="is no stream"):
        read(task, 1)
    eventually(lambda: server.count(queue) == 3, what="the messages to be there still")


def test_bad_messages_are_reported_and_passed(server: RabbitServer, stream: str) -> None:
    server.publish(stream, b"\xff", "1", b"\xfe")
    offsets, config = MemoryOffsets(), config_of(server, stream, rabbitmq_values="string", errors_tolerance="all")
    with running(config, offsets) as task:
        assert [record.value for record in read(task, 1)] == ["1"]
        eventually(lambda: len(task.context.reported) == 2 or task.poll())
        assert [bad.value for bad, _error in task.context.reported] == [b"\xff", b"\xfe"]
        eventually(lambda: not task.poll())
        [(_partition, offset)] = task.idle_offsets()
        assert offset == {"offset": 2}


def test_offsets_are_checked_and_found(server: RabbitServer, stream: str) -> None:
    connector, config, partition = RabbitStreamSourceConnector(), config_of(server, stream), {"stream": stream}
    assert connector.alter_offsets(config, [(partition, {"offset": 5}), (partition, {"offset": -1}), (partition, None)])
    odd: list[dict[str, Any]] = [{"offset": -2}, {"offset": "5"}, {"offset": True}, {"offset": 1.5}, {"offset": 2**63}, {"id": 5}]
    for bad in [*odd, {"offset": 1, "n": 1}, {}]:
        with pytest.raises(ConnectError, match="is no offset"):
            connector.alter_offsets(config, [(partition, bad)])
    with pytest.raises(ConnectError, match="partition"):
        connector.alter_offsets(config, [({"queue": "a"}, {"offset": 1})])

    def found(kind: OffsetTargetKind, number: int = 0, stored: int = 4) -> Any:
        [(_partition, offset)] = connector.find_offsets(config, OffsetTarget(kind, number), [(partition, {"offset": stored})])
        assert offset is not None
        return offset["offset"]

    assert found(OffsetTargetKind.LATEST) == -1
    publish(server, stream, 0, 10)
    assert found(OffsetTargetKind.EARLIEST) == found(OffsetTargetKind.TIMESTAMP, 1_600_000_000_000) == -1
    assert found(OffsetTargetKind.LATEST) == 9
    assert [found(OffsetTargetKind.SHIFT, by) for by in (2, -2, -9, 99)] == [6, 2, -1, 9]


def test_a_run_of_what_there_is_ends(server: RabbitServer, into: Kafka, stream: str) -> None:
    publish(server, stream, 0, 3000)
    offsets, config = Offsets(), config_of(server, stream)
    for expected in (3000, 0):
        with RunningTask(config, into.worker(), offsets=offsets, bounded=True) as task:
            assert task.join().records == expected
    assert in_kafka(into, stream, 3000) == list(range(3000))


def test_tasks_that_restart_and_pause_lose_and_double_nothing(server: RabbitServer, into: Kafka, stream: str) -> None:
    offsets, total = Offsets(), 0
    for _ in range(3):
        with RunningTask(config_of(server, stream, batch_size="7"), into.worker(), offsets=offsets) as task:
            publish(server, stream, total, total + 200)
            eventually(lambda: into.end(stream) > total)  # noqa: B023
            task.commands.give(TaskCommand.PAUSE)
            task.wait_for(State.PAUSED)
            publish(server, stream, total + 200, total + 300)
            task.commands.give(TaskCommand.RUN)
            eventually(lambda: into.end(stream) > total + 200)  # noqa: B023
        total += 300
    with RunningTask(config_of(server, stream), into.worker(), offsets=offsets, bounded=True) as task:
        task.join()
    assert in_kafka(into, stream, total) == list(range(total))


def test_a_server_that_restarts_is_waited_for(into: Kafka, stream: str) -> None:
    with closing(RabbitServer()) as own:
        own.start()
        own.declare(stream, "stream")
        with RunningTask(config_of(own, stream), into.worker()) as task:
            publish(own, stream, 0, 5)
            assert in_kafka(into, stream, 5) == list(range(5))
            own.end(signal.SIGTERM)  # after a kill, RabbitMQ 3.10 may find a new stream no more
            eventually(lambda: "RabbitMQ at 127.0.0.1" in (task.reports.trace or ""), what="the reason in the status")
            own.start()
            eventually(lambda: task.reports.trace is None)  # which is later than the server's start: streams come last
            publish(own, stream, 5, 9)
            assert in_kafka(into, stream, 9) == list(range(9))


class TestContract(SourceConnectorContract):
    connector_class = RabbitStreamSourceConnector
    records_within = poll_within = LIMIT

    @pytest.fixture
    def config(self, server: RabbitServer, stream: str) -> dict[str, str]:
        publish(server, stream, 0, 3)
        return {**server.config, "rabbitmq.queue": stream}
