# ruff: noqa: S608 (of tables of our own)
"""Tables and Parquet files of the sinks, read by Spark, and tables to which Spark writes too."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.data import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    Struct,
    Type,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from support import file_sinks
from support.jdbc_sink import person, record, tombstone
from support.rest_catalog import RestCatalog
from support.spark_sql import SparkSql, lake_conf
from support.table_sink import Lake, Task

pytestmark = [pytest.mark.spark, pytest.mark.long]

UTC = dt.timezone.utc
INNER = Schema.struct({"x": INT64_SCHEMA, "price": decimal_schema(3)}, optional=True)
TYPES: dict[str, tuple[Schema, Any]] = {
    "i8": (Schema(Type.INT8), -1),
    "i16": (Schema(Type.INT16), 2),
    "i32": (Schema(Type.INT32), 3),
    "i64": (INT64_SCHEMA, 2**62),
    "f32": (Schema(Type.FLOAT32), 1.5),
    "f64": (Schema(Type.FLOAT64), 0.1),
    "flag": (Schema(Type.BOOLEAN), True),
    "text": (Schema(Type.STRING), "ä"),
    "data": (Schema(Type.BYTES), b"\x00\xff"),
    "number": (decimal_schema(2), Decimal("-12.34")),
    "day": (date_schema(), dt.date(2026, 1, 2)),
    "at": (timestamp_schema(), dt.datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    "items": (Schema.array(OPTIONAL_INT32_SCHEMA), [1, None]),
    "scores": (Schema.map(Schema(Type.STRING), INT32_SCHEMA), {"a": 1}),
    "inner": (INNER, {"x": 1, "price": Decimal("0.001")}),
    "inners": (Schema.array(INNER), [{"x": 2, "price": Decimal("99.999")}]),
    "nothing": (INNER, None),
    "no_list": (Schema.array(INNER, optional=True), None),
    "default": (Schema(Type.INT64, optional=True, default=7), None),
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalog]:
    with RestCatalog(tmp_path_factory.mktemp("catalog")) as catalog:
        yield catalog


@pytest.fixture(scope="module")
def spark(catalog: RestCatalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSql]:
    with SparkSql(lake_conf(tmp_path_factory.mktemp("spark"), catalog.uri)) as spark:
        yield spark


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, catalog: RestCatalog, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path, catalog.uri if request.param == "iceberg" else "")


New = Callable[..., Task]


@pytest.fixture
def sink(lake: Lake, request: pytest.FixtureRequest) -> Iterator[New]:
    """A function that starts a task, which is stopped at the end."""
    tasks: list[Task] = []

    def start(**more: str) -> Task:
        places = [TopicPartition("people", 0)]
        tasks.append(Task(lake, lake.config(table=name_of(request), **more), places, reports=True))
        return tasks[-1]

    yield start
    for task in tasks:
        task.task.stop()


def name_of(request: pytest.FixtureRequest) -> str:
    """Return the name of a table that no other test uses."""
    return f"db.t{abs(hash(request.node.name))}"


@pytest.fixture
def table(lake: Lake, request: pytest.FixtureRequest) -> str:
    """The table's name in Spark's SQL."""
    name = name_of(request)
    return f"ice.{name}" if lake.format == "iceberg" else f"delta.`{lake.folder}/lake/{name.replace('.', '/')}`"


def given(schema: Schema | None, value: Any) -> Any:
    """Return a value with a Struct for each mapping of a struct's schema."""
    if schema is None or value is None:
        return value
    if schema.type is Type.STRUCT:
        return Struct(schema, {field.name: given(field.schema, value[field.name]) for field in schema.fields})
    if schema.type is Type.ARRAY:
        return [given(schema.value_schema, each) for each in value]
    return value


def nested(offset: int, schema: Schema, value: Any) -> SinkRecord:
    return record(offset, value=given(schema, value), schema=schema)


def ids(spark: SparkSql, table: str) -> list[int]:
    return [row["id"] for row in spark(f"SELECT id FROM {table} ORDER BY id")]


def test_every_type(lake: Lake, sink: New, spark: SparkSql, table: str) -> None:
    values = {name: value for name, (_, value) in TYPES.items()}
    task = sink()
    task.put(nested(0, Schema.struct({name: kind for name, (kind, _) in TYPES.items()}), values))
    task.commit(1)
    [row] = spark(f"SELECT * FROM {table}")
    row["at"] = row["at"].astimezone(UTC)
    assert row == {**values, "default": 7}


def test_columns_that_were_added_and_widened(lake: Lake, sink: New, spark: SparkSql, table: str) -> None:
    task = sink()
    old = Schema.struct({"id": INT32_SCHEMA, "inner": Schema.struct({"x": INT32_SCHEMA})})
    task.put(nested(0, old, {"id": 1, "inner": {"x": 1}}))
    task.commit(1)
    inner = Schema.struct({"x": INT64_SCHEMA, "y": OPTIONAL_STRING_SCHEMA})
    new = Schema.struct({"id": INT64_SCHEMA, "inner": inner, "name": OPTIONAL_STRING_SCHEMA})
    high = 2**40 if lake.format == "iceberg" else 2**31 - 1  # delta-rs cannot widen types
    task.put(nested(1, new, {"id": high, "inner": {"x": high, "y": "b"}, "name": "b"}))
    task.commit(2)
    assert spark(f"SELECT * FROM {table} ORDER BY id") == [
        {"id": 1, "inner": {"x": 1, "y": None}, "name": None},
        {"id": high, "inner": {"x": high, "y": "b"}, "name": "b"},
    ]


UPSERT = {"tables_upsert-mode-enabled": "true", "tables_default-id-columns": "id"}
OLD = Schema.struct({"id": INT64_SCHEMA, "n": OPTIONAL_INT64_SCHEMA})
NEW = Schema.struct({"id": INT64_SCHEMA, "n": OPTIONAL_INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA})
TEXT = Schema.struct({"id": INT64_SCHEMA, "n": OPTIONAL_STRING_SCHEMA})


def test_versions_tombstones_and_another_type_in_one_commit(sink: New, spark: SparkSql, table: str) -> None:
    task = sink(**UPSERT)
    task.put(nested(0, OLD, {"id": 1, "n": 1}), nested(1, NEW, {"id": 2, "n": 2, "name": "b"}), tombstone(2, 1))
    task.put(nested(3, OLD, {"id": 3, "n": 3}), nested(4, TEXT, {"id": 4, "n": "four"}), nested(5, TEXT, {"id": 5, "n": "5"}))
    assert task.commit(6) == {TopicPartition("people", 0): 6}
    assert [each.kafka_offset for each, _ in task.context.reported] == [4]
    assert spark(f"SELECT * FROM {table} ORDER BY id") == [
        {"id": 2, "n": 2, "name": "b"},
        {"id": 3, "n": 3, "name": None},
        {"id": 5, "n": 5, "name": None},
    ]


def test_upserts_deletes_and_writes_of_spark(lake: Lake, sink: New, spark: SparkSql, table: str) -> None:
    task = sink(**UPSERT)
    task.put(*(person(number, number, f"n{number}") for number in range(5)))
    task.commit(5)
    spark(f"INSERT INTO {table} VALUES (100, 'from Spark'), (1000, 'from Spark')")
    task.put(tombstone(5, 1), person(6, 2, "again"), person(7, 1000, "from the topic"))
    assert task.commit(8) == {TopicPartition("people", 0): 8}
    spark(f"DELETE FROM {table} WHERE id = 3")
    task.put(person(8, 8, "last"))
    task.commit(9)
    found = {row["id"]: row["name"] for row in spark(f"SELECT * FROM {table}")}
    assert found == {0: "n0", 2: "again", 4: "n4", 8: "last", 100: "from Spark", 1000: "from the topic"}


def test_sparks_appends_are_kept(lake: Lake, sink: New, spark: SparkSql, table: str) -> None:
    task = sink()
    for number in range(3):
        task.put(person(number, number, "a"))
        task.commit(number + 1)
        spark(f"INSERT INTO {table} VALUES ({100 + number}, 'from Spark')")
    assert ids(spark, table) == [0, 1, 2, 100, 101, 102]


CITIES = Schema.struct({"id": INT64_SCHEMA, "city": OPTIONAL_STRING_SCHEMA, "at": timestamp_schema(), "day": date_schema()})
BY_CITY = ("city = 'Köln/Süd'", [number for number in range(30) if number % 3 == 1])
BY_DAY = ("day = date'2027-02-05'", BY_CITY[1])
BY_TIME = ("at = timestamp'2027-02-05 00:00:00'", [number for number in BY_CITY[1] if number % 2 == 0])
BY_ID = ("id = 4", [4])
FIELDS = [
    ("city, day(at), bucket(id, 4)", BY_TIME),
    ("city", BY_CITY),
    *((f"{unit}(at)", BY_TIME) for unit in ("year", "month", "day", "hour")),
    ("bucket(id, 4)", BY_ID),
    ("truncate(id, 10)", BY_ID),
    ("truncate(city, 1)", BY_CITY),
]
Query = tuple[str, list[int]]


def cities(count: int) -> list[SinkRecord]:
    start = dt.datetime(2026, 1, 1, tzinfo=UTC)
    rows = []
    for number in range(count):
        at = start + dt.timedelta(days=400 * (number % 3), hours=number % 2)
        city = ["Bern", "Köln/Süd", None][number % 3]
        rows.append(record(number, value={"id": number, "city": city, "at": at, "day": at.date()}, schema=CITIES))
    return rows


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
@pytest.mark.parametrize(("field", "query"), FIELDS)
def test_partitions_of_iceberg(sink: New, spark: SparkSql, table: str, field: str, query: Query) -> None:
    task = sink(**{"tables_default-partition-by": field})
    task.put(*cities(30))
    task.commit(30)
    files = len(spark(f"SELECT file_path FROM {table}.files"))
    assert 0 < check_query(spark, table, query)["resultDataFiles"] < files


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
@pytest.mark.parametrize(("field", "query"), [("city", BY_CITY), ("day", BY_DAY)])
def test_partitions_of_delta(sink: New, spark: SparkSql, table: str, field: str, query: Query) -> None:
    task = sink(**{"tables_default-partition-by": field})
    task.put(*cities(30))
    task.commit(30)
    assert check_query(spark, table, query)["numFiles"] == 1
    assert spark(f"SELECT count(*) AS n FROM {table} WHERE city IS NULL") == [{"n": 10}]


def check_query(spark: SparkSql, table: str, query: Query) -> dict[str, int]:
    """Check the rows of a query with a condition and of one without, and return the metrics of the first."""
    condition, expected = query
    found, metrics = spark.read(f"SELECT id, city FROM {table} WHERE {condition}")
    assert sorted(row["id"] for row in found) == expected
    assert ids(spark, table) == list(range(30))
    return metrics


# --- Parquet files ---


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
def test_every_type_in_parquet_files(spark: SparkSql, tmp_path: Path, columns: bool) -> None:
    schema = Schema.struct({name: kind for name, (kind, _) in TYPES.items()})
    values = {name: value for name, (_, value) in TYPES.items()}
    with file_sinks.file_sink(tmp_path, reports=False) as sink:
        sink.put([file_sinks.record(0, given(schema, values), schema)], columns=columns)
        sink.end()
    [row] = spark(f"SELECT * FROM parquet.`{tmp_path}/topics`")
    row["at"] = row["at"].astimezone(UTC)
    assert row == {**values, "default": 7, "partition": 0}


def test_spark_cannot_read_a_time_of_day_in_a_parquet_file(spark: SparkSql, tmp_path: Path) -> None:
    schema = Schema.struct({"id": INT64_SCHEMA, "clock": time_schema()})
    with file_sinks.file_sink(tmp_path, reports=False) as sink:
        sink.put([file_sinks.record(0, {"id": 1, "clock": dt.time(1, 2, 3)}, schema)])
        sink.end()
    with pytest.raises(AssertionError, match=r"Illegal Parquet type: INT32 \(TIME"):
        spark(f"SELECT id FROM parquet.`{tmp_path}/topics`")


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
def test_versions_tombstones_and_another_type_in_parquet_files(spark: SparkSql, tmp_path: Path, columns: bool) -> None:
    values: list[tuple[Schema, dict[str, Any]]] = [
        (OLD, {"id": 0, "n": 0}),
        (NEW, {"id": 1, "n": 1, "name": "b"}),
        (OLD, {"id": 2, "n": 2}),
        (NEW, {"id": 3, "n": 3, "name": None}),
        (TEXT, {"id": 4, "n": "four"}),
    ]
    records = [file_sinks.record(number, given(schema, value), schema) for number, (schema, value) in enumerate(values)]
    with file_sinks.file_sink(tmp_path, reports=False, behavior_on_null_values="ignore") as sink:
        sink.put([*records, file_sinks.record(5)], columns=columns)
        assert sink.end() == {file_sinks.P0: 6}
    old, new, text = (f"parquet.`{path}`" for path in file_sinks.data_files(tmp_path))
    assert spark(f"SELECT * FROM {old} ORDER BY id") == [values[0][1], values[2][1]]
    assert spark(f"SELECT * FROM {new} ORDER BY id") == [values[1][1], values[3][1]]
    assert spark(f"SELECT * FROM {text}") == [values[4][1]]
