from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.instant import Instant
from sluiceway.data.logical import TIMESTAMP, date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.data.numbers import BigInteger, Float32, Int8, Int16, Int32
from sluiceway.errors import ConfigError, DataError, SchemaBuilderError
from sluiceway.transforms.cast import CastKey, CastValue
from unit.transforms.transforming import configured, plain, struct_of, transformed, value_of

UTC = dt.timezone.utc
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
SCHEMAS = {
    "int8": Type.INT8,
    "int16": Type.INT16,
    "int32": Type.INT32,
    "int64": Type.INT64,
    "float32": Type.FLOAT32,
    "float64": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
}


def cast(value: Any, schema: Schema, target: str) -> Any:
    """Cast the only field of a struct."""
    return value_of(configured(CastValue, spec=f"a:{target}"), *struct_of({"a": schema}, {"a": value}))["a"]


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (300, Type.INT32, "int8", 44),
        (70000, Type.INT32, "int16", 4464),
        (2**40 + 5, Type.INT64, "int32", 5),
        (5, Type.INT8, "int64", 5),
        (1e10, Type.FLOAT64, "int32", 2**31 - 1),
        (1e10, Type.FLOAT64, "int8", -1),
        (-1e30, Type.FLOAT64, "int64", -(2**63)),
        (math.nan, Type.FLOAT64, "int32", 0),
        (-2.9, Type.FLOAT64, "int16", -2),
        (True, Type.BOOLEAN, "int32", 1),
        (False, Type.BOOLEAN, "float64", 0.0),
        (True, Type.BOOLEAN, "string", "true"),
        (0.1, Type.FLOAT64, "float32", 0.10000000149011612),
        (16777217, Type.INT32, "float32", 16777216.0),
        (2**54 + 2**30 + 1, Type.INT64, "float32", 18014400656965632.0),
        (0.1, Type.FLOAT64, "boolean", False),
        (1.9, Type.FLOAT64, "boolean", True),
        (0, Type.INT8, "boolean", False),
        ("+5", Type.STRING, "int8", 5),
        ("\u0661\u0662", Type.STRING, "int32", 12),
        (" 1f ", Type.STRING, "float32", 1.0),
        ("1e3", Type.STRING, "float64", 1000.0),
        ("yes", Type.STRING, "boolean", False),
        ("TRUE", Type.STRING, "boolean", True),
        (1e10, Type.FLOAT64, "string", "1.0E10"),
        (0.1, Type.FLOAT32, "string", "0.1"),
        (-7, Type.INT16, "string", "-7"),
        (b"\x00\xff", Type.BYTES, "string", "AP8="),
    ],
)
def test_primitive_types_are_cast_as_java_casts_them(value: Any, source: Type, target: str, expected: Any) -> None:
    result = cast(value, Schema(source), target)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("abc", "int8"),
        (" 1", "int32"),
        ("1e3", "int32"),
        ("1.5", "int64"),
        ("128", "int8"),
        ("", "float64"),
        ("1_000", "float32"),
        ("yes", "float64"),
        (str(2**63), "int64"),
    ],
)
def test_a_text_that_is_no_number_of_that_type_is_an_error(text: str, target: str) -> None:
    with pytest.raises(DataError, match=r"^Value \(.*\) was out of range for requested data type$") as caught:
        cast(text, STRING_SCHEMA, target)
    assert text in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)


def test_bytes_are_cast_only_to_string() -> None:
    with pytest.raises(DataError, match=r"Unexpected type in Cast transformation: class \[B"):
        cast(b"x", Schema(Type.BYTES), "int64")


@pytest.mark.parametrize(
    ("value", "schema", "number", "text"),
    [
        (dt.date(1970, 1, 6), date_schema(), 5, "1970-01-06"),
        (dt.time(0, 0, 1), time_schema(), 1000, "00:00:01.000Z"),
        (dt.datetime(2022, 4, 15, 5, 20, 0, 123000, tzinfo=UTC), timestamp_schema(), 1650000000123, "2022-04-15T05:20:00.123Z"),
        (dt.datetime(2022, 4, 15, tzinfo=UTC), timestamp_schema(), 1649980800000, "2022-04-15"),
        (dt.datetime(1969, 12, 31, 23, tzinfo=UTC), timestamp_schema(), -3600000, "23:00:00.000Z"),
        (Instant(2**60), timestamp_schema(), 2**60, "36536598-01-28T21:54:06.976Z"),
        (Decimal("300.99"), decimal_schema(2), 300, "300.99"),
        (Decimal("5E-10"), decimal_schema(10), 0, "5E-10"),
    ],
)
def test_logical_types_are_cast_from_what_they_are_made_of_and_to_readable_text(
    value: Any, schema: Schema, number: int, text: str
) -> None:
    assert cast(value, schema, "int64") == number
    assert cast(value, schema, "int8") == (number + 128) % 256 - 128
    assert cast(value, schema, "string") == text


@pytest.mark.parametrize("schema", [Schema.array(STRING_SCHEMA), Schema.map(STRING_SCHEMA, STRING_SCHEMA), Schema.struct({})])
def test_other_types_are_not_cast(schema: Schema) -> None:
    value = Struct(schema) if schema.type is Type.STRUCT else [] if schema.type is Type.ARRAY else {}
    with pytest.raises(DataError, match=f"casting from {schema.type.name}; supported types are .*BYTES]"):
        cast(value, schema, "string")


def test_without_a_schema_the_class_shows_the_width() -> None:
    value = {"a": 300, "b": 1.5, "c": "7", "d": None}
    result = value_of(configured(CastValue, spec="a:int8,b:float32,c:int16,d:int32,nope:string"), value)
    assert result == {"a": 44, "b": 1.5, "c": 7, "d": None, "nope": None}
    assert [type(result[name]) for name in "abc"] == [Int8, Float32, Int16]
    assert value == {"a": 300, "b": 1.5, "c": "7", "d": None}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal(1), "passed a value of type class java.math.BigDecimal which is not supported"),
        (dt.datetime(2022, 1, 1, tzinfo=UTC), "passed a value of type class java.util.Date which is not supported"),
        ([1], "casting from ARRAY"),
        ({}, "casting from MAP"),
        (Struct(Schema.struct({})), "casting from STRUCT"),
        (b"x", r"class \[B"),
    ],
)
def test_without_a_schema_other_classes_are_refused(value: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        transformed(configured(CastValue, spec="a:int64"), {"a": value})
    with pytest.raises(DataError, match=text):
        transformed(configured(CastValue, spec="int64"), value)


def test_the_whole_value_is_cast_and_keeps_all_of_its_schema_but_the_type() -> None:
    schema = Schema(Type.INT32, optional=True, default=300, name="N", version=2, doc="d", parameters={"k": "v"})
    record = transformed(configured(CastValue, spec="int8"), 1000, schema)
    assert record.value == -24
    assert record.value_schema == Schema(
        Type.INT8, optional=True, default=44, name="N", version=2, doc="d", parameters={"k": "v"}
    )
    assert type(transformed(configured(CastValue, spec="INT32"), "12").value) is Int32


def test_a_default_under_a_logical_name_cannot_be_cast_with_the_whole() -> None:
    schema = Schema(Type.INT64, default=dt.datetime(2022, 1, 1, tzinfo=UTC), name=TIMESTAMP)
    with pytest.raises(SchemaBuilderError, match="Invalid default value"):
        transformed(configured(CastValue, spec="int8"), dt.datetime(2022, 1, 1, tzinfo=UTC), schema)


def test_a_field_keeps_optional_and_default_but_no_name() -> None:
    fields = {"a": Schema(Type.INT32, optional=True, default=300, name="N", doc="d"), "b": STRING_SCHEMA}
    record = transformed(configured(CastValue, spec="a:int8"), *struct_of(fields, {"b": "x"}, optional=True, name="S"))
    assert plain(record.value) == {"a": 44, "b": "x"}
    expected = {"a": Schema(Type.INT8, optional=True, default=44), "b": STRING_SCHEMA}
    assert record.value_schema == Schema.struct(expected, optional=True, name="S")


def test_a_default_that_cannot_be_cast_is_an_error_for_every_struct() -> None:
    with pytest.raises(DataError, match=r"Value \(bad\) was out of range"):
        cast("5", Schema(Type.STRING, default="bad"), "int8")


def test_nulls_stay_null_without_a_default() -> None:
    fields = {"a": Schema(Type.INT32, optional=True), "b": Schema(Type.STRING, optional=True, default="7")}
    assert value_of(configured(CastValue, spec="a:string,b:int8"), *struct_of(fields, {})) == {"a": None, "b": 7}
    keep = configured(CastValue, spec="a:string,b:int8", replace_null_with_default="false")
    assert value_of(keep, *struct_of(fields, {})) == {"a": None, "b": None}


def test_the_error_is_about_the_first_field_that_fails() -> None:
    fields = {"a": STRING_SCHEMA, "b": STRING_SCHEMA}
    with pytest.raises(DataError, match=r"Value \(x\)"):
        transformed(configured(CastValue, spec="b:int8,a:int8"), *struct_of(fields, {"a": "x", "b": "y"}))


def test_a_refused_null_is_reported_before_a_later_field_that_fails() -> None:
    fields = {"a": Schema(Type.STRING, default="d"), "b": STRING_SCHEMA}
    cast_b = configured(CastValue, spec="b:int8", replace_null_with_default="false")
    with pytest.raises(DataError, match='required field: "a"'):
        transformed(cast_b, *struct_of(fields, {"b": "y"}))


def test_nulls_pass_and_other_schemas_do_not() -> None:
    fields = configured(CastValue, spec="a:int8")
    assert transformed(fields, None, Schema(Type.INT32, optional=True)).value is None
    with pytest.raises(DataError, match="Cannot list fields on non-struct type"):
        transformed(fields, 5, INT64_SCHEMA)
    with pytest.raises(DataError, match=r"\[cast types\], found: java.lang.Long"):
        transformed(fields, 5)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("a:b:c", r"Invalid value \[a:b:c\] for configuration renames: Invalid rename mapping: a:b:c"),
        ("int8,int16", "may only specify a single cast"),
        ("a:date", "Invalid type found in casting spec: date"),
        ("bytes", "does not support casting to BYTES"),
        ("a:struct", "casting to STRUCT"),
        ("", "at least one field to cast"),
        ("a:int8,", "casting spec: $"),
        ("a:bytes,a:b:c", "does not support casting to BYTES"),
    ],
)
def test_a_malformed_spec_is_refused(spec: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        configured(CastValue, spec=spec)


def test_a_spec_of_colons_alone_ends_as_in_java() -> None:
    with pytest.raises(IndexError, match="Index 1 out of bounds for length 0"):
        configured(CastValue, spec="a:int8,:")


def test_blanks_that_java_does_not_trim_are_part_of_a_types_name() -> None:
    with pytest.raises(ConfigError, match="casting spec: int8\u2028"):
        configured(CastValue, spec="a:int8\u2028")


def test_a_big_integer_cannot_be_cast() -> None:
    with pytest.raises(DataError, match=r"class java\.math\.BigInteger which is not supported by Connect's data API"):
        transformed(configured(CastValue, spec="a:int8"), {"a": BigInteger(1)})


def test_a_default_struct_does_not_fit_the_field_it_is_the_default_of() -> None:
    inner = Schema.struct({"x": INT64_SCHEMA})
    schema = Schema.struct({"s": inner.replace(optional=True, default=Struct(inner, {"x": 1}))})
    with pytest.raises(DataError, match=r"^Struct schemas do not match\.$"):
        transformed(configured(CastValue, spec="t:int8"), Struct(schema), schema)
    kept = configured(CastValue, spec="t:int8", replace_null_with_default="false")
    assert value_of(kept, Struct(schema), schema) == {"s": None}


def test_names_and_types_are_trimmed_and_the_last_of_two_casts_counts() -> None:
    assert value_of(configured(CastValue, spec=" a : int8 , a:STRING"), {"a": 5}) == {"a": "5"}


def test_the_key_form_leaves_the_value_alone() -> None:
    record = transformed(configured(CastKey, spec="string"), 5, key=6)
    assert (record.key, record.value) == ("6", 5)


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(sorted(BITS)))
def test_integers_keep_their_low_bits_with_and_without_a_schema(value: int, target: str) -> None:
    result = cast(value, INT64_SCHEMA, target)
    half = 1 << (BITS[target] - 1)
    assert (result - value) % (2 * half) == 0
    assert -half <= result < half
    assert transformed(configured(CastValue, spec=target), value).value == result


@given(st.floats() | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.text(), st.sampled_from(sorted(SCHEMAS)))
def test_a_cast_returns_the_type_or_raises_a_data_error(value: Any, target: str) -> None:
    source = {float: Type.FLOAT64, int: Type.INT64, bool: Type.BOOLEAN, str: Type.STRING}[type(value)]
    try:
        record = transformed(configured(CastValue, spec=target), value, Schema(source))
    except DataError as error:
        assert str(error) == f"Value ({value}) was out of range for requested data type"  # noqa: PT017 (or there is a result)
        return
    assert record.value_schema is not None
    assert record.value_schema.type is SCHEMAS[target]
    Struct(Schema.struct({"a": record.value_schema}), {"a": record.value}).validate()


@given(st.floats(allow_nan=False))
def test_a_double_cast_to_string_and_back_is_unchanged(value: float) -> None:
    text = transformed(configured(CastValue, spec="string"), value).value
    assert transformed(configured(CastValue, spec="float64"), text).value == value
