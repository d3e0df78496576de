"""The converters of numbers, booleans and bytes."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.api import Converter, HeaderConverter
from sluiceway.converters.boolean_converter import BooleanConverter
from sluiceway.converters.byte_array_converter import ByteArrayConverter
from sluiceway.converters.number_converters import (
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from sluiceway.data import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Type,
)
from sluiceway.data.logical import decimal_schema
from sluiceway.data.numbers import Float32, Int16, Int32
from sluiceway.errors import DataError

EVERY: list[type[Converter]] = [
    ShortConverter,
    IntegerConverter,
    LongConverter,
    FloatConverter,
    DoubleConverter,
    BooleanConverter,
    ByteArrayConverter,
]
WRITTEN: list[tuple[type[Converter], Type, Any, bytes]] = [
    (ShortConverter, Type.INT16, 32767, b"\x7f\xff"),
    (IntegerConverter, Type.INT32, -1, b"\xff\xff\xff\xff"),
    (LongConverter, Type.INT64, -(2**63), b"\x80" + bytes(7)),
    (FloatConverter, Type.FLOAT32, 1.5, b"\x3f\xc0\0\0"),
    (FloatConverter, Type.FLOAT32, -math.inf, b"\xff\x80\0\0"),
    (DoubleConverter, Type.FLOAT64, 0.1, bytes.fromhex("3fb999999999999a")),
    (BooleanConverter, Type.BOOLEAN, True, b"\x01"),
    (BooleanConverter, Type.BOOLEAN, False, b"\x00"),
    (ByteArrayConverter, Type.BYTES, b"\x00\xff", b"\x00\xff"),
    (ByteArrayConverter, Type.BYTES, b"", b""),
]


@pytest.mark.parametrize(("converter", "type_", "value", "data"), WRITTEN)
def test_values_are_read_back_as_optional_values(converter: type[Converter], type_: Type, value: Any, data: bytes) -> None:
    each, read = converter(), (Schema(type_, optional=True), value)
    assert each.from_connect_data("t", Schema(type_), value) == data == each.encoder("t", Schema(type_))(value)
    assert each.to_connect_data("t", data) == read == each.decoder("t")(data)
    assert each.from_connect_header("t", "h", Schema(type_), value) == data
    assert each.to_connect_header("t", "h", data) == read


@pytest.mark.parametrize("converter", EVERY)
def test_null_stays_null_and_keeps_the_schema(converter: type[Converter]) -> None:
    each = converter()
    assert each.from_connect_data("t", None, None) is None
    schema, value = each.to_connect_data("t", None)
    assert value is None
    assert schema is not None
    assert schema.optional


@pytest.mark.parametrize(
    ("converter", "value", "data"),
    [
        (ShortConverter, Int16(1), b"\0\1"),
        (IntegerConverter, Int32(1), b"\0\0\0\1"),
        (LongConverter, 1, bytes(7) + b"\1"),
        (FloatConverter, Float32(1.0), b"\x3f\x80\0\0"),
        (DoubleConverter, 1.0, b"\x3f\xf0" + bytes(6)),
        (BooleanConverter, True, b"\1"),
        (ByteArrayConverter, bytearray(b"a"), b"a"),
        (ByteArrayConverter, memoryview(b"a"), b"a"),
    ],
)
def test_without_a_schema_the_type_of_the_value_decides(converter: type[Converter], value: Any, data: bytes) -> None:
    assert converter().from_connect_data("t", None, value) == data


@pytest.mark.parametrize(
    ("converter", "schema", "value", "text"),
    [
        (IntegerConverter, None, 1, r"Failed to serialize to integer \(was class java\.lang\.Long\): "),
        (ShortConverter, INT32_SCHEMA, 1, "Failed to serialize to short"),
        (LongConverter, INT32_SCHEMA, 1, "Failed to serialize to long"),
        (LongConverter, None, True, "Failed to serialize to long"),
        (LongConverter, None, 2**63, "too large"),
        (ShortConverter, INT16_SCHEMA, 2**15, "too large"),
        (FloatConverter, INT8_SCHEMA, 1, "Failed to serialize to float"),
        (FloatConverter, FLOAT64_SCHEMA, 1.0, "Failed to serialize to float"),
        (DoubleConverter, FLOAT32_SCHEMA, 1.0, "Failed to serialize to double"),
        (DoubleConverter, None, Float32(1.0), "Failed to serialize to double"),
        (IntegerConverter, STRING_SCHEMA, "x", "Failed to serialize to integer"),
        (BooleanConverter, INT32_SCHEMA, 1, "^Invalid schema type for BooleanConverter: INT32$"),
        (BooleanConverter, None, 1, "BooleanConverter is not compatible with objects of type class java.lang.Long"),
        (ByteArrayConverter, STRING_SCHEMA, "x", "^Invalid schema type for ByteArrayConverter: STRING$"),
        (ByteArrayConverter, None, "x", "ByteArrayConverter is not compatible with objects of type class java.lang.String"),
        (ByteArrayConverter, decimal_schema(1), Decimal("0.1"), "not compatible with objects of type"),
    ],
)
def test_other_values_are_refused(converter: type[Converter], schema: Schema | None, value: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        converter().from_connect_data("t", schema, value)


@pytest.mark.parametrize(
    ("converter", "data", "text"),
    [
        (ShortConverter, b"\0\0\0", "short"),
        (IntegerConverter, b"", "integer"),
        (LongConverter, bytes(9), "long"),
        (FloatConverter, b"\0", "float"),
        (DoubleConverter, bytes(4), "double"),
        (BooleanConverter, b"", "boolean"),
        (BooleanConverter, b"\2", "boolean"),
        (BooleanConverter, b"\0\0", "boolean"),
    ],
)
def test_bytes_of_the_wrong_size_are_refused(converter: type[Converter], data: bytes, text: str) -> None:
    with pytest.raises(DataError, match=f"^Failed to deserialize {text}: $"):
        converter().to_connect_data("t", data)


def test_a_float_is_rounded_to_32_bits() -> None:
    assert FloatConverter().from_connect_data("t", FLOAT32_SCHEMA, 0.1) == bytes.fromhex("3dcccccd")
    assert FloatConverter().from_connect_data("t", FLOAT32_SCHEMA, 1e39) == bytes.fromhex("7f800000")
    assert math.isnan(FloatConverter().to_connect_data("t", bytes.fromhex("7fc00000")).value)


def test_booleans_and_numbers_are_not_interchangeable() -> None:
    with pytest.raises(DataError):
        LongConverter().from_connect_data("t", INT64_SCHEMA, True)
    with pytest.raises(DataError):
        BooleanConverter().from_connect_data("t", BOOLEAN_SCHEMA, 1)
    assert ByteArrayConverter().from_connect_data("t", BYTES_SCHEMA, b"\x01") == b"\x01"


@pytest.mark.parametrize("converter", EVERY)
def test_every_converter_also_converts_headers_and_declares_its_type(converter: type[Converter]) -> None:
    assert issubclass(converter, HeaderConverter)
    assert [key.name for key in converter.config_def()] == ["converter.type"]
    converter().configure({}, is_key=True)
    converter().close()
