"""The source of Kinesis' streams on an imitation: positions, splits and merges, trimmed records, and a service in trouble."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from sluiceway.api import OffsetTarget, OffsetTargetKind, SourceRecord
from sluiceway.connectors.aws import KinesisSourceConnector
from sluiceway.errors import BadRequestError, ConfigError, ConnectError, RetriableError
from sluiceway.runtime.memory import MemoryConnectorContext, MemoryOffsets, MemorySourceContext
from sluiceway.testing import SourceConnectorContract
from support.aggregated import aggregated
from support.aws_server import AwsServer
from support.engine import RunningTask
from support.eventually import LIMIT, eventually
from support.faults.proxy import TcpProxy
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

BYTES = {"key.converter": "StringConverter", "value.converter": "ByteArrayConverter"}
HOUR = 3_600_000  # milliseconds


@pytest.fixture(scope="module")
def server() -> Iterator[AwsServer]:
    with AwsServer() as server:
        yield server


@pytest.fixture
def stream(server: AwsServer, unique: Callable[[str], str]) -> str:
    server.ask("clear")
    name = unique("stream")
    server.create_stream(name)
    return name


def put(server: AwsServer, stream: str, low: int, high: int, key: str | None = None) -> str:
    return server.put(stream, *map(str, range(low, high)), key=key)


def config_of(server: AwsServer, stream: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    own = {"name": stream, "connector.class": "KinesisSource", "kinesis.stream": stream}
    return {**own, **server.config("kinesis"), "kinesis.empty.records.backoff.ms": "200", **BYTES, **given}


@contextmanager
def connector(config: dict[str, str], offsets: MemoryOffsets | None = None) -> Iterator[Any]:
    made = KinesisSourceConnector()
    made.initialize(MemoryConnectorContext(offsets))
    made.start(config)
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def running(config: dict[str, str], offsets: MemoryOffsets | None = None) -> Iterator[Any]:
    """A task without Kafka."""
    with connector(config, offsets) as made:
        [given] = made.task_configs(1)
    task = made.task_class()
    task.initialize(MemorySourceContext(given, offsets))
    task.start(given)
    try:
        yield task
    finally:
        task.stop()


def read(task: Any, count: int) -> list[SourceRecord]:
    records: list[SourceRecord] = []
    eventually(lambda: records.extend(polled(task)) or len(records) >= count, what=f"{count} records")
    return records


def polled(task: Any) -> list[SourceRecord]:
    try:
        return list(task.poll() or ())
    except RetriableError:
        return []


def idle(task: Any, offsets: MemoryOffsets) -> None:
    """Let the task poll, and store what the runtime would."""
    for record in polled(task):
        offsets.store_all([record])
    for partition, offset in task.idle_offsets():
        offsets.store(partition, offset)


def numbers(records: Sequence[SourceRecord]) -> list[int]:
    return [int(record.value) for record in records]


def shard(number: int) -> str:
    return f"shardId-{number:012}"


def partition(stream: str, number: int = 0) -> dict[str, str]:
    return {"stream": stream, "shard": shard(number)}


def later() -> int:
    """Wait until Kinesis' clock, which has whole seconds, is behind all records. Return its time in milliseconds."""
    began = time.time()
    eventually(lambda: time.time() - began > 1.1)
    return int(time.time() * 1000)


def test_a_record_has_the_data_key_time_and_sequence(server: AwsServer, stream: str) -> None:
    last = server.put(stream, b"\xff", key="k")
    with running(config_of(server, stream)) as task:
        [record] = read(task, 1)
    assert (record.topic, record.value, record.key) == (stream, b"\xff", "k")
    assert record.source_partition == partition(stream)
    assert record.source_offset == {"sequence": last, "read": record.timestamp}
    assert [(each.key, each.value) for each in record.headers] == [("kinesis.shard", shard(0)), ("kinesis.sequence", last)]


def test_values_may_be_texts_and_others_are_bad_records(server: AwsServer, stream: str) -> None:
    server.put(stream, b"\xff", "1", key="k")
    config = config_of(server, stream, kinesis_values="string", kinesis_headers_enabled="false", errors_tolerance="all")
    with running({**config, "kafka.topic": "t-${stream}"}) as task:
        [record] = read(task, 1)
        [(bad, error)] = task.context.reported
    assert (record.topic, record.value, record.headers) == (f"t-{stream}", "1", ())
    assert (bad.value, "kinesis.values=bytes" in str(error)) == (b"\xff", True)


def test_a_task_continues_behind_the_last_record(server: AwsServer, stream: str) -> None:
    offsets = MemoryOffsets()
    put(server, stream, 0, 10)
    with running(config_of(server, stream, kinesis_record_limit="3"), offsets) as task:
        first = read(task, 6)
        offsets.store_all(first[:4])
    with running(config_of(server, stream), offsets) as task:
        assert numbers(read(task, 6)) == list(range(4, 10))


def test_aggregated_records_are_single_ones_and_may_be_continued_within(server: AwsServer, stream: str) -> None:
    server.put(stream, aggregated([("a", b"0"), ("b", b"1"), ("a", b"2")]), "3", key="k")
    offsets = MemoryOffsets()
    with running(config_of(server, stream), offsets) as task:
        records = read(task, 4)
    assert [(each.key, each.value) for each in records] == [("a", b"0"), ("b", b"1"), ("a", b"2"), ("k", b"3")]
    assert [(each.source_offset or {}).get("subsequence") for each in records] == [0, 1, None, None]
    assert {each.key: each.value for each in records[1].headers}["kinesis.subsequence"] == 1
    for done in range(4):
        offsets.store_all(records[done : done + 1])
        with running(config_of(server, stream), offsets) as task:
            if done < 3:
                assert numbers(read(task, 3 - done)) == list(range(done + 1, 4))
            else:
                assert not polled(task)


def test_a_damaged_aggregated_record_is_a_bad_record(server: AwsServer, stream: str) -> None:
    server.put(stream, aggregated([("a", b"0")], keys=[]), "1", key="k")
    with running(config_of(server, stream, errors_tolerance="all")) as task:
        assert numbers(read(task, 1)) == [1]
        [(_bad, error)] = task.context.reported
        assert "aggregated record" in str(error)


def test_a_split_shard_is_read_before_those_that_it_became(server: AwsServer, stream: str) -> None:
    put(server, stream, 0, 50)
    server.split(stream, shard(0))
    put(server, stream, 50, 100)
    with running(config_of(server, stream, kinesis_record_limit="7")) as task:
        found = numbers(read(task, 100))
        assert found[:50] == list(range(50))
        assert sorted(found[50:]) == list(range(50, 100))
        assert task.metrics()["shards-open"] == 2


def test_merged_shards_are_read_before_the_one_that_they_became(server: AwsServer, unique: Callable[[str], str]) -> None:
    stream = unique("stream")
    server.create_stream(stream, 2)
    put(server, stream, 0, 50)
    server.merge(stream, shard(0), shard(1))
    put(server, stream, 50, 100)
    offsets = MemoryOffsets()
    with running(config_of(server, stream, kinesis_record_limit="7"), offsets) as task:
        found = read(task, 100)
        assert sorted(numbers(found[:50])) == list(range(50))
        assert numbers(found[50:]) == list(range(50, 100))
        offsets.store_all(found)
        idle(task, offsets)
        eventually(lambda: idle(task, offsets) or len([each for _, each in offsets.all() if each.get("ended")]) == 2)
    with connector(config_of(server, stream), offsets) as made:
        assert [each["kinesis.task.shards"] for each in made.task_configs(3)] == [shard(2)]


def test_the_end_of_a_shard_is_read_again_if_it_was_not_stored(server: AwsServer, stream: str) -> None:
    put(server, stream, 0, 5)
    server.split(stream, shard(0))
    put(server, stream, 5, 10)
    offsets = MemoryOffsets()
    with running(config_of(server, stream), offsets) as task:
        offsets.store_all(read(task, 10)[:7])
    with running(config_of(server, stream), offsets) as task:
        assert len(read(task, 3)) == 3
        eventually(lambda: task.metrics()["shards-open"] == 2)
        assert not polled(task)


def test_tasks_share_shards_and_those_made_of_one_another_stay_together(server: AwsServer, unique: Callable[[str], str]) -> None:
    stream = unique("stream")
    server.create_stream(stream, 4)
    server.split(stream, shard(0))
    offsets = MemoryOffsets()
    config = config_of(server, stream, kinesis_shards_interval_ms="100")
    with connector(config, offsets) as made:
        dealt = [set(each["kinesis.task.shards"].split(",")) for each in made.task_configs(8)]
        assert dealt == [{shard(0), shard(4), shard(5)}, {shard(1)}, {shard(2)}, {shard(3)}]
        context = made.context
        assert context.reconfigurations == 0
        offsets.store(partition(stream, 0), {"ended": True})
        eventually(lambda: context.reconfigurations, what="the new shards for tasks of their own")
        dealt = [set(each["kinesis.task.shards"].split(",")) for each in made.task_configs(8)]
        assert sorted(map(sorted, dealt)) == [[shard(number)] for number in range(1, 6)]
        before = context.reconfigurations
        server.split(stream, shard(1))
        eventually(lambda: context.reconfigurations > before, what="the new shards")
        dealt = [set(each["kinesis.task.shards"].split(",")) for each in made.task_configs(2)]
        assert len(dealt) == 2
        [family] = [each for each in dealt if shard(1) in each]
        assert {shard(6), shard(7)} <= family


def test_a_reshard_beside_a_connector_loses_and_doubles_nothing(server: AwsServer, kafka: Kafka, stream: str) -> None:
    topic = kafka.create(stream)
    config = config_of(server, stream)
    offsets = MemoryOffsets()
    put(server, stream, 0, 20)
    for step in range(3):
        with running(config, offsets) as task:
            offsets.store_all(read(task, 20))
            found = server.open_shards(stream)
            server.split(stream, found[0]) if step % 2 == 0 else server.merge(stream, found[0], found[1])
            put(server, stream, 20 + 20 * step, 40 + 20 * step)
    with RunningTask(task_config(config, offsets), kafka.worker(), bounded=True) as last:
        last.join()
    assert len(kafka.values(topic, 80)) == 80  # its store is empty: all shards from their beginnings, and parents first


def task_config(config: dict[str, str], offsets: MemoryOffsets) -> dict[str, str]:
    with connector(config) as made:
        [given] = made.task_configs(1)
        return dict(given)


@pytest.mark.parametrize("position", ["LATEST", "AT_TIMESTAMP"])
def test_a_position_that_was_found_is_kept(server: AwsServer, stream: str, position: str) -> None:
    put(server, stream, 0, 5)
    more, moment = {"kinesis_position": position}, later()
    if position == "AT_TIMESTAMP":
        more["kinesis_shard_timestamp"] = str(moment)
    offsets = MemoryOffsets()
    with running(config_of(server, stream, **more), offsets) as task:
        eventually(lambda: idle(task, offsets) or len(offsets))
    put(server, stream, 5, 8)
    with running(config_of(server, stream, **more), offsets) as task:
        assert numbers(read(task, 3)) == [5, 6, 7]


def test_new_shards_of_a_stream_that_is_read_from_its_end_are_read_from_their_beginning(server: AwsServer, stream: str) -> None:
    put(server, stream, 0, 5)
    later()
    config = config_of(server, stream, kinesis_position="LATEST")
    offsets = MemoryOffsets()
    with running(config, offsets) as task:
        eventually(lambda: idle(task, offsets) or len(offsets))
    server.split(stream, shard(0))
    put(server, stream, 5, 15)
    with running(config, offsets) as task:
        assert sorted(numbers(read(task, 10))) == list(range(5, 15))


def test_an_iterator_that_has_expired_is_renewed(server: AwsServer, stream: str) -> None:
    put(server, stream, 0, 5)
    with running(config_of(server, stream)) as task:
        assert numbers(read(task, 5)) == list(range(5))
        server.fail("GetRecords", "ExpiredIteratorException")
        put(server, stream, 5, 9)
        assert numbers(read(task, 4)) == list(range(5, 9))
    assert server.faults_left() == 0
    assert len(server.requests("GetShardIterator")) == 2


def test_a_shard_that_is_read_too_fast_is_read_again_later(server: AwsServer, stream: str) -> None:
    server.split(stream, shard(0))
    server.fail("GetRecords", "ProvisionedThroughputExceededException", times=4)
    put(server, stream, 0, 20)
    with running(config_of(server, stream)) as task:
        assert sorted(numbers(read(task, 20))) == list(range(20))
    assert server.faults_left() == 0


def test_a_position_that_may_be_trimmed_fails_the_task_unless_that_is_allowed(server: AwsServer, stream: str) -> None:
    last = put(server, stream, 0, 5)
    put(server, stream, 5, 10)
    server.ask("trim", stream=stream, to=str(int(last) + 2))
    now = int(time.time() * 1000)
    offsets = MemoryOffsets([(partition(stream), {"sequence": last, "read": now - 25 * HOUR})])
    with running(config_of(server, stream), offsets) as task, pytest.raises(ConnectError, match=r"records may be lost.*=oldest"):
        eventually(task.poll)
    with running(config_of(server, stream, kinesis_trimmed="oldest"), offsets) as task:
        assert numbers(read(task, 3)) == [7, 8, 9]
        assert task.metrics()["shards-trimmed"] == 1
    offsets.store(partition(stream), {"sequence": last, "read": now - 23 * HOUR})
    with running(config_of(server, stream), offsets) as task:
        assert numbers(read(task, 3)) == [7, 8, 9]


def test_a_shard_without_records_does_not_count_as_trimmed(server: AwsServer, stream: str) -> None:
    last = put(server, stream, 0, 5)
    now = int(time.time() * 1000)
    offsets = MemoryOffsets([(partition(stream), {"sequence": last, "read": now - 23 * HOUR})])
    with running(config_of(server, stream), offsets) as task:
        eventually(lambda: idle(task, offsets) or (offsets.offset(partition(stream)) or {})["read"] >= now)
    assert (offsets.offset(partition(stream)) or {})["sequence"] == last


def test_a_shard_that_expired_unread_fails_the_connector_unless_that_is_allowed(server: AwsServer, stream: str) -> None:
    last = put(server, stream, 0, 5)
    server.split(stream, shard(0))
    put(server, stream, 5, 10)
    offsets = MemoryOffsets([(partition(stream), {"sequence": last})])
    server.ask("expire", stream=stream, shard=shard(0))
    with connector(config_of(server, stream), offsets) as made, pytest.raises(ConnectError, match=r"expired.*kinesis\.trimmed"):
        made.task_configs(1)
    config = config_of(server, stream, kinesis_trimmed="oldest", kinesis_position="LATEST")
    with running(config, offsets) as task:
        assert sorted(numbers(read(task, 5))) == list(range(5, 10))


def test_a_stream_that_was_created_again_fails_the_task(server: AwsServer, stream: str) -> None:
    offsets = MemoryOffsets([(partition(stream), {"ended": True})])
    with connector(config_of(server, stream), offsets) as made, pytest.raises(ConnectError, match="created again"):
        made.task_configs(1)
    server.fail("GetShardIterator", "InvalidArgumentException")
    offsets = MemoryOffsets([(partition(stream), {"sequence": "1"})])
    with running(config_of(server, stream), offsets) as task, pytest.raises(ConnectError, match="does not take the position"):
        eventually(task.poll)


def test_a_service_that_cannot_be_reached_is_waited_for(server: AwsServer, stream: str) -> None:
    with TcpProxy(server.port) as proxy:
        config = {**config_of(server, stream), **server.config("kinesis", f"http://127.0.0.1:{proxy.port}")}
        put(server, stream, 0, 5)
        with running(config) as task:
            assert numbers(read(task, 5)) == list(range(5))
            proxy.drop()

            def refusal() -> str:
                try:
                    task.poll()
                except RetriableError as error:
                    return str(error)
                return ""

            assert "Amazon Kinesis at http://127" in eventually(refusal)
            proxy.restore()
            put(server, stream, 5, 9)
            assert numbers(read(task, 4)) == list(range(5, 9))


def test_a_connector_waits_for_a_service_that_cannot_be_reached(server: AwsServer, stream: str) -> None:
    with TcpProxy(server.port) as proxy:
        proxy.drop()
        given = {**server.config("kinesis", f"http://127.0.0.1:{proxy.port}"), "kinesis.shards.interval.ms": "100"}
        with connector({**config_of(server, stream), **given}) as made:
            assert made.task_configs(1) == []
            assert "Amazon Kinesis" in made.context.waits_for[0]
            proxy.restore()
            eventually(lambda: made.context.reconfigurations)
            assert [each["kinesis.task.shards"] for each in made.task_configs(1)] == [shard(0)]


def test_a_stream_that_does_not_exist_is_an_error_of_its_key(server: AwsServer, stream: str) -> None:
    found = KinesisSourceConnector.validate(config_of(server, "nowhere"))
    assert [name for name, each in found.items() if each.errors] == ["kinesis.stream"]
    with pytest.raises(ConfigError, match=r"nowhere for configuration kinesis\.stream"), connector(config_of(server, "nowhere")):
        pass


def test_a_run_of_what_there_is_ends_also_with_closed_shards(server: AwsServer, kafka: Kafka, stream: str) -> None:
    topic = kafka.create(stream)
    put(server, stream, 0, 200)
    server.split(stream, shard(0))
    put(server, stream, 200, 400)
    with RunningTask(task_config(config_of(server, stream), MemoryOffsets()), kafka.worker(), bounded=True) as task:
        assert task.join().records == 400
    assert sorted(int(value) for value in kafka.values(topic, 400)) == list(range(400))


def test_offsets_of_times_and_ends_are_found(server: AwsServer, stream: str) -> None:
    put(server, stream, 0, 5)
    server.split(stream, shard(0))
    middle = later()
    put(server, stream, 5, 10)
    config = config_of(server, stream)
    made = KinesisSourceConnector()

    def after(target: OffsetTarget) -> list[int]:
        found = MemoryOffsets([(each, offset or {}) for each, offset in made.find_offsets(config, target, [])])
        made.alter_offsets(config, found.all())
        with running(config, found) as task:
            put(server, stream, 99, 100)
            records: list[int] = []
            eventually(lambda: records.extend(numbers(polled(task))) or 99 in records)
            eventually(lambda: records.extend(numbers(polled(task))) or all(each.at_end for each in task._readers.values()))
            return sorted(each for each in records if each != 99)

    assert after(OffsetTarget(OffsetTargetKind.EARLIEST)) == list(range(10))
    assert after(OffsetTarget(OffsetTargetKind.TIMESTAMP, middle)) == list(range(5, 10))
    assert after(OffsetTarget(OffsetTargetKind.LATEST)) == []
    with pytest.raises(BadRequestError, match="no numbers"):
        made.find_offsets(config, OffsetTarget(OffsetTargetKind.SHIFT, 1), [])
    for wrong in ({"stream": stream}, {"stream": "other", "shard": shard(0)}):
        with pytest.raises(ConnectError, match="A partition is"):
            made.alter_offsets(config, [(wrong, {"from": 0})])
    with pytest.raises(ConnectError, match="is no offset of a shard"):
        made.alter_offsets(config, [(partition(stream), {"sequence": 5})])


class TestContract(SourceConnectorContract):
    connector_class = KinesisSourceConnector
    records_within = poll_within = LIMIT

    @pytest.fixture
    def config(self, server: AwsServer, stream: str) -> dict[str, str]:
        put(server, stream, 0, 3)
        return {**server.config("kinesis"), "kinesis.stream": stream}
