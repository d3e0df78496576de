"""Names that records choose are one folder each on a real HDFS, and in what Spark's own writers write."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluiceway.api import TopicPartition
from sluiceway.connectors.files.filesystem.hdfs import HdfsFileSystem, HdfsLogin
from sluiceway.connectors.path_elements import path_element
from sluiceway.connectors.spark.sink import SparkSinkTask
from sluiceway.spark.session import local_context
from support.clusters.daemons import running
from support.clusters.hadoop import Hdfs
from support.file_sinks import TOPIC, FileSink, row
from support.hostile_names import WRITABLE_PIECES

pytestmark = [pytest.mark.spark, pytest.mark.long]

PIECES = [*WRITABLE_PIECES, "*", "{a,b}", "[a]", "_", "$", "&", ";", "`", "|", "<", "\x7f"]


def _names(count: int) -> list[str]:
    dice = random.Random(1)  # noqa: S311 (test data)
    return list(dict.fromkeys([*PIECES, *("".join(dice.choices(PIECES, k=dice.randint(2, 6))) for _ in range(count))]))


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with running(Hdfs(tmp_path_factory.mktemp("hdfs"), nodes=1)) as made:
        made.await_ready()
        yield made


def test_topics_and_values_on_hdfs(hdfs: Hdfs) -> None:
    names, fs = _names(40), HdfsFileSystem(HdfsLogin(hdfs.url))
    config = {"connector.class": "JsonFileSink", "path": f"{hdfs.url}/a/lake", "partition.field.name": "name"}
    sink = FileSink({**config, "partitioner.class": "FieldPartitioner"}, [TopicPartition(TOPIC, 0)])
    for offset, name in enumerate(names):
        moved = row(offset)
        moved.topic, moved.value["name"] = name, name
        sink.put([moved])
    sink.end()
    assert sink.context.reported == []
    assert (fs.folders("/"), fs.names("/"), fs.folders("/a")) == (["a"], [], ["lake"])
    topics = "/a/lake/topics"
    assert sorted(fs.folders(topics)) == sorted(map(path_element, names))
    for offset, element in enumerate(map(path_element, names)):
        assert fs.folders(f"{topics}/{element}") == [f"name={element}"]
        [file] = fs.names(f"{topics}/{element}/name={element}")
        assert f'"id":{offset},'.encode() in fs.read(f"{topics}/{element}/name={element}/{file}")


@pytest.fixture(scope="module")
def context() -> Iterator[SparkContext]:
    context: SparkContext = local_context("test-names-of-records")
    yield context
    context.stop()


@pytest.mark.parametrize("format_", ["parquet", "json"])
def test_values_in_spark_writers(context: SparkContext, tmp_path: Path, format_: str) -> None:
    names, lake = _names(60), tmp_path / "a" / "b" / "lake"
    spark = SparkSession(context)
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    task = SparkSinkTask()
    task.start({"format": format_, "path": str(lake), "partition.by": "name,again"})
    rows = [(offset, name, name) for offset, name in enumerate(names)]
    task.write(spark.createDataFrame(rows, "id long, name string, again string").coalesce(1))
    found = spark.read.format(format_).load(str(lake)).select("id", "name", "again").collect()
    assert {each[0]: each[1:] for each in found} == {offset: (name, name) for offset, name in enumerate(names)}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if lake not in path.parents] == []
    deep = [path.relative_to(lake).parts for path in files if path.parent != lake]
    assert {(len(parts), parts[0][:5], parts[1][:6]) for parts in deep} == {(3, "name=", "again=")}
