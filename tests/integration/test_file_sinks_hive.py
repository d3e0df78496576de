# ruff: noqa: S608 (of tables of our own)
"""File sinks that register their files in a Hive metastore, read by Spark SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.files.commit_log import CommitLog
from sluiceway.connectors.files.hive.metastore import Metastore, MetastoreError
from sluiceway.data import (
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
)
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.discovery import connector_class
from sluiceway.errors import ConnectError, DataError
from support.file_sinks import FileSink, data_files, file_sink, record, row, rows
from support.hive_metastore import HiveMetastore, hive_metastore
from support.spark_sql import SparkSql, hive_conf

pytestmark = [pytest.mark.spark, pytest.mark.long]
UTC = dt.timezone.utc
FORMATS = pytest.mark.parametrize("connector", ["ParquetSink", "OrcSink", "AvroFileSink"])
INNER = Schema.struct({"x": INT32_SCHEMA, "y": OPTIONAL_STRING_SCHEMA}, name="inner")
TYPES: dict[str, tuple[Schema, Any]] = {
    "tiny": (INT8_SCHEMA, 1),
    "small": (INT16_SCHEMA, 2),
    "number": (INT32_SCHEMA, 3),
    "large": (INT64_SCHEMA, 4),
    "single": (FLOAT32_SCHEMA, 0.5),
    "double": (FLOAT64_SCHEMA, 0.25),
    "text": (STRING_SCHEMA, "é"),
    "data": (BYTES_SCHEMA, b"\x00\xff"),
    "price": (decimal_schema(2), Decimal("12.34")),
    "day": (date_schema(), dt.date(2026, 1, 5)),
    "at": (timestamp_schema(), dt.datetime(2026, 1, 5, 6, 7, 8, 9000, UTC)),
    "inside": (INNER, {"x": 1, "y": "z"}),
    "list": (Schema.array(INT64_SCHEMA), [1, 2]),
    "counts": (Schema.map(STRING_SCHEMA, INT32_SCHEMA), {"a": 1}),
    "Upper": (STRING_SCHEMA, "case"),
}


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    with hive_metastore(tmp_path_factory.mktemp("metastore")) as server:
        yield server


@pytest.fixture(scope="module")
def spark(metastore: HiveMetastore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSql]:
    with SparkSql(hive_conf(tmp_path_factory.mktemp("spark"), metastore.uri)) as spark:
        yield spark


@pytest.fixture
def table(request: pytest.FixtureRequest) -> str:
    name = request.node.name
    return "".join(char if char.isalnum() else "_" for char in name).lower().strip("_")


@pytest.fixture
def hive(metastore: HiveMetastore, table: str) -> dict[str, Any]:
    """The keys of a sink, with underscores for dots, whose topic ``orders`` is in a table of the test's name."""
    return {
        "hive_integration": "true",
        "hive_metastore_uris": metastore.uri,
        "hive_table_name": f"{table}_${{topic}}",
        "schema_compatibility": "BACKWARD",
        "flush_size": "10",
    }


@FORMATS
@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
def test_every_type(tmp_path: Path, connector: str, columns: bool, hive: dict[str, Any], table: str, spark: SparkSql) -> None:
    values = {name: value for name, (_, value) in TYPES.items()}
    schema = Schema.struct({name: kind for name, (kind, _) in TYPES.items()}, name="every", version=1)
    with file_sink(tmp_path, connector, **hive) as sink:
        sink.put([record(0, {**values, "inside": Struct(INNER, values["inside"])}, schema)], columns=columns)
        sink.end()
    [found] = spark(f"SELECT * FROM {table}_orders")
    found["at"] = found["at"].astimezone(UTC)
    assert found == {**{name.lower(): value for name, value in values.items()}, "partition": "0"}


@FORMATS
def test_columns_that_were_added_widened_and_dropped(
    tmp_path: Path, connector: str, hive: dict[str, Any], table: str, spark: SparkSql
) -> None:
    old = Schema.struct({"id": INT32_SCHEMA, "gone": STRING_SCHEMA}, name="row", version=1)
    new = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA}, name="row", version=2)
    with file_sink(tmp_path, connector, **hive) as sink:
        sink.put([record(number, {"id": number, "gone": "g"}, old) for number in range(10)])
        sink.put([record(number, {"id": number, "name": "n"}, new) for number in range(10, 20)])
        sink.end()
    found = spark(f"SELECT id, name FROM {table}_orders ORDER BY id")
    assert found == [{"id": number, "name": "n" if number >= 10 else None} for number in range(20)]


@FORMATS
def test_fields_as_partitions(tmp_path: Path, connector: str, hive: dict[str, Any], table: str, spark: SparkSql) -> None:
    schema = Schema.struct({"id": INT64_SCHEMA, "Country": STRING_SCHEMA, "kind": INT32_SCHEMA}, name="row", version=1)
    fields: dict[str, Any] = {"partitioner_class": "FieldPartitioner", "partition_field_name": "Country,kind"}
    countries = ["DE", "a=b/c", "", "ключ %41"]
    with file_sink(tmp_path, connector, **hive, **fields) as sink:
        sink.put(
            [
                record(number, {"id": number, "Country": country, "kind": number % 2}, schema)
                for number, country in enumerate(countries)
            ]
        )
        sink.end()
    found = spark(f"SELECT * FROM {table}_orders ORDER BY id")
    default = "__HIVE_DEFAULT_PARTITION__" if connector == "AvroFileSink" else None  # as Spark's reader of that format has it
    expected = ["DE", "a=b/c", default, "ключ %41"]
    assert found == [{"id": number, "country": name, "kind": str(number % 2)} for number, name in enumerate(expected)]
    assert spark(f"SELECT id FROM {table}_orders WHERE country = 'a=b/c'") == [{"id": 1}]


def test_hours_as_partitions_and_folders_from_before(tmp_path: Path, hive: dict[str, Any], table: str, spark: SparkSql) -> None:
    hourly: dict[str, Any] = {"partitioner_class": "HourlyPartitioner", "timestamp_extractor": "Record", "locale": "en"}
    start = 1_700_000_000_000
    before = [row(number, timestamp=start + number * 3_600_000) for number in range(30)]
    with file_sink(tmp_path, **hourly) as sink:
        sink.put(before)
        sink.end()
    (tmp_path / "topics/orders/by hand").mkdir()
    with file_sink(tmp_path, **hive, **hourly) as sink:
        sink.put([row(number, timestamp=start + number * 3_600_000) for number in range(30, 40)])
        sink.end()
    assert spark(f"SELECT count(*) n, count(DISTINCT day, hour) hours FROM {table}_orders") == [{"n": 40, "hours": 40}]
    [folder] = spark(f"SELECT DISTINCT year, month, day, hour FROM {table}_orders WHERE id = 0")
    assert folder == {"year": "2023", "month": "11", "day": "14", "hour": "22"}


class Killed(BaseException):
    """Stands for SIGKILL at a point in the code."""


@pytest.mark.parametrize("point", ["publish", "database_exists", "create_table", "add_partitions", "alter_table"])
def test_a_kill_between_commit_and_registration(
    tmp_path: Path, point: str, hive: dict[str, Any], table: str, spark: SparkSql, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(*_: Any, **__: Any) -> Any:
        raise Killed

    with file_sink(tmp_path, flush_size="10", partitioner_class="FieldPartitioner", partition_field_name="name") as sink:
        sink.put(rows(0, 5))
        sink.end()
    keys: dict[str, Any] = {**hive, "partitioner_class": "FieldPartitioner", "partition_field_name": "name"}
    with monkeypatch.context() as patch, file_sink(tmp_path, **keys) as sink:
        patch.setattr(CommitLog if point == "publish" else Metastore, point, dying)
        with pytest.raises(Killed):
            sink.put(rows(5, 15))
    with file_sink(tmp_path, **keys) as sink:  # a task that dies before it has registered anything
        assert sink.next == {TopicPartition("orders", 0): 15}
    with file_sink(tmp_path, **keys) as sink:
        sink.put([])
    assert spark(f"SELECT count(*) n, count(DISTINCT id) ids FROM {table}_orders") == [{"n": 15, "ids": 15}]


def test_a_table_that_was_dropped_is_created_again(tmp_path: Path, hive: dict[str, Any], table: str, spark: SparkSql) -> None:
    with file_sink(tmp_path, **hive, partitioner_class="FieldPartitioner", partition_field_name="name") as sink:
        sink.put(rows(0, 10))
        spark(f"DROP TABLE {table}_orders")
        assert len(data_files(tmp_path)) == 10
        sink.put(rows(10, 20))
    assert spark(f"SELECT count(*) n FROM {table}_orders") == [{"n": 20}]


def test_two_tasks_of_one_topic(tmp_path: Path, hive: dict[str, Any], table: str, spark: SparkSql) -> None:
    wide = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA, "more": INT32_SCHEMA}, name="row", version=2)
    with file_sink(tmp_path, partitions=2, **hive) as sink:
        sink.put(rows(0, 10, partition=0))
        sink.put([record(number, {"id": number, "name": "n", "more": 1}, wide, partition=1) for number in range(10)])
        old = FileSink(sink.config, [TopicPartition("orders", 0)])
        old.put(rows(10, 20, partition=0))
        old.end()
    assert spark(f"SELECT count(*) n, sum(more) more FROM {table}_orders") == [{"n": 30, "more": 10}]


def test_other_tables_are_left_alone(tmp_path: Path, hive: dict[str, Any], table: str, spark: SparkSql) -> None:
    spark(f"CREATE TABLE {table}_orders (id BIGINT) STORED AS PARQUET")
    with (
        file_sink(tmp_path, **hive) as sink,
        pytest.raises(ConnectError, match=r"is at file:.*, but the topic orders at file://"),
    ):
        sink.put(rows(0, 10))
    assert spark(f"SELECT * FROM {table}_orders") == []


def test_a_changed_partitioner_or_format_is_refused_after_the_commit(tmp_path: Path, hive: dict[str, Any], table: str) -> None:
    with file_sink(tmp_path, **hive) as sink:
        sink.put(rows(0, 10))
    keys: dict[str, Any] = {**hive, "partitioner_class": "FieldPartitioner", "partition_field_name": "name"}
    with (
        file_sink(tmp_path, **keys) as sink,
        pytest.raises(ConnectError, match="has the partitions partition, but the connector"),
    ):
        sink.put(rows(10, 20))
    with file_sink(tmp_path, "OrcSink", **hive) as sink, pytest.raises(ConnectError, match=r"ParquetHiveSerDe.*OrcFormat"):
        sink.put(rows(20, 30))


def test_columns_that_do_not_fit(tmp_path: Path, hive: dict[str, Any], table: str, spark: SparkSql) -> None:
    with file_sink(tmp_path, **hive) as sink:
        sink.put(rows(0, 10))
    other = Schema.struct({"id": STRING_SCHEMA}, name="row", version=2)
    with (
        file_sink(tmp_path, **hive) as sink,
        pytest.raises(ConnectError, match=r"id is bigint in the table, string in the files\. The files are complete"),
    ):
        sink.put([record(number, {"id": "x"}, other) for number in range(10, 20)])
    assert len(data_files(tmp_path)) == 2
    spark(f"DROP TABLE {table}_orders")
    with file_sink(tmp_path, **hive) as sink:
        sink.put([])
    assert spark(f"DESCRIBE {table}_orders")[0]["data_type"] == "string"


def test_schemas_that_hive_cannot_have_are_bad_records(tmp_path: Path, hive: dict[str, Any]) -> None:
    colon = Schema.struct({"a:b": INT64_SCHEMA}, name="row", version=1)
    with file_sink(tmp_path, **hive) as sink:
        sink.put([record(0, {"a:b": 1}, colon), *rows(1, 3)], columns=True)
        [(_, error)] = sink.context.reported
        assert isinstance(error, DataError)
        assert "a:b" in str(error)
        sink.end()


@FORMATS
def test_a_time_is_an_integer(tmp_path: Path, connector: str, hive: dict[str, Any], table: str, spark: SparkSql) -> None:
    schema = Schema.struct({"clock": time_schema()}, name="row", version=1)
    with file_sink(tmp_path, connector, **hive) as sink:
        sink.put([record(0, {"clock": dt.time(0, 0, 1)}, schema)])
        sink.end()
    assert spark(f"SELECT clock FROM {table}_orders") == [{"clock": 1000}]


def test_a_metastore_that_is_away_is_waited_for(
    tmp_path: Path, hive: dict[str, Any], table: str, spark: SparkSql, metastore: HiveMetastore
) -> None:
    with file_sink(tmp_path, **hive) as sink:
        sink.put(rows(0, 10))
        metastore.stop()
        try:
            for _ in range(2):
                with pytest.raises(MetastoreError, match=r"Cannot reach the Hive metastore .*Check hive\.metastore\.uris"):
                    sink.put(rows(10, 25))
            assert sink.context.timeouts == [5000, 5000]
            assert len(data_files(tmp_path)) == 2
            assert sink.commit() == {}
        finally:
            metastore.start()
        sink.put(rows(10, 25))
        sink.put(rows(25, 30))
        assert sink.end() == {TopicPartition("orders", 0): 30}
    assert spark(f"SELECT count(*) n, count(DISTINCT id) ids FROM {table}_orders") == [{"n": 30, "ids": 30}]
    assert len(data_files(tmp_path)) == 3


def test_validation_tries_the_metastore(tmp_path: Path, hive: dict[str, Any]) -> None:
    def errors(**more: str) -> dict[str, list[str]]:
        keys = {name.replace("_", "."): value for name, value in {**hive, **more}.items()}
        found = connector_class("ParquetSink").validate({"connector.class": "ParquetSink", "path": str(tmp_path), **keys})
        return {name: each.errors for name, each in found.items() if each.errors}

    assert errors() == {}
    [[text]] = errors(hive_metastore_uris="thrift://127.0.0.1:1").values()
    assert text.startswith("Cannot reach the Hive metastore (thrift://127.0.0.1:1: ")
    assert errors(hive_metastore_uris=f"thrift://127.0.0.1:1,{hive['hive_metastore_uris']}") == {}
    (tmp_path / "hive-site.xml").write_text("<configuration/>")
    assert list(errors(hive_metastore_uris="", hive_conf_dir=str(tmp_path))) == ["hive.conf.dir"]
    setting = f"<property><name>hive.metastore.uris</name><value>{hive['hive_metastore_uris']}</value></property>"
    (tmp_path / "hive-site.xml").write_text(f"<configuration>{setting}</configuration>")
    assert errors(hive_metastore_uris="", hive_conf_dir=str(tmp_path)) == {}
