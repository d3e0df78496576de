"""Debezium's semantic types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.sink.types import binder_of, column_type
from sluiceway.data import INT32_SCHEMA, Schema, Struct, Type
from sluiceway.errors import DataError

NOON = dt.datetime(2024, 5, 6, 12, 0, 0, 123456, dt.timezone.utc).replace(tzinfo=None)


MICROS = 1_714_996_800_123_456


@pytest.mark.parametrize(
    ("name", "type_", "value", "column", "bound"),
    [
        ("io.debezium.time.MicroTimestamp", Type.INT64, MICROS, "TIMESTAMP(6)", NOON),
        ("io.debezium.time.NanoTimestamp", Type.INT64, MICROS * 1000 + 999, "TIMESTAMP(6)", NOON),
        ("io.debezium.time.Timestamp", Type.INT64, MICROS // 1000, "TIMESTAMP(3)", NOON.replace(microsecond=123000)),
        (
            "io.debezium.time.ZonedTimestamp",
            Type.STRING,
            "2024-05-06T12:00:00.123456Z",
            "TIMESTAMP(6) WITH TIME ZONE",
            NOON.replace(tzinfo=dt.timezone.utc),
        ),
        ("io.debezium.time.Date", Type.INT32, -1, "DATE", dt.date(1969, 12, 31)),
        ("io.debezium.time.MicroTime", Type.INT64, 3_600_000_001, "TIME(6)", dt.time(1, 0, 0, 1)),
        ("io.debezium.data.Json", Type.STRING, "{}", "JSON", "{}"),
    ],
)
def test_semantic_types_have_their_columns_and_values(name: str, type_: Type, value: Any, column: str, bound: Any) -> None:
    schema = Schema(type_, name=name)
    assert column_type(dialect_of("postgresql"), "f", schema) == column
    binder = binder_of(dialect_of("postgresql"), ZoneInfo("Europe/Berlin"), "f", schema)
    assert binder is not None
    assert binder(value) == bound


@pytest.mark.parametrize("database", ["postgresql", "mysql", "sqlite", "sqlserver"])
@given(st.integers(-(10**200), 10**200), st.integers(-300, 300))
def test_a_decimal_of_any_scale_keeps_its_digits(database: str, number: int, scale: int) -> None:
    schema = Schema.struct({"scale": INT32_SCHEMA, "value": Schema(Type.BYTES)}, name="io.debezium.data.VariableScaleDecimal")
    binder = binder_of(dialect_of(database), ZoneInfo("UTC"), "f", schema)
    assert binder is not None
    value = Struct(schema, {"scale": scale, "value": number.to_bytes(90, "big", signed=True)})
    expected = Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
    assert str(binder(value)) == str(expected)


def test_a_value_that_its_type_does_not_have_is_refused() -> None:
    binder = binder_of(dialect_of("mysql"), ZoneInfo("UTC"), "at", Schema(Type.INT64, name="io.debezium.time.MicroTime"))
    assert binder is not None
    with pytest.raises(DataError, match="Field at holds 86400000000"):
        binder(86_400_000_000)
