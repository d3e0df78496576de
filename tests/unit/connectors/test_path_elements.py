from __future__ import annotations

import functools
import os
import random
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.files.connector import FileSinkConnector
from sluiceway.connectors.files.hive.config import HiveOptions
from sluiceway.connectors.files.hive.table import TableLayout, partition_columns
from sluiceway.connectors.files.options import FileOptions
from sluiceway.connectors.path_elements import check_length, check_table, path_element
from sluiceway.data import STRING_SCHEMA, Schema, Struct
from sluiceway.discovery import connector_class
from sluiceway.errors import DataError
from support.file_sinks import file_sink, ids, row
from support.fuzz import CASES, FIRST, SEED, fuzz
from support.hostile_names import PIECES, WRITABLE_PIECES
from support.jdbc_sink import person
from support.table_sink import Lake, Task

LAKE = Path("/lake/topics")
PEOPLE = TopicPartition("people", 0)

NAMES = st.one_of(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.text(st.characters(), max_size=40))


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("plain", "plain"),
        ("a/b", "a%2Fb"),
        ("a=b:c", "a%3Db%3Ac"),
        ("50%", "50%25"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("", "__HIVE_DEFAULT_PARTITION__"),
        ("line\n", "line%0A"),
        ("half \ud83d", "half %ED%A0%BD"),
        ("größe 日本", "größe 日本"),
    ],
)
def test_elements_are_quoted_as_hive_does(name: str, element: str) -> None:
    assert path_element(name) == element


@fuzz("name", share=2, name=NAMES)
def test_a_name_is_one_element_of_a_path_and_no_two_have_the_same(name: str) -> None:
    element = path_element.__wrapped__(name)
    assert Path(os.path.normpath(LAKE / element)).parent == LAKE
    assert os.fsencode(element)
    assert not set(element) & set("/\\:?#*\"'\x00\n")
    if name and not any("\ud800" <= char <= "\udfff" for char in name):
        assert unquote(element) == name  # as Hive, Spark, and Trino read it, so no two names share an element
    else:
        assert element == "__HIVE_DEFAULT_PARTITION__" or "%ED" in element


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True).filter(lambda topic: topic not in (".", "..")))
def test_topics_that_kafka_allows_stay_as_they_are(topic: str) -> None:
    assert check_length(path_element(topic)) == topic


@fuzz("name", name=NAMES)
def test_a_tables_folder_is_below_the_lake_however_its_location_is_decoded(name: str) -> None:
    try:
        location = str(LAKE / check_table(name).replace(".", "/"))
    except DataError:
        return
    for decoded in (location, unquote(location), unquote(unquote(location))):
        assert os.path.normpath(decoded) == location
    assert "_delta_log" not in location.split("/")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a..b", "a.", "a/b", "%2e%2e", "a.%2e%2e", "a b.\t", " .a", "a?x", "a#x", "t._delta_log", "t" * 256]
)
def test_names_that_are_no_tables_are_refused(name: str) -> None:
    with pytest.raises(DataError):
        check_table(name)
    assert check_table("db.größe a-1") == "db.größe a-1"


def test_a_name_may_not_be_too_long() -> None:
    assert check_length("x" * 255)
    with pytest.raises(DataError, match="more than 255 bytes"):
        check_length("ü" * 128)


BY_FIELD = {"partitioner.class": "FieldPartitioner", "partition.field.name": "x"}
OF_CONFLUENT = {"format.class": "JsonFormat", "flush.size": "1", **BY_FIELD}
STORES = {
    "file:///lake": {"connector.class": "JsonFileSink", "path": "/lake", **BY_FIELD},
    "hdfs://nn:8020/lake": {"connector.class": "JsonFileSink", "path": "hdfs://nn:8020/lake", **BY_FIELD},
    "viewfs://all/lake": {"connector.class": "ParquetSink", "path": "viewfs://all/lake", **BY_FIELD},
    "s3a://b/lake": {"connector.class": "CsvSink", "path": "s3://b/lake", **BY_FIELD},
    "gs://b/lake": {"connector.class": "OrcSink", "path": "gs://b/lake", **BY_FIELD},
    "abfss://c@a.dfs.core.windows.net/lake": {
        "connector.class": "AvroFileSink",
        "path": "abfs://c@a.dfs.core.windows.net/lake",
        **BY_FIELD,
    },
    "hdfs://nn:8020": {"connector.class": "HdfsSink", "store.url": "hdfs://nn:8020", **OF_CONFLUENT},
    "s3a://b": {"connector.class": "S3Sink", "s3.bucket.name": "b", **OF_CONFLUENT},
    "gs://b": {"connector.class": "GcsSink", "gcs.bucket.name": "b", **OF_CONFLUENT},
    "abfss://c@a.dfs.core.windows.net": {
        "connector.class": "AzureBlobStorageSink",
        "azblob.account.name": "a",
        "azblob.account.key": "k",
        "azblob.container.name": "c",
        **OF_CONFLUENT,
    },
}
FIELD = Schema.struct({"x": STRING_SCHEMA})


@functools.lru_cache
def _options(root: str) -> FileOptions:
    connector = connector_class(STORES[root]["connector.class"])
    assert issubclass(connector, FileSinkConnector)
    return FileOptions.of(STORES[root], connector.kind)


@pytest.mark.parametrize("root", STORES)
@fuzz("name", share=1 / len(STORES), name=NAMES)
def test_a_topic_and_a_value_are_one_element_each_on_every_store_and_in_hive(root: str, name: str) -> None:
    options = _options(root)
    moved = SinkRecord(name, 0, 0, Struct(FIELD, {"x": name}), FIELD)
    try:
        encoded = options.partitioner.encode(moved, 0)
        location = options.store.location(options.names.folder(name, encoded))
    except DataError:
        return
    topic, value = location.removeprefix(f"{root}/topics/").split("/")
    assert topic not in ("", ".", "..")
    assert value.startswith("x=")
    parts, base = urlsplit(location), urlsplit(root)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == (base.scheme, base.netloc, "", "")
    assert parts.path == os.path.normpath(parts.path) == f"{base.path}/topics/{topic}/{value}"
    [found] = TableLayout(options.format, partition_columns(options.partitioner)).values(encoded) or ()
    assert found == name or found == "__HIVE_DEFAULT_PARTITION__" or any("\ud800" <= char <= "\udfff" for char in name)
    assert re.fullmatch("[a-z0-9_]*", HiveOptions("", "", "db", "${topic}").table_of(name))


HOSTILE = ["../../out", "..", "/abs", "a/../../../out", "%2e%2e/%2e%2e/out", "a\\..\\b", "", "nul\x00", "half \ud83d", "t" * 300]


def _outside(root: Path, folder: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and folder not in path.parents]


def _moved(offset: int, topic: str) -> SinkRecord:
    """Return a record whose topic a transform has changed."""
    moved = row(offset)
    moved.topic = topic
    return moved


@pytest.mark.parametrize("columns", [False, True])
def test_file_sinks_write_below_their_folder_whatever_a_transform_makes_of_the_topic(tmp_path: Path, *, columns: bool) -> None:
    lake = tmp_path / "a" / "b" / "lake"
    with file_sink(lake, "JsonFileSink") as sink:
        sink.put([_moved(offset, topic) for offset, topic in enumerate(HOSTILE)], columns=columns)
        assert [str(error) for _, error in sink.context.reported] == [
            f"The folder name {'t' * 60}... has more than 255 bytes. Use a shorter topic, or partition by another field."
        ]
        sink.end()
    assert _outside(tmp_path, lake) == []
    assert ids(lake) == list(range(len(HOSTILE) - 1))


def _some_names(count: int) -> list[str]:
    """Return different names that are text. The empty one is null in a partition of Delta."""
    dice = random.Random(f"{SEED} {FIRST}")  # noqa: S311 (test data)
    return list(dict.fromkeys("".join(dice.choices(WRITABLE_PIECES, k=dice.randint(1, 6))) for _ in range(count)))


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_table_sinks_write_values_of_partitions_below_their_table(tmp_path: Path, format_: str) -> None:
    lake = Lake(format_, tmp_path / "a" / "b" / "lake")
    lake.folder.mkdir(parents=True)
    task = Task(lake, lake.config(**{"tables_default-partition-by": "name"}), [PEOPLE])
    names = _some_names(min(60 + CASES // 100, 2_000))
    task.put(*(person(offset, offset, name) for offset, name in enumerate(names)))
    task.commit(len(names))
    assert {row["id"]: row["name"] for row in task.rows()} == dict(enumerate(names))
    files = list(tmp_path.rglob("*.parquet"))
    assert {len(path.relative_to(lake.folder).parts) for path in files} == {len(files[0].relative_to(lake.folder).parts)}
    assert all(path.parent.name.startswith("name=") for path in files)
    assert _outside(tmp_path, lake.folder) == []
    task.task.stop()


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_table_sinks_refuse_names_of_records_that_are_no_tables(tmp_path: Path, format_: str) -> None:
    lake = Lake(format_, tmp_path / "a" / "b" / "lake")
    lake.folder.mkdir(parents=True)
    config = lake.config(**{"tables": "", "tables_dynamic-enabled": "true", "tables_route-field": "name"})
    task = Task(lake, config, [PEOPLE], reports=True)
    bad = [name for name in HOSTILE if name.isprintable()]  # Arrow has no half a surrogate pair
    bad += ["namespaceless"] if format_ == "iceberg" else []
    task.put(*(person(offset, offset, name) for offset, name in enumerate(["db.good", *bad, "db.good"])))
    task.commit(len(bad) + 2)
    assert len(task.context.reported) == len(bad)
    assert [row["id"] for row in task.rows("db.good")] == [0, len(bad) + 1]
    assert _outside(tmp_path, lake.folder) == []
    task.task.stop()
