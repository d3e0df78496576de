"""Arrow's columns as Connect's schemas and values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sluiceway.columns import to_values
from sluiceway.columns.connect_schemas import connect_array, row_schema
from sluiceway.data import Schema, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.errors import DataError

AT = dt.datetime(2026, 1, 1, 1, 2, 3, 4000)  # noqa: DTZ001 (Arrow takes it as UTC)
NULLS = pa.struct([pa.field("r", pa.int64(), nullable=False)])


@pytest.mark.parametrize(
    ("array", "schema", "values"),
    [
        (pa.array([1], pa.uint8()), Schema(Type.INT16), [1]),
        (pa.array([1], pa.uint32()), Schema(Type.INT64), [1]),
        (pa.array([0.5], pa.float16()), Schema(Type.FLOAT32), [0.5]),
        (pa.array(["a"], pa.large_string()), Schema(Type.STRING), ["a"]),
        (pa.array(["a"], pa.string_view()), Schema(Type.STRING), ["a"]),
        (pa.array(["a"]).dictionary_encode(), Schema(Type.STRING), ["a"]),
        (pa.array([b"ab"], pa.binary(2)), Schema(Type.BYTES), [b"ab"]),
        (pa.array([Decimal("1.50")], pa.decimal128(38, 2)), decimal_schema(2), [Decimal("1.50")]),
        (pa.array([AT], pa.timestamp("ns")), timestamp_schema(), [AT.replace(tzinfo=dt.timezone.utc)]),
        (pa.array([AT], pa.timestamp("us", "Europe/Oslo")), timestamp_schema(), [AT.replace(tzinfo=dt.timezone.utc)]),
        (pa.array([dt.time(1, 2, 3, 4567)], pa.time64("us")), time_schema(), [dt.time(1, 2, 3, 4000)]),
        (pa.array([dt.date(2026, 1, 1)], pa.date64()), date_schema(), [dt.date(2026, 1, 1)]),
        (pa.array([[1, None]], pa.large_list(pa.int8())), None, [[1, None]]),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())), None, [{"k": 1}]),
    ],
)
def test_values_of_each_type(array: Any, schema: Schema | None, values: list[Any]) -> None:
    row = row_schema([pa.field("x", array.type, nullable=False)])
    if schema is not None:
        assert row.fields[0].schema == schema
    rows = pa.StructArray.from_arrays([array], names=["x"])
    assert [value["x"] for value in to_values(row, connect_array(row, rows))] == values


def test_a_null_struct_may_have_required_fields() -> None:
    row = row_schema([pa.field("s", NULLS)])
    [value] = to_values(row, connect_array(row, pa.array([{"s": None}], pa.struct([pa.field("s", NULLS)]))))
    assert value.values_ == [None]


def test_a_column_that_connect_lacks_is_named() -> None:
    with pytest.raises(DataError, match=r"column s: column d: Connect has no type for duration"):
        row_schema([pa.field("s", pa.struct([("d", pa.duration("s"))]))])


def test_digits_of_decimals_are_kept() -> None:
    [field] = row_schema([pa.field("d", pa.decimal128(9, 2))]).fields
    assert field.schema.parameters == {"scale": "2", "connect.decimal.precision": "9"}
