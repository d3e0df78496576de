"""The sources of Redis streams on a real Redis and a real broker: restarts, groups, trimmed streams, and a server in trouble."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest
from redis import Redis

from sluiceway.api import ExactlyOnceSupport, OffsetTarget, OffsetTargetKind, SourceConnector, SourceRecord
from sluiceway.connectors.redis import RedisGroupSourceConnector, RedisStreamSourceConnector, stream_source
from sluiceway.connectors.redis.streams import Entry
from sluiceway.errors import BadRequestError, ConnectError
from sluiceway.runtime.memory import MemoryOffsets, MemorySourceContext
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.intervals import IntervalState
from sluiceway.storage.model import State
from sluiceway.testing import SourceConnectorContract
from support.engine import Offsets, RunningTask
from support.eventually import LIMIT, eventually
from support.intervals import IntervalMover, Machine, hours
from support.kafka import Kafka, worker_for
from support.redis_server import RedisServer

pytestmark = pytest.mark.kafka

KINDS: Sequence[type[SourceConnector]] = [RedisStreamSourceConnector, RedisGroupSourceConnector]
JSON = {f"{part}.converter": "JsonConverter" for part in ("key", "value")} | {
    f"{part}.converter.schemas.enable": "false" for part in ("key", "value")
}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with closing(RedisServer()) as server:
        server.start()
        yield server


@pytest.fixture
def client(server: RedisServer) -> Iterator[Redis]:
    with closing(Redis.from_url(server.url)) as client:
        yield client


@pytest.fixture
def stream(unique: Callable[[str], str]) -> str:
    return unique("stream")


def add(client: Redis, stream: str, low: int, high: int) -> None:
    with client.pipeline() as pipeline:
        for number in range(low, high):
            pipeline.xadd(stream, {"n": number})
        pipeline.execute()


def numbers(records: Sequence[SourceRecord]) -> list[int]:
    return [int(record.value["body"]["n"]) for record in records]


def config_of(kind: type[SourceConnector], server: RedisServer, stream: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {
        "name": stream,
        "connector.class": f"{kind.__module__}.{kind.__qualname__}",
        "redis.uri": server.url,
        "redis.stream.name": stream,
        **JSON,
        **given,
    }


@contextmanager
def running(
    kind: type[SourceConnector], config: dict[str, str], offsets: MemoryOffsets | None = None, task: int = 0
) -> Iterator[Any]:
    """A task without Kafka."""
    connector = kind()
    connector.start(config)
    given = connector.task_configs(task + 1)[task]
    made = kind.task_class()
    made.initialize(MemorySourceContext({**config, **given}, offsets))
    made.start({**config, **given})
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

    eventually(enough)
    return records


@pytest.fixture
def into(kafka: Kafka, stream: str) -> Kafka:
    """The broker with a topic of the stream's name."""
    kafka.create(stream)
    return kafka


def in_kafka(kafka: Kafka, topic: str, count: int) -> list[int]:
    return [int(json.loads(value)["body"]["n"]) for value in kafka.values(topic, count)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_has_the_entry_its_id_and_its_time(
    kind: type[SourceConnector], server: RedisServer, client: Redis, stream: str
) -> None:
    client.xadd(stream, {"name": "Zoë", "empty": ""}, id="1700000000123-4")
    client.xadd(stream, {"n": 1}, id="1700000000124-0")
    with running(kind, config_of(kind, server, stream, topic="redis.${stream}")) as task:
        first, _second = read(task, 2)
    assert (first.topic, first.key, first.timestamp) == (f"redis.{stream}", "1700000000123-4", 1_700_000_000_123)
    assert dict(first.value) == {"stream": stream, "id": "1700000000123-4", "body": {"name": "Zoë", "empty": ""}}


def test_ids_that_are_no_times_give_records_without_one(server: RedisServer, client: Redis, stream: str) -> None:
    client.xadd(stream, {"n": 1}, id="5-0")
    with running(RedisStreamSourceConnector, config_of(RedisStreamSourceConnector, server, stream)) as task:
        assert read(task, 1)[0].timestamp is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_text_that_is_not_utf_8_is_a_bad_record(
    kind: type[SourceConnector], tolerance: str, server: RedisServer, client: Redis, stream: str
) -> None:
    client.xadd(stream, {"n": b"\xff"})
    client.xadd(stream, {"n": 2})
    with running(kind, config_of(kind, server, stream, errors_tolerance=tolerance)) as task:
        if tolerance == "none":
            with pytest.raises(ConnectError, match=r"not UTF-8.*redis.stream.values=bytes"):
                read(task, 1)
            return
        assert numbers(read(task, 1)) == [2]
        ((bad, _error),) = task.context.reported
        assert bad.value == b"n=\xff"
        if kind is RedisGroupSourceConnector:
            eventually(lambda: pending(client, stream) == 1, what="the good one to be acknowledged, and not the bad one")
            task.commit()  # when the bad record is in Kafka, too
            eventually(lambda: pending(client, stream) == 0)
    with running(
        kind, config_of(kind, server, f"{stream}", redis_stream_values="bytes", redis_stream_consumer_group="g2")
    ) as task:
        assert read(task, 2)[0].value["body"] == {"n": b"\xff"}


def pending(client: Redis, stream: str, group: str = "kafka-consumer-group") -> int:
    found: Any = client.xpending(stream, group)
    return int(found["pending"])


def test_a_stream_goes_on_after_its_offset(server: RedisServer, client: Redis, stream: str) -> None:
    add(client, stream, 0, 5)
    offsets, config = MemoryOffsets(), config_of(RedisStreamSourceConnector, server, stream, batch_size="2")
    with running(RedisStreamSourceConnector, config, offsets) as task:
        records = read(task, 5)
        offsets.store_all(records[:3])
    with running(RedisStreamSourceConnector, config, offsets) as task:
        assert numbers(read(task, 2)) == [3, 4]


def test_a_stream_that_is_read_from_its_end_keeps_the_end(server: RedisServer, client: Redis, stream: str) -> None:
    add(client, stream, 0, 3)
    offsets, config = MemoryOffsets(), config_of(RedisStreamSourceConnector, server, stream, redis_stream_offset="$")
    with running(RedisStreamSourceConnector, config, offsets) as task:
        assert not task.poll()
        for partition, offset in task.idle_offsets():
            offsets.store(partition, offset)
        assert task.idle_offsets() == []
    add(client, stream, 3, 5)
    with running(RedisStreamSourceConnector, config, offsets) as task:
        assert numbers(read(task, 2)) == [3, 4]


def test_a_stream_that_comes_later_is_waited_for(server: RedisServer, client: Redis, stream: str) -> None:
    with running(RedisStreamSourceConnector, config_of(RedisStreamSourceConnector, server, stream)) as task:
        assert not task.poll()
        add(client, stream, 0, 2)
        assert numbers(read(task, 2)) == [0, 1]


def test_streams_are_divided_among_tasks(server: RedisServer, client: Redis, stream: str) -> None:
    connector = RedisStreamSourceConnector()
    connector.start(config_of(RedisStreamSourceConnector, server, "a,b,c,d,e"))
    assert [each["redis.stream.name"] for each in connector.task_configs(2)] == ["a,c,e", "b,d"]
    assert len(connector.task_configs(9)) == 5


def test_a_redis_that_has_lost_data_fails_the_task_with_what_to_do(server: RedisServer, client: Redis, stream: str) -> None:
    add(client, stream, 0, 3)
    offsets, config = MemoryOffsets(), config_of(RedisStreamSourceConnector, server, stream)
    with running(RedisStreamSourceConnector, config, offsets) as task:
        offsets.store_all(read(task, 3))
    client.delete(stream)
    client.xadd(stream, {"n": 9}, id="5-0")
    with (
        running(RedisStreamSourceConnector, config, offsets) as task,
        pytest.raises(ConnectError, match="sluiceway offsets reset"),
    ):
        read(task, 1)


def test_entries_that_were_trimmed_or_deleted_unread_are_counted(
    server: RedisServer, client: Redis, stream: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    about: Any = client.info("server")
    if int(str(about["redis_version"]).split(".")[0]) < 7:
        pytest.skip("Redis counts what a stream was given from version 7 on")
    offsets, config = MemoryOffsets(), config_of(RedisStreamSourceConnector, server, stream)

    monkeypatch.setattr(stream_source, "CHECK_SECONDS", 0.0)

    def missed(task: Any) -> int:
        while task.poll():
            pass
        assert not task.poll()
        for partition, offset in task.idle_offsets():
            offsets.store(partition, offset)
        return int(task.metrics()["entries-missed"])

    add(client, stream, 0, 10)
    with running(RedisStreamSourceConnector, config, offsets) as task:
        records = read(task, 10)
        offsets.store_all(records[:4])
        client.xdel(stream, records[0].key)  # it was read
        add(client, stream, 10, 12)
        assert missed(task) == 0
    client.xtrim(stream, maxlen=5, approximate=False)  # 7 to 11: 4, 5, and 6 are behind the stored offset
    with running(RedisStreamSourceConnector, config, offsets) as task:
        assert numbers(read(task, 5)) == [7, 8, 9, 10, 11]
        assert missed(task) == 3
        add(client, stream, 12, 15)
        offsets.store_all(read(task, 3))
        assert missed(task) == 3
    with running(RedisStreamSourceConnector, config, offsets) as task:
        assert missed(task) == 0
    client.xtrim(stream, maxlen=0)
    with running(RedisStreamSourceConnector, config, offsets) as task:
        assert missed(task) == 0, "what was trimmed had been read"
        add(client, stream, 15, 19)
        client.xtrim(stream, maxlen=0)
        eventually(lambda: missed(task) == 4 or task.poll(), what="the newest to be missed, or read before they were trimmed")
        before = missed(task)
        client.delete(stream)
        add(client, stream, 0, 2)
        assert numbers(read(task, 2)) == [0, 1]
        assert missed(task) == before, "another stream with the same name"
    assert caplog.text.count("3 entries were trimmed or deleted before they were read") == 1


def test_offsets_are_checked_and_found_by_time(server: RedisServer, client: Redis, stream: str) -> None:
    client.xadd(stream, {"n": 0}, id="1700000000000-0")
    client.xadd(stream, {"n": 1}, id="1700000000005-1")
    connector, config = RedisStreamSourceConnector(), config_of(RedisStreamSourceConnector, server, stream)
    partition = {"stream": stream}
    assert connector.alter_offsets(
        config, [(partition, {"id": "5-1"}), (partition, {"id": "5-1", "entries": 3}), (partition, None)]
    )
    odd: list[dict[str, Any]] = [
        {"id": "1-0", "entries": "x"},
        {"id": "1-0", "entries": None},
        {"id": "1-0", "entries": -1},
        {"id": "1-0", "n": 1},
    ]
    odd += [{"id": "x"}, {"id": "1-99999999999999999999999"}, {"offset": 5}]
    for bad in odd:
        with pytest.raises(ConnectError):
            connector.alter_offsets(config, [(partition, bad)])

    def found(kind: OffsetTargetKind, number: int = 0) -> Any:
        ((_partition, offset),) = connector.find_offsets(config, OffsetTarget(kind, number), [])
        return offset

    assert found(OffsetTargetKind.EARLIEST) == {"id": "0-0"}
    assert found(OffsetTargetKind.LATEST) == found(OffsetTargetKind.TIMESTAMP, 1_800_000_000_000) == {"id": "1700000000005-1"}
    offsets = MemoryOffsets()
    offsets.store(partition, found(OffsetTargetKind.TIMESTAMP, 1_700_000_000_001))
    with running(RedisStreamSourceConnector, config, offsets) as task:
        assert numbers(read(task, 1)) == [1]
    with pytest.raises(BadRequestError, match="not numbered"):
        found(OffsetTargetKind.SHIFT, 1)


def test_validation_tries_the_login_and_names_keys_that_are_no_streams(server: RedisServer, client: Redis, stream: str) -> None:
    client.set(stream, "text")
    for kind in KINDS:
        found = kind.validate(config_of(kind, server, stream))
        assert "is no stream" in found["redis.stream.name"].errors[0]
        found = kind.validate({**config_of(kind, server, stream), "redis.password": "hush"})
        assert "login" in found["redis.password"].errors[0]
        assert "hush" not in str(found)
        assert kind().exactly_once_support({}) is (
            ExactlyOnceSupport.SUPPORTED if kind is RedisStreamSourceConnector else ExactlyOnceSupport.UNSUPPORTED
        )


def test_entries_are_acknowledged_once_kafka_has_them(server: RedisServer, client: Redis, stream: str) -> None:
    add(client, stream, 0, 10)
    with running(RedisGroupSourceConnector, config_of(RedisGroupSourceConnector, server, stream)) as task:
        records = read(task, 10, acknowledge=False)
        assert pending(client, stream) == 10
        for record in records[3:]:
            task.commit_record(record, 0, 0)
        eventually(lambda: pending(client, stream) == 3)
    with running(RedisGroupSourceConnector, config_of(RedisGroupSourceConnector, server, stream)) as task:
        assert numbers(read(task, 3)) == [0, 1, 2], "what was delivered to the task's name before"
        eventually(lambda: pending(client, stream) == 0)


def test_what_another_consumer_has_left_is_taken_over_and_what_a_task_holds_is_not(
    server: RedisServer, client: Redis, stream: str
) -> None:
    config = config_of(RedisGroupSourceConnector, server, stream, redis_stream_min_idle_ms="4000", redis_stream_held="3")
    add(client, stream, 0, 3)
    with running(RedisGroupSourceConnector, config) as first:
        held = read(first, 3, acknowledge=False)
        add(client, stream, 3, 5)
        client.xreadgroup("kafka-consumer-group", "gone", {stream: ">"})
        with running(RedisGroupSourceConnector, config, task=1) as second:
            assert numbers(read(second, 2)) == [3, 4]
            eventually(lambda: not second.poll())
        for record in held:
            first.commit_record(record, 0, 0)
        eventually(lambda: pending(client, stream) == 0)


def test_entries_that_were_deleted_while_they_were_pending_are_done(server: RedisServer, client: Redis, stream: str) -> None:
    add(client, stream, 0, 3)
    config = config_of(RedisGroupSourceConnector, server, stream)
    with running(RedisGroupSourceConnector, config) as task:
        records = read(task, 3, acknowledge=False)
    client.xdel(stream, records[1].key)
    with running(RedisGroupSourceConnector, config) as task:
        assert numbers(read(task, 2)) == [0, 2]
        eventually(lambda: pending(client, stream) == 0)
        assert task.metrics()["entries-deleted"] == 1


def test_a_group_that_is_deleted_is_created_again(server: RedisServer, client: Redis, stream: str) -> None:
    add(client, stream, 0, 2)
    with running(RedisGroupSourceConnector, config_of(RedisGroupSourceConnector, server, stream)) as task:
        assert numbers(read(task, 2)) == [0, 1]
        client.delete(stream)
        eventually(lambda: client.exists(stream))
        add(client, stream, 2, 4)
        assert numbers(read(task, 2)) == [2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_restarts_is_waited_for(kind: type[SourceConnector], into: Kafka, stream: str) -> None:
    with closing(RedisServer()) as own:
        own.start()
        config = config_of(kind, own, stream)
        with RunningTask(config, into.worker()) as task, closing(Redis.from_url(own.url)) as client:
            add(client, stream, 0, 5)
            assert in_kafka(into, stream, 5) == [0, 1, 2, 3, 4]
            own.end(signal.SIGKILL)
            eventually(lambda: "refused" in (task.reports.trace or ""), what="the reason in the status")
            own.start()
            add(client, stream, 5, 9)  # ids are times, so they are behind those that the restart has lost
            assert in_kafka(into, stream, 9) == list(range(9))
            eventually(lambda: task.reports.trace is None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_what_there_is_ends(
    kind: type[SourceConnector], into: Kafka, server: RedisServer, client: Redis, stream: str
) -> None:
    add(client, stream, 0, 3000)
    with RunningTask(config_of(kind, server, stream), into.worker(), bounded=True) as task:
        assert task.join().records == 3000
    assert in_kafka(into, stream, 3000) == list(range(3000))


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_that_restart_and_pause_lose_and_double_nothing(
    kind: type[SourceConnector], into: Kafka, server: RedisServer, client: Redis, stream: str
) -> None:
    offsets, total = Offsets(), 0
    for _ in range(4):
        with RunningTask(config_of(kind, server, stream, batch_size="7"), into.worker(), offsets=offsets) as task:
            add(client, stream, total, total + 200)
            eventually(lambda: into.end(stream) > total)  # noqa: B023
            task.commands.give(TaskCommand.PAUSE)
            task.wait_for(State.PAUSED)
            add(client, stream, total + 200, total + 300)
            task.commands.give(TaskCommand.RUN)
            eventually(lambda: into.end(stream) > total + 200)  # noqa: B023
        total += 300
    with RunningTask(config_of(kind, server, stream), into.worker(), offsets=offsets, bounded=True) as task:
        task.join()
    assert sorted(in_kafka(into, stream, total)) == list(range(total))
    assert into.end(stream) == total
    if kind is RedisGroupSourceConnector:
        assert pending(client, stream) == 0


class _Contract(SourceConnectorContract):
    records_within = poll_within = LIMIT

    @pytest.fixture
    def config(self, server: RedisServer, client: Redis, stream: str) -> dict[str, str]:
        add(client, stream, 0, 3)
        return {"redis.uri": server.url, "redis.stream.name": stream}


class TestStreamContract(_Contract):
    connector_class = RedisStreamSourceConnector


class TestGroupContract(_Contract):
    connector_class = RedisGroupSourceConnector
    resumable = False

    def identity(self, record: SourceRecord) -> object:
        return record.key


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_with_a_field_twice_is_a_bad_record(
    kind: type[SourceConnector], server: RedisServer, client: Redis, stream: str
) -> None:
    client.execute_command("XADD", stream, "*", "tag", "a", "tag", "b")  # type: ignore[no-untyped-call]
    client.xadd(stream, {"n": 1})
    with running(kind, config_of(kind, server, stream, errors_tolerance="all")) as task:
        assert numbers(read(task, 1)) == [1]
        ((bad, error),) = task.context.reported
    assert (bad.value, "a field twice" in str(error)) == (b"tag=a\ntag=b", True)


def test_the_end_of_a_quiet_stream_is_kept_beside_a_busy_one(server: RedisServer, client: Redis, stream: str) -> None:
    quiet, config = f"{stream}-quiet", config_of(RedisStreamSourceConnector, server, stream, redis_stream_offset="$")
    config["redis.stream.name"] = f"{stream},{quiet}"
    add(client, quiet, 0, 3)
    offsets = MemoryOffsets()
    with running(RedisStreamSourceConnector, config, offsets) as task:
        for number in range(5):
            add(client, stream, number, number + 1)
            records = task.poll() or ()
            offsets.store_all(records)
            for partition, offset in () if records else task.idle_offsets():
                offsets.store(partition, offset)
    add(client, quiet, 3, 4)
    with running(RedisStreamSourceConnector, config, offsets) as task:
        found = [each for each in read(task, 1) if each.value["stream"] == quiet] or read(task, 1)
    assert [each.value["body"]["n"] for each in found if each.value["stream"] == quiet] == ["3"]


def test_bad_entries_at_the_end_are_reported_once(kafka: Kafka, server: RedisServer, client: Redis, stream: str) -> None:
    add(client, stream, 0, 1)
    client.xadd(stream, {"n": b"\xff"})
    offsets, config = Offsets(), config_of(RedisStreamSourceConnector, server, stream, errors_tolerance="all")
    for _ in range(2):
        with RunningTask(config, kafka.worker(), offsets=offsets, bounded=True) as task:
            task.join()
    ((_partition, offset),) = offsets.all(stream)
    last: Any = client.xrevrange(stream, count=1)
    assert offset["id"] == str(Entry.parse(last[0][0].decode()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_ends_although_somebody_goes_on_writing(
    kind: type[SourceConnector], into: Kafka, server: RedisServer, stream: str
) -> None:
    stopping = threading.Event()

    def write() -> None:
        with closing(Redis.from_url(server.url)) as client:
            while not stopping.wait(0.01):
                client.xadd(stream, {"n": 1})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with RunningTask(config_of(kind, server, stream), into.worker(), bounded=True) as task:
            assert not task.join().failed
    finally:
        stopping.set()
        writer.join()


def test_a_bad_entry_does_not_keep_a_run_from_its_end(into: Kafka, server: RedisServer, client: Redis, stream: str) -> None:
    client.xadd(stream, {"n": b"\xff"})
    add(client, stream, 0, 3)
    config = config_of(RedisGroupSourceConnector, server, stream, errors_tolerance="all", redis_stream_held="2")
    with RunningTask(config, into.worker(offset_flush_interval_ms="3600000"), bounded=True) as task:
        assert task.join().records == 3
    assert pending(client, stream) == 0


def test_a_task_that_fails_acknowledges_what_kafka_has(into: Kafka, server: RedisServer, client: Redis, stream: str) -> None:
    add(client, stream, 0, 30)
    client.xadd(stream, {"n": b"\xff"})
    with RunningTask(config_of(RedisGroupSourceConnector, server, stream, batch_size="10"), into.worker()) as task:
        assert task.join().failed
    assert pending(client, stream) - 1 == 30 - into.end(stream)


@pytest.mark.parametrize("begin", ["0-0", "$"])
def test_a_group_that_is_destroyed_is_created_behind_what_was_read(
    server: RedisServer, client: Redis, stream: str, begin: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = config_of(RedisGroupSourceConnector, server, stream, redis_stream_offset=begin)
    with running(RedisGroupSourceConnector, config) as task:
        eventually(lambda: client.exists(stream))
        eventually(lambda: not task.poll())
        add(client, stream, 0, 2)
        assert numbers(read(task, 2)) == [0, 1]
        with client.pipeline() as pipeline:
            pipeline.xgroup_destroy(stream, "kafka-consumer-group")
            pipeline.xadd(stream, {"n": 2})
            pipeline.xadd(stream, {"n": 3})
            pipeline.execute()
        assert numbers(read(task, 2)) == [2, 3]
    assert "was deleted while it was read" in caplog.text


def test_what_was_claimed_is_not_lost_with_an_error_in_another_stream(server: RedisServer, client: Redis, stream: str) -> None:
    other = f"{stream}-other"
    config = config_of(RedisGroupSourceConnector, server, stream, redis_stream_min_idle_ms="1000")
    config["redis.stream.name"] = f"{stream},{other}"
    with running(RedisGroupSourceConnector, config) as task:
        eventually(lambda: client.exists(other))
        task.paused()
        eventually(lambda: not task.poll())
        add(client, stream, 0, 1)
        client.xreadgroup("kafka-consumer-group", "gone", {stream: ">"})
        client.xgroup_destroy(other, "kafka-consumer-group")
        add(client, other, 1, 2)
        task.resumed()
        assert sorted(numbers(read(task, 2))) == [0, 1]
        eventually(lambda: pending(client, stream) == 0)


def test_an_idle_group_keeps_its_connection_with_the_shortest_timeout(server: RedisServer, client: Redis, stream: str) -> None:
    with running(RedisGroupSourceConnector, config_of(RedisGroupSourceConnector, server, stream, redis_timeout="1")) as task:
        eventually(lambda: client.exists(stream))
        for _ in range(3):
            assert not task.poll()
        add(client, stream, 0, 1)
        assert numbers(read(task, 1)) == [0]
        assert task.metrics()["connections-lost"] == 0


def test_a_task_holds_no_more_entries_than_allowed_of_many_streams(server: RedisServer, client: Redis, stream: str) -> None:
    names = [f"{stream}-{number}" for number in range(10)]
    for name in names:
        add(client, name, 0, 3)
    config = config_of(RedisGroupSourceConnector, server, stream, redis_stream_held="4")
    with running(RedisGroupSourceConnector, {**config, "redis.stream.name": ",".join(names)}) as task:
        eventually(lambda: task.metrics()["messages-held"] == 4)
        assert len(read(task, 30)) == 30


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_does_not_end_before_the_server_has_answered(kind: type[SourceConnector], into: Kafka, stream: str) -> None:
    with (
        closing(RedisServer()) as own,
        RunningTask(config_of(kind, own, stream, redis_stream_offset="$"), into.worker(), bounded=True) as task,
    ):
        eventually(lambda: "refused" in (task.reports.trace or ""), what="the reason in the status")
        asked = task.commands._asked
        eventually(lambda: task.result or task.commands._asked > asked + 5, what="further attempts")
        assert task.result is None
        own.start()
        assert not task.join().failed


def test_entries_are_moved_to_a_topic_in_the_interval_of_their_ids_and_once(
    kafka: Kafka, server: RedisServer, client: Redis, unique: Callable[[str], str], chance: random.Random
) -> None:
    of_hours = hours(1_767_225_600_000, 4)
    streams, topic = [unique("stream") for _ in range(2)], kafka.create(unique("topic"), 2)
    ids = {f"{of_hours[0].start - 1}-7", f"{of_hours[-1].end}-0"}
    for hour in of_hours:
        ids |= {f"{hour.start}-0", f"{hour.start}-1", f"{hour.end - 1}-9"}
        ids |= {f"{chance.randrange(hour.start, hour.end)}-{number}" for number in range(50)}
    for stream in streams:
        for number, id_ in enumerate(sorted(ids, key=Entry.parse)):
            client.xadd(stream, {"n": number}, id_)
    worker = worker_for(kafka.bootstrap, unique, **{"exactly.once.source.support": "enabled"})
    config = config_of(RedisStreamSourceConnector, server, ",".join(streams), topic=topic, batch_size="10", name=unique("c"))
    machine = Machine(IntervalMover(worker, config, tasks=2), of_hours, chance)
    machine.run(4)
    found = [json.loads(message.value() or b"")["body"]["n"] for message in kafka.read_committed(topic)]
    assert sorted(map(int, found)) == sorted(2 * list(range(1, len(ids) - 1))), "all but the first and the last one"
    entries = machine.mover.ledger().entries.values()
    assert {entry.state for entry in entries} == {IntervalState.DONE}
