"""Connect's values as Arrow arrays for Spark, and back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sluiceway.data import Schema, Struct, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.errors import DataError
from sluiceway.spark.rounds.arrow_rows import arrow_field, arrow_type, to_array, to_values

_UTC = dt.timezone.utc
_MOMENT = dt.datetime(2026, 1, 1, tzinfo=_UTC)
_POINT = Schema(Type.STRUCT, optional=True, fields=[("x", Schema(Type.INT32)), ("y", Schema(Type.STRING, optional=True))])
_CASES: list[tuple[Schema, list[Any]]] = [
    (Schema(Type.INT64), [1, -(2**63)]),
    (Schema(Type.STRING, optional=True), ["a", None]),
    (Schema(Type.BYTES), [b"\0"]),
    (decimal_schema(2), [Decimal("1.50")]),
    (date_schema(optional=True), [dt.date(2026, 1, 2), None]),
    (timestamp_schema(), [dt.datetime(2026, 1, 2, 3, 4, 5, 678000, _UTC)]),
    (_POINT, [Struct(_POINT, {"x": 1, "y": "a"}), None]),
    (Schema(Type.ARRAY, optional=True, value_schema=_POINT), [[Struct(_POINT, {"x": 1}), None], None, []]),
    (
        Schema(Type.MAP, key_schema=Schema(Type.STRING), value_schema=timestamp_schema()),
        [{"a": dt.datetime(2026, 1, 1, tzinfo=_UTC)}],
    ),
]


@pytest.mark.parametrize(
    ("schema", "values"), _CASES, ids=lambda each: each.name or each.type.value if isinstance(each, Schema) else ""
)
def test_values_come_back(schema: Schema, values: list[Any]) -> None:
    array = to_array(schema, values)
    assert array.type == arrow_type(schema)
    assert to_values(schema, array) == values


def test_a_missing_field_has_its_default() -> None:
    schema = Schema(Type.STRUCT, fields=[("n", Schema(Type.INT32, default=7))])
    assert to_array(schema, [Struct(schema)]).to_pylist() == [{"n": 7}]


def test_a_time_is_its_milliseconds() -> None:
    assert to_array(time_schema(), [dt.time(0, 0, 1)]).to_pylist() == [1000]


def test_a_column_is_nullable_unless_it_is_required() -> None:
    assert arrow_field("a", Schema(Type.INT32, optional=True)).nullable
    assert not arrow_field("a", Schema(Type.INT32)).nullable


def test_a_value_that_does_not_fit_is_an_error_of_its_record() -> None:
    with pytest.raises(DataError, match="cannot be written to a DataFrame"):
        to_array(decimal_schema(2), [Decimal(10) ** 40])


def test_sparks_timestamps_lose_their_microseconds() -> None:
    array = pa.array([1999], pa.int64()).cast(pa.timestamp("us"))
    assert to_values(timestamp_schema(), array) == [dt.datetime(1970, 1, 1, 0, 0, 0, 1000, _UTC)]


@pytest.mark.parametrize("scale", [-(2**31), -1, 39, 2**31 - 1])
def test_a_scale_that_spark_does_not_have_is_refused(scale: int) -> None:
    with pytest.raises(DataError, match=f"scale {scale}, but Spark has scales from 0 to 38"):
        arrow_type(decimal_schema(scale))
