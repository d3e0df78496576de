"""Parquet files read by PyArrow have the rows that Spark reads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from sluiceway.connectors.spark.parquet_reader import ParquetReader, parquet_reader
from sluiceway.connectors.spark.ranges import ValueRange
from sluiceway.connectors.spark.reading import load
from sluiceway.connectors.spark.source_config import SourceConfig
from sluiceway.errors import ConnectError
from sluiceway.spark.session import local_context

pytestmark = pytest.mark.spark

UTC = dt.timezone.utc
COLUMNS: Mapping[str, pa.Array[Any]] = {
    "id": pa.array([1, 2, 3], pa.int64()),
    "flag": pa.array([True, None, False]),
    "i8": pa.array([-128, None, 127], pa.int8()),
    "i16": pa.array([-(2**15), None, 1], pa.int16()),
    "i32": pa.array([-(2**31), None, 1], pa.int32()),
    "f32": pa.array([1.5, None, float("inf")], pa.float32()),
    "f64": pa.array([0.1, None, -0.0]),
    "text": pa.array(["ä", None, ""]),
    "data": pa.array([b"\x00\xff", None, b""]),
    "number": pa.array([Decimal("-12345678901234567890.12"), None, Decimal("0.01")], pa.decimal128(38, 2)),
    "small": pa.array([Decimal("-1.5"), None, Decimal("9.9")], pa.decimal128(3, 1)),
    "day": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "at": pa.array(
        [dt.datetime(1700, 1, 1, 0, 0, 0, 1, UTC), None, dt.datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")
    ),
    "local": pa.array([-1, None, 1_767_225_600_000]).cast(pa.timestamp("ms")),
    "a.b": pa.array([1, None, 3], pa.int32()),
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    context = local_context("test-parquet-reader")
    session = SparkSession(context)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    context.stop()


def write(folder: Path, name: str, columns: Mapping[str, pa.Array[Any]], **options: Any) -> None:
    folder.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pa.table(dict(columns)), folder / name, **options)


def config(folder: Path, **more: str) -> SourceConfig:
    return SourceConfig.of({"format": "parquet", "path": str(folder), "topic": "t", **more})


def by_both(spark: SparkSession, folder: Path, range_: ValueRange | None = None) -> tuple[list[Any], list[Any]]:
    """Return the rows that PyArrow and Spark read, ordered by id."""
    frame = load(spark, config(folder))
    reader = parquet_reader(frame, config(folder), sorted(frame.inputFiles()), range_)
    assert reader is not None
    return rows(pa.Table.from_batches(list(reader.batches()), reader.schema)), rows(frame.toArrow())


def rows(table: pa.Table) -> list[Any]:
    return sorted(([repr(value) for value in row.values()] for row in table.to_pylist()), key=lambda row: row[0])


@pytest.mark.parametrize(
    "options", [{}, {"row_group_size": 1, "version": "1.0"}, {"compression": "zstd", "use_dictionary": False}]
)
def test_all_types_are_read_as_spark_reads_them(spark: SparkSession, tmp_path: Path, options: dict[str, Any]) -> None:
    write(tmp_path / "in", "1.parquet", COLUMNS, **options)
    mine, theirs = by_both(spark, tmp_path / "in")
    assert mine == theirs
    assert len(mine) == 3


def test_timestamps_of_96_bits_are_read_as_spark_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    columns = {name: COLUMNS[name] for name in ("id", "at")}
    write(tmp_path / "in", "1.parquet", columns, use_deprecated_int96_timestamps=True)
    mine, theirs = by_both(spark, tmp_path / "in")
    assert mine == theirs


def test_columns_of_other_case_and_order_and_missing_ones_are_read_as_spark_reads_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    write(folder, "1.parquet", {"id": pa.array([1, 2]), "Text": pa.array(["a", "b"]), "n": pa.array([1, 2])})
    write(folder, "2 ä.parquet", {"text": pa.array(["c"]), "ID": pa.array([3])})
    frame = load(spark, config(folder)).select("id", "Text", "n")
    reader = parquet_reader(frame, config(folder), sorted(frame.inputFiles()))
    assert reader is not None
    found = pa.Table.from_batches(list(reader.batches()), reader.schema)
    assert rows(found) == rows(frame.toArrow())
    assert sorted(found.to_pylist(), key=lambda row: int(row["id"])) == [
        {"id": 1, "Text": "a", "n": 1},
        {"id": 2, "Text": "b", "n": 2},
        {"id": 3, "Text": "c", "n": None},
    ]


@pytest.mark.parametrize(("column", "low", "high"), [("id", 1, 2), ("at", -1, 1_767_225_600_000_000), ("i16", -(2**15), 1)])
def test_a_range_excludes_its_start_and_has_its_end(
    spark: SparkSession, tmp_path: Path, column: str, low: int, high: int
) -> None:
    write(tmp_path / "in", "1.parquet", COLUMNS, row_group_size=1)
    frame = load(spark, config(tmp_path / "in"))
    reader = parquet_reader(frame, config(tmp_path / "in"), sorted(frame.inputFiles()), ValueRange(column, low, high))
    assert reader is not None
    assert [row["id"] for batch in reader.batches() for row in batch.to_pylist()] == ([2] if column == "id" else [3])


def test_what_spark_may_read_otherwise_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "1.parquet", {"id": pa.array([1]), "items": pa.array([[1]])})
    nested = load(spark, config(tmp_path / "in"))
    plain = nested.select("id")
    files = nested.inputFiles()
    assert parquet_reader(nested, config(tmp_path / "in"), files) is None
    assert parquet_reader(plain, config(tmp_path / "in"), files) is not None
    assert parquet_reader(plain, config(tmp_path / "in", **{"option.mergeSchema": "true"}), files) is None
    assert parquet_reader(plain, config(tmp_path / "in"), ["hdfs://name/in/1.parquet"]) is None
    assert parquet_reader(plain, config(tmp_path), [(tmp_path / "day=1" / "1.parquet").as_uri()]) is None
    assert parquet_reader(plain, config(tmp_path / "day=1"), [(tmp_path / "day=1" / "1.parquet").as_uri()]) is not None


def test_a_file_that_is_no_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_text("no parquet")
    reader = ParquetReader(((tmp_path / "bad.parquet").as_uri(),), pa.schema([pa.field("id", pa.int64())]))
    with pytest.raises(ConnectError, match=r"Cannot read file:.*bad\.parquet"):
        list(reader.batches())
