"""File sinks on a real HDFS: the daemons of Apache Hadoop, and the client without Java."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.files.commit_log import CommitLog
from sluiceway.connectors.files.filesystem.hdfs import HdfsFileSystem, HdfsLogin
from sluiceway.discovery import connector_class
from sluiceway.errors import FencedError
from support.clusters.daemons import running
from support.clusters.hadoop import Hdfs
from support.engine import RunningTask
from support.file_sinks import TOPIC, FileSink, row, rows
from support.jdbc_sink import JSON
from support.kafka import Kafka

LINE_FIELDS = [
    {"field": "at", "type": "int64", "optional": False},
    {"field": "level", "type": "string", "optional": False},
    {"field": "line", "type": "string", "optional": False},
]
P0 = TopicPartition(TOPIC, 0)


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with running(Hdfs(tmp_path_factory.mktemp("hdfs"), nodes=1)) as made:
        made.await_ready()
        yield made


@pytest.fixture
def config(hdfs: Hdfs, request: pytest.FixtureRequest) -> dict[str, str]:
    return {
        "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
        "store.url": f"{hdfs.url}/{request.node.name.replace('[', '-').replace(']', '')}",
        "format.class": "io.confluent.connect.hdfs.parquet.ParquetFormat",
        "flush.size": "100",
        "retry.backoff.ms": "100",
    }


def client(hdfs: Hdfs) -> HdfsFileSystem:
    return HdfsFileSystem(HdfsLogin(hdfs.url))


def found(hdfs: Hdfs, folder: str) -> dict[str, list[int]]:
    """Return the ids in each file of a folder."""
    fs = client(hdfs)
    return {
        name: [each["id"] for each in pq.read_table(io.BytesIO(fs.read(f"{folder}/{name}"))).to_pylist()]
        for name in sorted(fs.names(folder))
    }


def root(config: dict[str, str]) -> str:
    return "/" + config["store.url"].rpartition("/")[2]


def name(first: int, last: int) -> str:
    return f"{TOPIC}+0+{first:010d}+{last:010d}.parquet"


def test_files_hold_each_record_once(hdfs: Hdfs, config: dict[str, str]) -> None:
    sink = FileSink(config, [P0])
    sink.put(rows(0, 250), columns=True)
    assert sink.commit() == {P0: 200}
    sink.task.stop()
    sink = FileSink(config, [P0])
    assert sink.next == {P0: 200}
    sink.put(rows(200, 260))
    assert sink.end() == {P0: 260}
    expected = {name(first, end - 1): list(range(first, end)) for first, end in [(0, 100), (100, 200), (200, 260)]}
    assert found(hdfs, f"{root(config)}/topics/{TOPIC}/partition=0") == expected


def test_hourly_folders(hdfs: Hdfs, config: dict[str, str]) -> None:
    hourly = {"partitioner.class": "HourlyPartitioner", "timezone": "UTC", "locale": "en", "timestamp.extractor": "Record"}
    sink = FileSink({**config, **hourly}, [P0])
    sink.put([row(number, timestamp=1_700_000_000_000 + number * 3_600_000) for number in range(3)])
    sink.end()
    day = f"{root(config)}/topics/{TOPIC}/year=2023/month=11"
    assert [client(hdfs).folders(f"{day}/day={each}") for each in ("14", "15")] == [["hour=22", "hour=23"], ["hour=00"]]


@pytest.mark.parametrize("point", ["planned", "renamed"])
def test_a_commit_that_was_interrupted_is_finished(
    hdfs: Hdfs, config: dict[str, str], point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    publish = CommitLog.publish

    def dying(self: CommitLog, entry: Any) -> None:
        if entry.files:
            if point == "renamed":
                publish(self, entry)
            raise Killed

    sink = FileSink(config, [P0])
    with monkeypatch.context() as patch:
        patch.setattr(CommitLog, "publish", dying)
        with pytest.raises(Killed):
            sink.put(rows(0, 100))
    again = FileSink(config, [P0])
    assert again.next == {P0: 100}
    again.end()
    assert found(hdfs, f"{root(config)}/topics/{TOPIC}/partition=0") == {name(0, 99): list(range(100))}
    log = f"{root(config)}/logs/sink/{TOPIC}/0"
    assert not [each for each in client(hdfs).names(log) if each.endswith(".tmp")]


def test_only_one_of_two_writers_commits(hdfs: Hdfs) -> None:
    first, second = CommitLog(client(hdfs), "/race"), CommitLog(client(hdfs), "/race")
    known = first.append(None, epoch=0, end=1)
    second.append(known, epoch=0, end=2)
    with pytest.raises(FencedError):
        first.append(known, epoch=0, end=3)
    assert client(hdfs).names("/race")
    newest = second.newest()
    assert newest is not None
    assert newest.end == 2


def test_a_foreign_file_is_left_alone(hdfs: Hdfs, config: dict[str, str]) -> None:
    path = f"{root(config)}/topics/{TOPIC}/partition=0/{name(0, 99)}"
    assert client(hdfs).create(path, b"foreign")
    sink = FileSink(config, [P0])
    with pytest.raises(Exception, match="exists already and is not from this connector"):
        sink.put(rows(0, 100))
    assert client(hdfs).read(path) == b"foreign"


def test_validation_tries_the_name_node(hdfs: Hdfs, config: dict[str, str]) -> None:
    connector = connector_class(config["connector.class"])
    assert not [each.errors for each in connector.validate(config).values() if each.errors]
    wrong = connector.validate({**config, "store.url": "hdfs://127.0.0.1:1"})
    assert [name for name, each in wrong.items() if each.errors] in ([], ["store.url"])


@pytest.mark.long
@pytest.mark.kafka
def test_log_lines_in_hourly_folders_are_queried_with_sql(hdfs: Hdfs, kafka_bootstrap: str, unique: Callable[[str], str]) -> None:
    from pyspark.sql import SparkSession

    kafka, schema = Kafka(kafka_bootstrap), {"type": "struct", "fields": LINE_FIELDS}
    topic = kafka.create(unique("logs"), 2)
    lines = [
        {"at": 1_700_000_000_000 + number * 60_000, "level": ["ERROR", "INFO", "INFO"][number % 3], "line": f"line {number}"}
        for number in range(600)
    ]
    values = [json.dumps({"schema": schema, "payload": line}) for line in lines]
    for partition in (0, 1):
        kafka.produce(topic, *values[partition::2], partition=partition)
    keys = {
        "name": f"sink-{topic}",
        "connector.class": "ParquetSink",
        "topics": topic,
        "path": f"{hdfs.url}/lake",
        "partitioner.class": "HourlyPartitioner",
        "timestamp.extractor": "RecordField",
        "timestamp.field": "at",
        **JSON,
    }
    with RunningTask(keys, {"bootstrap.servers": kafka.bootstrap}, bounded=True) as running:
        assert not running.join().failed, running.result
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        spark.read.parquet(f"{hdfs.url}/lake/topics/{topic}").createOrReplaceTempView("logs")
        by_hour = spark.sql("select day, hour, count(*) n from logs where level = 'ERROR' group by day, hour order by day, hour")
        hours = [(each.day, each.hour, each.n) for each in by_hour.collect()]
    finally:
        spark.stop()
    assert sum(count for _, _, count in hours) == 200
    assert hours[:2] == [(14, 22, 16), (14, 23, 20)]
    assert len(hours) == 11


@pytest.mark.long
def test_a_name_node_that_is_away_is_waited_for(hdfs: Hdfs, config: dict[str, str]) -> None:
    sink = FileSink(config, [P0])
    sink.put(rows(0, 50))
    hdfs.name_node.stop(5)
    try:
        with pytest.raises(Exception, match=r"Cannot .*Check that the storage is reachable"):
            sink.put(rows(50, 110))
    finally:
        hdfs.start()
        hdfs.await_ready()
    sink.put(rows(50, 110))
    assert sink.next == {P0: 0}
    sink.put(rows(0, 110))
    assert sink.end() == {P0: 110}
    assert ids_below(hdfs, config) == list(range(110))


@pytest.mark.long
def test_a_full_quota_is_waited_for(hdfs: Hdfs, config: dict[str, str]) -> None:
    client(hdfs).create(f"{root(config)}/made", b"")
    hdfs.admin("DFSAdmin", "-setSpaceQuota", "1m", root(config))  # less than one block
    sink = FileSink(config, [P0])
    with pytest.raises(Exception, match=r"Cannot .*quota.* Raise the quota, or write to another path\.$"):
        sink.put(rows(0, 110))
    hdfs.admin("DFSAdmin", "-clrSpaceQuota", root(config))
    put_again(sink, 110)
    assert ids_below(hdfs, config) == list(range(110))


@pytest.mark.long
def test_a_name_node_in_safe_mode_is_waited_for(hdfs: Hdfs, config: dict[str, str]) -> None:
    sink = FileSink(config, [P0])
    sink.put(rows(0, 50))
    hdfs.admin("DFSAdmin", "-safemode", "enter")
    try:
        with pytest.raises(Exception, match=r"Cannot .*safe mode"):
            sink.put(rows(50, 110))
    finally:
        hdfs.admin("DFSAdmin", "-safemode", "leave")
    put_again(sink, 110)
    assert ids_below(hdfs, config) == list(range(110))


def put_again(sink: FileSink, end: int) -> None:
    """Put records again from the offset that the task seeks to after a failure, and commit them."""
    sink.put([])
    sink.put(rows(sink.next.get(P0, 0), end))
    assert sink.end() == {P0: end}


def ids_below(hdfs: Hdfs, config: dict[str, str]) -> list[int]:
    written = found(hdfs, f"{root(config)}/topics/{TOPIC}/partition=0")
    return sorted(number for ids in written.values() for number in ids)
