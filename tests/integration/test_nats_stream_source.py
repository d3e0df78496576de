"""The source of JetStream's streams on a real server: sequences, ends, messages removed unread, and other streams."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from typing import Any

import pytest

from sluiceway.api import OffsetTarget, OffsetTargetKind, SourceRecord
from sluiceway.connectors.nats import NatsStreamSourceConnector
from sluiceway.connectors.nats.jetstream import delete_consumer
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.runtime.memory import MemoryOffsets, MemorySourceContext
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from sluiceway.testing import SourceConnectorContract
from support.engine import Offsets, RunningTask
from support.eventually import LIMIT, eventually
from support.kafka import Kafka
from support.nats_server import NatsServer

pytestmark = pytest.mark.kafka

BYTES = {"key.converter": "StringConverter", "value.converter": "ByteArrayConverter"}


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
    return {"name": stream, "connector.class": "NatsStreamSource", **server.config, "nats.streams": stream, **BYTES, **given}


@contextmanager
def running(config: dict[str, str], offsets: MemoryOffsets | None = None) -> Iterator[Any]:
    """A task without Kafka."""
    connector = NatsStreamSourceConnector()
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
    eventually(lambda: records.extend(task.poll() or ()) or len(records) >= count, what=f"{count} records")
    return records


def polled(task: Any) -> list[SourceRecord]:
    try:
        return list(task.poll() or ())
    except RetriableError:
        return []


def refused(task: Any) -> str:
    try:
        task.poll()
    except RetriableError as error:
        return str(error)
    return ""


def numbers(records: Sequence[SourceRecord]) -> list[int]:
    return [int(record.value) for record in records]


def sequences(records: Sequence[SourceRecord]) -> list[int]:
    return [int((record.source_offset or {})["sequence"]) for record in records]


def store_idle(task: Any, offsets: MemoryOffsets) -> None:
    for partition, offset in task.idle_offsets():
        offsets.store(partition, offset)


def in_kafka(kafka: Kafka, topic: str, count: int) -> list[int]:
    return [int(value) for value in kafka.values(topic, count)]


def test_a_record_has_the_message_its_subject_time_and_sequence(server: NatsServer, stream: str) -> None:
    before = int(time.time() * 1000)
    server.publish(f"{stream}.a.b", b"\xff\x00", headers=[("A", "1"), ("A", "ä"), ("b", "")])
    server.publish(stream, b"")
    with running(config_of(server, stream, kafka_topic="nats.${stream}.${subject}")) as task:
        first, second = read(task, 2)
    assert (first.topic, first.key, first.value) == (f"nats.{stream}.{stream}.a.b", f"{stream}.a.b", b"\xff\x00")
    assert (second.topic, second.key, second.value) == (f"nats.{stream}.{stream}", stream, b"")
    assert before <= (first.timestamp or 0) <= (second.timestamp or 0) <= int(time.time() * 1000)
    assert (first.source_partition, sequences([first, second])) == ({"stream": stream}, [1, 2])
    own = [("nats.stream", stream), ("nats.sequence", 1), ("nats.deliveries", 1)]
    assert [(each.key, each.value) for each in first.headers] == [*own, ("A", "1"), ("A", "ä"), ("b", "")]


def test_headers_can_be_left_out_and_values_be_texts(server: NatsServer, stream: str) -> None:
    server.publish(stream, "Zoë", headers=[("A", "1")])
    with running(config_of(server, stream, nats_headers_enabled="false", nats_values="string")) as task:
        [record] = read(task, 1)
    assert (record.value, record.headers) == ("Zoë", ())


def test_a_stream_is_read_on_after_its_offset(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 10)
    offsets, config = MemoryOffsets(), config_of(server, stream, batch_size="4")
    with running(config, offsets) as task:
        offsets.store_all(read(task, 10)[:6])
    with running(config, offsets) as task:
        assert numbers(read(task, 4)) == [6, 7, 8, 9]
    publish(server, stream, 10, 12)
    offsets.store({"stream": stream}, {"sequence": 10})
    with running(config, offsets) as task:
        assert numbers(read(task, 2)) == [10, 11]


@pytest.mark.parametrize(
    ("begin", "first"), [("first", 0), ("1", 0), ("8", 7), ("12", 11), ("2020-01-01T00:00:00Z", 0), ("next", 10)]
)
def test_a_stream_is_read_from_where_the_config_says(server: NatsServer, stream: str, begin: str, first: int) -> None:
    publish(server, stream, 0, 10)
    with running(config_of(server, stream, nats_stream_begin=begin)) as task:
        found = list(task.poll() or ())
        publish(server, stream, 10, 12)
        eventually(lambda: found.extend(task.poll() or ()) or len(found) >= 12 - first)
        assert numbers(found) == list(range(first, 12))


def test_a_time_is_exact(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 5)
    with running(config_of(server, stream)) as task:
        last = read(task, 5)[-1].timestamp or 0
    text = datetime.fromtimestamp((last + 1) / 1000, timezone.utc).isoformat(timespec="milliseconds")
    publish(server, stream, 5, 7)
    with running(config_of(server, stream, nats_stream_begin=text)) as task:
        assert numbers(read(task, 2)) == [5, 6]


@pytest.mark.parametrize("begin", ["next", "2099-01-01T00:00:00+01:00"])
def test_a_begin_that_was_found_is_kept(server: NatsServer, stream: str, begin: str) -> None:
    publish(server, stream, 0, 3)
    offsets, config = MemoryOffsets(), config_of(server, stream, nats_stream_begin=begin)
    with running(config, offsets) as task:
        assert not task.poll()
        store_idle(task, offsets)
        assert task.idle_offsets() == []
    publish(server, stream, 3, 5)
    with running(config, offsets) as task:
        assert numbers(read(task, 2)) == [3, 4]


def test_messages_of_other_subjects_are_left_out(server: NatsServer, stream: str) -> None:
    for number in range(10):
        server.publish(f"{stream}.{'even' if number % 2 == 0 else 'odd'}.x", str(number))
    config = config_of(server, stream, nats_subject_filter=f"{stream}.odd.*")
    with running(config) as task:
        records = read(task, 5)
        assert (numbers(records), sequences(records)) == ([1, 3, 5, 7, 9], [2, 4, 6, 8, 10])
        assert records[0].source_partition == {"stream": stream, "subject": f"{stream}.odd.*"}
        assert task.metrics() == {"messages-missed": 0}
    offsets = MemoryOffsets()
    offsets.store_all(records[:2])
    with running(config, offsets) as task:
        assert numbers(read(task, 3)) == [5, 7, 9]


def test_streams_are_divided_among_tasks(server: NatsServer) -> None:
    connector = NatsStreamSourceConnector()
    connector.start(config_of(server, "a,b,c,d,e"))
    assert [each["nats.streams"] for each in connector.task_configs(2)] == ["a,c,e", "b,d"]
    assert len(connector.task_configs(9)) == 5


def test_several_streams_are_read_by_one_task(server: NatsServer, stream: str) -> None:
    other, empty = f"{stream}-other", f"{stream}-empty"
    server.create(other)
    server.create(empty)
    publish(server, stream, 0, 500)
    publish(server, other, 0, 500)
    with running({**config_of(server, stream, batch_size="70"), "nats.streams": f"{stream},{other},{empty}"}) as task:
        records = read(task, 1000)
        publish(server, empty, 0, 1)
        assert numbers(read(task, 1)) == [0]
    for name in (stream, other):
        assert numbers([each for each in records if each.topic == name]) == list(range(500))


def test_a_message_that_is_larger_than_a_request_may_be_is_read(
    server: NatsServer, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluiceway.connectors.nats.pulls.MOST_BYTES", 1000)
    server.publish(stream, "0", "1".rjust(5000), "2", "3".rjust(5000), "4".rjust(5000), "5")
    with running(config_of(server, stream)) as task:
        assert numbers(read(task, 6)) == list(range(6))


def test_a_consumer_that_the_server_has_forgotten_is_created_again(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 3)
    with running(config_of(server, stream, nats_timeout_ms="300")) as task:
        assert numbers(read(task, 3)) == [0, 1, 2]
        for _ in range(2):
            with closing(server.connect()) as session:
                delete_consumer(session, stream, task._readings[0].consumer)
            server.publish(stream, "3")
            assert numbers(read(task, 1)) == [3]


@pytest.mark.parametrize("how", ["purge", "limits"])
def test_messages_that_were_removed_unread_are_counted(
    server: NatsServer, unique: Callable[[str], str], caplog: pytest.LogCaptureFixture, how: str
) -> None:
    stream = unique("small")
    server.create(stream, **({"max_msgs": 20} if how == "limits" else {}))
    publish(server, stream, 0, 10)
    offsets, config = MemoryOffsets(), config_of(server, stream)
    with running(config, offsets) as task:
        offsets.store_all(read(task, 10))
        assert task.metrics() == {"messages-missed": 0}
    publish(server, stream, 10, 50)
    if how == "purge":
        server.purge(stream, seq=31)
    with running(config, offsets) as task:
        assert numbers(read(task, 20)) == list(range(30, 50))
        assert task.metrics() == {"messages-missed": 20}
    assert f"Stream {stream}: up to 20 messages, from sequence 11 on, were purged or removed" in caplog.text


def test_a_purge_beside_the_task_is_told_of_once(server: NatsServer, stream: str, caplog: pytest.LogCaptureFixture) -> None:
    publish(server, stream, 0, 5)
    offsets, config = MemoryOffsets(), config_of(server, stream)
    with running(config, offsets) as task:
        offsets.store_all(read(task, 5))
        task.paused()
        publish(server, stream, 5, 9)
        server.purge(stream)
        assert not task.poll()
        store_idle(task, offsets)
        publish(server, stream, 9, 10)
        assert numbers(read(task, 1)) == [9]
        assert task.metrics() == {"messages-missed": 4}
    with running(config, offsets) as task:
        assert numbers(read(task, 1)) == [9]
        assert task.metrics() == {"messages-missed": 0}


def test_messages_that_were_deleted_one_by_one_are_no_warning(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 6)
    server.request(f"STREAM.MSG.DELETE.{stream}", {"seq": 4})
    with running(config_of(server, stream)) as task:
        assert numbers(read(task, 5)) == [0, 1, 2, 4, 5]
        assert task.metrics() == {"messages-missed": 0}


@pytest.mark.parametrize("count", [0, 3, 20])
def test_a_stream_that_was_created_again_fails_the_task_with_what_to_do(server: NatsServer, stream: str, count: int) -> None:
    publish(server, stream, 0, 10)
    offsets, config = MemoryOffsets(), config_of(server, stream, nats_timeout_ms="1000")
    with running(config, offsets) as task:
        offsets.store_all(read(task, 10))
        server.delete(stream)
        eventually(lambda: "stream not found" in refused(task))
        server.create(stream)
        publish(server, stream, 0, count)
        with pytest.raises(ConnectError, match=r"was deleted and created again.*sluiceway offsets reset"):
            eventually(lambda: polled(task))
    with running(config, offsets) as task, pytest.raises(ConnectError, match="sluiceway offsets reset"):
        read(task, 1)
    offsets.store({"stream": stream}, {"sequence": 30})
    with (
        running(config, offsets) as task,
        pytest.raises(ConnectError, match=f"ends at sequence {count}, before 30.*offsets reset"),
    ):
        read(task, 1)


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
def test_a_stream_that_removes_what_is_read_is_refused(server: NatsServer, unique: Callable[[str], str], retention: str) -> None:
    stream = unique("work")
    server.create(stream, retention=retention)
    with running(config_of(server, stream)) as task, pytest.raises(ConnectError, match="Read it with NatsConsumerSource"):
        read(task, 1)


def test_bad_messages_are_reported_and_passed(server: NatsServer, stream: str) -> None:
    server.publish(stream, b"\xff", "1", b"\xfe")
    offsets, config = MemoryOffsets(), config_of(server, stream, nats_values="string", errors_tolerance="all")
    with running(config, offsets) as task:
        assert [record.value for record in read(task, 1)] == ["1"]
        assert [bad.value for bad, _error in task.context.reported] == [b"\xff", b"\xfe"]
        assert "Set nats.values=bytes" in str(task.context.reported[0][1])
        eventually(lambda: not task.poll())
        [(_partition, offset)] = task.idle_offsets()
        assert offset["sequence"] == 3


def test_subjects_that_no_topic_can_have_are_bad_records(server: NatsServer, stream: str) -> None:
    server.publish(f"{stream}.a/b", "1")
    server.publish(f"{stream}.{'x' * 300}", "2")
    server.publish(f"{stream}.ä", "3")
    server.publish(f"{stream}.ok", "4")
    with running(config_of(server, stream, kafka_topic="${subject}", errors_tolerance="all")) as task:
        assert numbers(read(task, 1)) == [4]
        assert [error.args[0].partition(" has the subject")[1] != "" for _bad, error in task.context.reported] == [True] * 3


def test_offsets_are_checked_and_found(server: NatsServer, stream: str) -> None:
    connector, config, partition = NatsStreamSourceConnector(), config_of(server, stream), {"stream": stream}
    good: list[dict[str, Any]] = [{"sequence": 5}, {"sequence": 0}, {"sequence": 5, "created": "2026"}]
    assert connector.alter_offsets(config, [*((partition, each) for each in good), (partition, None)])
    odd: list[dict[str, Any]] = [{"sequence": -1}, {"sequence": "5"}, {"sequence": True}, {"sequence": 1.5}, {"sequence": 2**63}]
    for bad in [*odd, {"sequence": 1, "n": 1}, {}, {"id": 5}, {"sequence": 1, "created": 7}]:
        with pytest.raises(ConnectError, match="is no offset"):
            connector.alter_offsets(config, [(partition, bad)])
    with pytest.raises(ConnectError, match="partition"):
        connector.alter_offsets(config, [({"queue": "a"}, {"sequence": 1})])

    def found(kind: OffsetTargetKind, number: int = 0, stored: int = 4) -> Any:
        [(_partition, offset)] = connector.find_offsets(config, OffsetTarget(kind, number), [(partition, {"sequence": stored})])
        assert offset is not None
        return offset["sequence"]

    assert found(OffsetTargetKind.LATEST) == 0
    publish(server, stream, 0, 10)
    assert found(OffsetTargetKind.EARLIEST) == found(OffsetTargetKind.TIMESTAMP, 1_600_000_000_000) == 0
    assert found(OffsetTargetKind.LATEST) == found(OffsetTargetKind.TIMESTAMP, 4_000_000_000_000) == 10
    assert [found(OffsetTargetKind.SHIFT, by) for by in (2, -2, -9, 99)] == [6, 2, 0, 10]


def test_a_run_of_what_there_is_ends(server: NatsServer, into: Kafka, stream: str) -> None:
    publish(server, stream, 0, 3000)
    offsets, config = Offsets(), config_of(server, stream)
    for expected in (3000, 0):
        with RunningTask(config, into.worker(), offsets=offsets, bounded=True) as task:
            assert task.join().records == expected
    assert in_kafka(into, stream, 3000) == list(range(3000))


def test_a_run_ends_although_the_last_messages_are_of_other_subjects(server: NatsServer, into: Kafka, stream: str) -> None:
    server.publish(f"{stream}.a", *map(str, range(10)))
    server.publish(f"{stream}.b", *map(str, range(10)))
    config = config_of(server, stream, nats_subject_filter=f"{stream}.a")
    with RunningTask(config, into.worker(), bounded=True) as task:
        assert task.join().records == 10


def test_a_run_ends_at_what_the_stream_had_at_first(server: NatsServer, stream: str) -> None:
    publish(server, stream, 0, 5)
    with running(config_of(server, stream, batch_size="2")) as task:
        assert not task.ended
        assert numbers(read(task, 2)) == [0, 1]
        publish(server, stream, 5, 100)
        assert not task.ended
        assert numbers(read(task, 3))[:3] == [2, 3, 4]
        assert task.ended


def test_tasks_that_restart_and_pause_lose_and_double_nothing(server: NatsServer, into: Kafka, stream: str) -> None:
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_restarts_is_waited_for(into: Kafka, stream: str, number: signal.Signals) -> None:
    with NatsServer() as own:
        own.create(stream)
        with RunningTask(config_of(own, stream), into.worker()) as task:
            publish(own, stream, 0, 5)
            assert in_kafka(into, stream, 5) == list(range(5))
            own.end(number)
            eventually(lambda: "NATS at 127.0.0.1" in (task.reports.trace or ""), what="the reason in the status")
            own.start()
            eventually(lambda: task.reports.trace is None)
            publish(own, stream, 5, 9)
            assert in_kafka(into, stream, 9) == list(range(9))


class TestContract(SourceConnectorContract):
    connector_class = NatsStreamSourceConnector
    records_within = poll_within = LIMIT

    @pytest.fixture
    def config(self, server: NatsServer, stream: str) -> dict[str, str]:
        publish(server, stream, 0, 3)
        return {**server.config, "nats.streams": stream}
