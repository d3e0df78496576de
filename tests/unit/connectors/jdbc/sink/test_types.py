"""Column types and values for each dialect."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.sink.types import binder_of, column_definition, column_type
from sluiceway.data import (
    INT32_SCHEMA,
    STRING_SCHEMA,
    Instant,
    Schema,
    Type,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from sluiceway.errors import DataError

PRECISE = decimal_schema(2).replace(parameters={"scale": "2", "connect.decimal.precision": "10"})


UTC = ZoneInfo("UTC")


@pytest.mark.parametrize(
    ("dialect", "schema", "key", "expected"),
    [
        ("postgresql", decimal_schema(2), False, "NUMERIC"),
        ("postgresql", PRECISE, False, "NUMERIC(10,2)"),
        ("mysql", decimal_schema(2), False, "DECIMAL(65,2)"),
        ("mysql", decimal_schema(40), False, "DECIMAL(65,30)"),
        ("mysql", STRING_SCHEMA, False, "LONGTEXT"),
        ("mysql", STRING_SCHEMA, True, "VARCHAR(255)"),
        ("postgresql", Schema.array(INT32_SCHEMA), False, "INTEGER[]"),
        ("sqlite", timestamp_schema(), False, "TIMESTAMP"),
    ],
)
def test_schemas_become_column_types(dialect: str, schema: Schema, key: bool, expected: str) -> None:
    assert column_type(dialect_of(dialect), "x", schema, key=key) == expected


@pytest.mark.parametrize(
    ("dialect", "schema", "expected"),
    [
        ("postgresql", Schema(Type.INT32, optional=True), "INTEGER NULL"),
        ("postgresql", Schema(Type.STRING, default="it's"), "TEXT DEFAULT 'it''s' NOT NULL"),
        ("mysql", Schema(Type.STRING, default="a"), "LONGTEXT DEFAULT ('a') NOT NULL"),
        ("mysql", Schema(Type.STRING, default="a\\' or 1"), "LONGTEXT NOT NULL"),
        ("sqlite", Schema(Type.BOOLEAN, default=True), "BOOLEAN DEFAULT TRUE NOT NULL"),
        ("postgresql", Schema(Type.FLOAT64, default=float("nan")), "DOUBLE PRECISION NOT NULL"),
    ],
)
def test_columns_are_defined_with_default_and_nullability(dialect: str, schema: Schema, expected: str) -> None:
    assert column_definition(dialect_of(dialect), "x", schema) == expected


MOMENT = dt.datetime(2024, 7, 1, 22, 30, 0, 5000, tzinfo=dt.timezone.utc)


@pytest.mark.parametrize(
    ("dialect", "zone", "schema", "value", "expected"),
    [
        ("postgresql", "UTC", timestamp_schema(), MOMENT, MOMENT.replace(tzinfo=None)),
        ("mysql", "Europe/Berlin", timestamp_schema(), MOMENT, dt.datetime(2024, 7, 2, 0, 30, 0, 5000)),  # noqa: DTZ001
        ("sqlite", "UTC", timestamp_schema(), MOMENT, "2024-07-01 22:30:00.005"),
        ("sqlite", "UTC", date_schema(), dt.date(2024, 1, 2), "2024-01-02"),
        ("sqlite", "UTC", time_schema(), dt.time(1, 2, 3), "01:02:03.000"),
        ("sqlite", "UTC", decimal_schema(1), Decimal("1.5"), "1.5"),
        ("postgresql", "UTC", date_schema(), dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc), dt.date(2024, 1, 2)),
        ("postgresql", "UTC", Schema.array(date_schema()), [dt.date(2024, 1, 2), None], [dt.date(2024, 1, 2), None]),
    ],
)
def test_values_become_what_the_driver_takes(dialect: str, zone: str, schema: Schema, value: object, expected: object) -> None:
    binder = binder_of(dialect_of(dialect), ZoneInfo(zone), "x", schema)
    assert binder is not None
    assert binder(value) == expected


@pytest.mark.parametrize("schema", [date_schema(), time_schema(), timestamp_schema()])
def test_dates_and_times_out_of_range_are_refused(schema: Schema) -> None:
    binder = binder_of(dialect_of("postgresql"), UTC, "born", schema)
    assert binder is not None
    with pytest.raises(DataError, match="Field born holds"):
        binder(Instant(10**15))
