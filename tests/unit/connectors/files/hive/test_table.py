"""Folders as partitions, Avro schemas of tables, and locations."""

from __future__ import annotations

import json
from zoneinfo import ZoneInfo

import pytest

from sluiceway.connectors.files.hive.table import TableLayout, partition_columns, same_location
from sluiceway.connectors.files.partitioners import DefaultPartitioner, FieldPartitioner, TimeBasedPartitioner
from sluiceway.data import INT64_SCHEMA, Schema
from sluiceway.data.logical import decimal_schema


def test_partitions_are_those_of_the_partitioner() -> None:
    hourly = TimeBasedPartitioner(3_600_000, "'Year'=YYYY/'hour'=HH", ZoneInfo("UTC"))
    assert partition_columns(DefaultPartitioner()) == ("partition",)
    assert partition_columns(FieldPartitioner(["Country", "kind"])) == ("country", "kind")
    assert partition_columns(hourly) == ("year", "hour")


def test_values_of_folders() -> None:
    layout = TableLayout("ParquetFormat", ("country", "kind"))
    assert layout.values("Country=a%2Fb%25/kind=1") == ["a/b%", "1"]
    assert layout.values("country=DE") is None
    assert layout.values("by hand") is None


def test_the_avro_schema_that_reads_all_files_wins() -> None:
    def text(version: int) -> str:
        schema = Schema.struct({"id": INT64_SCHEMA, "price": decimal_schema(2)}, name="row", version=version)
        return layout.files("orders", schema, ["partition=0"]).avro_schema

    layout = TableLayout("AvroFormat", ("partition",))
    first, second = text(1), text(2)
    assert layout.replaces(second, first)
    assert not layout.replaces(first, second)
    assert layout.replaces(first, "")
    oldest = TableLayout("AvroFormat", ("partition",), oldest_schema=True)
    assert oldest.replaces(first, second)
    assert not oldest.replaces(second, first)
    [_, price] = json.loads(first)["fields"]
    assert price["type"]["precision"] == 38


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("file:/lake/topics/orders", "file:///lake/topics/orders/", True),
        ("hdfs://nn:8020/lake", "hdfs:///lake", True),
        ("s3://bucket/lake", "s3a://bucket/lake", True),
        ("s3a://bucket/lake", "s3a://other/lake", False),
        ("file:/lake/topics/orders", "file:/lake/topics/other", False),
    ],
)
def test_locations(first: str, second: str, same: bool) -> None:
    assert same_location(first, second) is same
