"""Records that the Iceberg or the Delta sink wrote, read again by the source."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.data import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_BOOLEAN_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_FLOAT32_SCHEMA,
    OPTIONAL_FLOAT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
    Type,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from support.jdbc_sink import KEY
from support.table_sink import Lake, Task
from support.table_source import Reading, SourceLake

INNER = Schema(
    Type.STRUCT,
    optional=True,
    fields=[
        ("d", decimal_schema(3, optional=True)),
        ("l", Schema(Type.ARRAY, optional=True, value_schema=timestamp_schema(optional=True))),
        ("s", Schema(Type.STRUCT, optional=True, fields=[("x", OPTIONAL_INT64_SCHEMA)])),
    ],
)
VALUE = Schema(
    Type.STRUCT,
    name="t",
    fields=[
        ("i", INT32_SCHEMA),
        ("j", OPTIONAL_INT64_SCHEMA),
        ("f", OPTIONAL_FLOAT32_SCHEMA),
        ("g", OPTIONAL_FLOAT64_SCHEMA),
        ("b", OPTIONAL_BOOLEAN_SCHEMA),
        ("s", OPTIONAL_STRING_SCHEMA),
        ("y", OPTIONAL_BYTES_SCHEMA),
        ("dec", decimal_schema(2, optional=True)),
        ("day", date_schema(optional=True)),
        ("at", timestamp_schema(optional=True)),
        ("n", INNER),
        ("m", Schema(Type.MAP, optional=True, key_schema=STRING_SCHEMA, value_schema=decimal_schema(1, optional=True))),
        ("ls", Schema(Type.ARRAY, optional=True, value_schema=INNER)),
    ],
)
UTC = dt.timezone.utc
UPSERT = {"tables_upsert-mode-enabled": "true", "tables_default-id-columns": "id"}


def struct(schema: Schema, *values: Any) -> Struct:
    return Struct.of(schema, list(values))


def inner(number: int) -> Struct:
    schema = next(field.schema for field in INNER.fields if field.name == "s")
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 123000, tzinfo=UTC)
    return struct(INNER, Decimal(number).scaleb(-3), [moment, None], struct(schema, number))


def values() -> list[list[Any]]:
    return [
        [
            1,
            2**62,
            0.5,
            -1e300,
            True,
            "å",
            b"\x00\xff",
            Decimal("-12345678901234567890.12"),
            dt.date(1900, 2, 28),
            dt.datetime(2026, 1, 1, 1, 2, 3, 4000, tzinfo=UTC),
            inner(1),
            {"k": Decimal("1.5"), "z": None},
            [inner(2), None],
        ],
        [2, *[None] * 12],
        [3, 0, float("inf"), -0.0, False, "", b"", Decimal("0.00"), dt.date(1970, 1, 1), *[None] * 2, {}, []],
    ]


def read_back(format_: str, folder: Path, schema: Schema, rows: list[list[Any]]) -> tuple[Schema | None, list[Any]]:
    """Return the schema and the values of records that were written to a table and read from it."""
    sink = Lake(format_, folder)
    config = sink.config()
    task = Task(sink, config, [TopicPartition("people", 0)])
    task.put(*(SinkRecord("people", 0, number, struct(schema, *row), schema) for number, row in enumerate(rows)))
    task.commit(len(rows))
    task.task.stop()
    source = SourceLake(format_, folder)
    for columns in (True, False):
        records = Reading(source, source.config(batch_max_rows="1000")).all(columns=columns)
        assert [record.value.values_[0] for record in records] == [row[0] for row in rows]
    return records[0].value_schema, [record.value for record in records]


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_values_are_read_as_they_were_written(format_: str, tmp_path: Path) -> None:
    rows = values() * 20
    schema, found = read_back(format_, tmp_path, VALUE, rows)
    assert schema == VALUE
    assert found == [struct(VALUE, *row) for row in rows]


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_a_time_of_day_is_read_as_it_was_written(format_: str, tmp_path: Path) -> None:
    time = Schema(Type.STRUCT, name="t", fields=[("p", decimal_schema(4)), ("t", time_schema())])
    moment = dt.time(23, 59, 59, 999000)
    schema, found = read_back(format_, tmp_path, time, [[Decimal("1.0000"), moment]])
    if format_ == "delta":  # which has no such type
        millis = Schema(Type.STRUCT, name="t", fields=[("p", decimal_schema(4)), ("t", INT32_SCHEMA)])
        assert (schema, found) == (millis, [struct(millis, Decimal("1.0000"), 86_399_999)])
    else:
        assert (schema, found) == (time, [struct(time, Decimal("1.0000"), moment)])


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_versions_and_tombstones_are_read_as_they_were_written(format_: str, tmp_path: Path) -> None:
    sink, source = Lake(format_, tmp_path), SourceLake(format_, tmp_path)
    task = Task(sink, sink.config(**UPSERT), [TopicPartition("people", 0)])
    old = Schema.struct({"id": INT64_SCHEMA, "n": OPTIONAL_INT64_SCHEMA}, name="t")
    new = Schema.struct({"id": INT64_SCHEMA, "n": OPTIONAL_INT64_SCHEMA, "d": decimal_schema(2, optional=True)}, name="t")
    written = [
        (1, struct(old, 1, 10)),
        (2, struct(new, 2, None, Decimal("0.50"))),
        (1, None),
        (3, struct(old, 3, 30)),
    ]
    reading: Reading | None = None
    found = []
    for offset, (key, value) in enumerate(written):
        task.put(SinkRecord("people", 0, offset, value, None if value is None else value.schema, Struct(KEY, {"id": key}), KEY))
        task.commit(offset + 1)
        reading = reading or Reading(source, source.config(changes_mode="tombstone", **source.ids()))
        found += [(record.key["id"], record.value) for record in reading.all()]
    task.task.stop()
    assert found == [*written[:3], (3, struct(new, 3, 30, None))]
