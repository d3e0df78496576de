"""Properties of Arrow arrays of Connect values: values come back equal, or the array is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api.columns import NotColumnar
from sluiceway.columns.arrays import to_array, to_values
from sluiceway.columns.arrow_schema import PRECISION, arrow_type
from sluiceway.data import (
    FLOAT32_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Int8,
    Schema,
    Struct,
    Type,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from sluiceway.data.instant import Instant
from sluiceway.java.numbers import to_float32
from support.column_forms import many
from support.connect_data import schemas, values

given_columns = schemas().flatmap(lambda schema: st.tuples(st.just(schema), st.lists(values(schema), max_size=6)))


def refused(schema: Schema, column: list[Any]) -> bool:
    """Whether only NotColumnar can be the answer: Arrow has no such type, or the numbers have too many digits."""
    try:
        arrow_type(schema)
    except NotColumnar:
        return True
    return _too_long(schema, column)


def _too_long(schema: Schema, column: list[Any]) -> bool:
    present = [value for value in column if value is not None]
    if schema.parameters.get("scale") is not None:
        return any(len(value.as_tuple().digits) > 38 for value in present)
    if schema.type is Type.STRUCT:
        return any(_too_long(field.schema, [value.values_[field.index] for value in present]) for field in schema.fields)
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return _too_long(schema.value_schema, [item for value in present for item in value])
    if schema.type is Type.MAP:
        assert schema.value_schema is not None
        return _too_long(schema.value_schema, [item for value in present for item in value.values()])
    return False


@many
@given(given_columns, st.integers(0, 3))
def test_values_come_back_equal(data: tuple[Schema, list[Any]], start: int) -> None:
    schema, column = data
    try:
        array = to_array(schema, column)
    except NotColumnar:
        assert refused(schema, column)
        return
    assert array.type == arrow_type(schema)
    array.validate(full=True)
    assert repr(to_values(schema, array)) == repr(column)
    assert to_values(schema, array) == column
    assert to_values(schema, array.slice(start)) == column[start:]


@pytest.mark.parametrize(
    "schema",
    [
        INT8_SCHEMA,
        Schema.struct({}),
        Schema.struct({"a": INT64_SCHEMA}),
        Schema.array(STRING_SCHEMA),
        Schema.map(STRING_SCHEMA, STRING_SCHEMA),
        decimal_schema(2),
        timestamp_schema(),
    ],
    ids=str,
)
def test_no_values(schema: Schema) -> None:
    array = to_array(schema, [])
    assert (array.type, len(array), to_values(schema, array)) == (arrow_type(schema), 0, [])


NESTED = Schema.struct(
    {"a": INT64_SCHEMA, "b": Schema.struct({"c": STRING_SCHEMA, "d": OPTIONAL_INT64_SCHEMA}, optional=True)}, optional=True
)
INNER = NESTED.fields[1].schema


def test_null_structs_keep_their_required_fields_null() -> None:
    column = [
        None,
        Struct.of(NESTED, [1, None]),
        Struct.of(NESTED, [2, Struct.of(INNER, ["x", None])]),
        Struct.of(NESTED, [3, Struct.of(INNER, ["y", 7])]),
    ]
    array = to_array(NESTED, column)
    assert to_values(NESTED, array) == column
    assert to_values(NESTED, array.slice(1, 2)) == column[1:3]


def test_nulls_of_fields_with_a_default_stay_null() -> None:
    schema = Schema.struct({"a": Schema(Type.INT32, default=5)})
    read = to_values(schema, to_array(schema, [Struct.of(schema, [None]), Struct.of(schema, [6])]))
    assert [struct.values_ for struct in read] == [[None], [6]]
    assert [struct["a"] for struct in read] == [5, 6]


UTC = dt.timezone.utc
OTHER = Schema.struct({"a": STRING_SCHEMA})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INT8_SCHEMA, 128),
        (INT8_SCHEMA, Int8(1)),
        (INT8_SCHEMA, True),
        (INT32_SCHEMA, 1.0),
        (INT64_SCHEMA, 1 << 63),
        (INT64_SCHEMA, None),
        (FLOAT32_SCHEMA, 0.1),
        (FLOAT32_SCHEMA, 1e300),
        (FLOAT32_SCHEMA, 1),
        (STRING_SCHEMA, "\ud800"),
        (STRING_SCHEMA, b"x"),
        (Schema(Type.BYTES), bytearray(b"x")),
        (Schema(Type.BOOLEAN), 1),
        (decimal_schema(2), Decimal("1.5")),
        (decimal_schema(2), Decimal("-0.00")),
        (decimal_schema(2), Decimal("NaN")),
        (decimal_schema(2), Decimal(10**37).scaleb(2).scaleb(-2)),
        (decimal_schema(77), Decimal(1).scaleb(-77)),
        (decimal_schema(-1), Decimal("1E+1")),
        (decimal_schema(10**30), Decimal(1)),
        (decimal_schema(2).replace(parameters={"scale": "2", PRECISION: "4"}), Decimal("100.00")),
        (decimal_schema(2).replace(parameters={"scale": "2", PRECISION: "77"}), Decimal("100.00")),
        (decimal_schema(2).replace(parameters={}), Decimal("100.00")),
        (date_schema(), Instant(1)),
        (date_schema(), dt.datetime(2024, 1, 1, tzinfo=UTC)),
        (time_schema(), dt.time(1, 2, 3, 1500)),
        (time_schema(), dt.time(1, 2, 3, tzinfo=UTC)),
        (time_schema(), Instant(-1)),
        (timestamp_schema(), Instant(1 << 60)),
        (timestamp_schema(), dt.datetime(2024, 1, 1)),  # noqa: DTZ001
        (timestamp_schema(), dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))),
        (timestamp_schema(), dt.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        (timestamp_schema().replace(type_=Type.STRING), "x"),
        (Schema.array(INT64_SCHEMA), (1,)),
        (Schema.array(INT64_SCHEMA), [None]),
        (Schema.map(Schema(Type.STRING, optional=True), INT64_SCHEMA), {None: 1}),
        (Schema.map(STRING_SCHEMA, INT64_SCHEMA), {"a": None}),
        (Schema.map(Schema.array(STRING_SCHEMA), INT64_SCHEMA), {}),
        (NESTED, Struct.of(NESTED, [None, None])),
        (NESTED, Struct(OTHER, {"a": "x"})),
        (INNER, Struct.of(INNER, ["too short"])),
        (Schema.struct({"\ud800": INT64_SCHEMA}), None),
    ],
    ids=lambda given: "struct" if isinstance(given, Struct) else repr(given)[:40],
)
def test_values_without_an_exact_arrow_form_are_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(NotColumnar):
        to_array(schema, [value])


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (FLOAT32_SCHEMA, to_float32(0.1)),
        (FLOAT32_SCHEMA, float("inf")),
        (decimal_schema(2).replace(parameters={"scale": "2", PRECISION: "60"}), Decimal((0, (9,) * 60, -2))),
        (decimal_schema(50), Decimal("0." + "1" * 50)),
        (date_schema(), dt.date(1, 1, 1)),
        (date_schema(), dt.date(1969, 12, 31)),
        (date_schema(), dt.date(9999, 12, 31)),
        (timestamp_schema(), dt.datetime(1, 1, 1, tzinfo=UTC)),
        (timestamp_schema(), dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (timestamp_schema(), dt.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (Schema.map(OTHER, INT64_SCHEMA), {Struct(OTHER, {"a": "x"}): 1}),
    ],
    ids=lambda given: repr(given)[:40],
)
def test_extremes_come_back(schema: Schema, value: Any) -> None:
    (read,) = to_values(schema, to_array(schema, [value]))
    assert (type(read), repr(read), read) == (type(value), repr(value), value)


def test_nan_and_negative_zero_come_back() -> None:
    for schema in (FLOAT32_SCHEMA, Schema(Type.FLOAT64)):
        assert repr(to_values(schema, to_array(schema, [float("nan"), -0.0]))) == "[nan, -0.0]"


def test_moments_beyond_pythons_years_are_instants() -> None:
    beyond = 300_000_000_000_000
    stamps = pa.array([beyond, None], pa.int64()).view(pa.timestamp("ms", tz="UTC"))
    assert to_values(timestamp_schema(optional=True), stamps) == [Instant(beyond), None]
    days = pa.array([10_000_000], pa.int32()).view(pa.date32())
    assert to_values(date_schema(), days) == [Instant(10_000_000 * 86_400_000)]


def test_a_struct_of_an_equal_schema_fits() -> None:
    other = Schema.struct({"a": OPTIONAL_STRING_SCHEMA})
    same = Schema.struct({"a": OPTIONAL_STRING_SCHEMA})
    (read,) = to_values(same, to_array(same, [Struct(other, {"a": "x"})]))
    assert read.schema is same
