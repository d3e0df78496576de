"""A decimal of a few bytes, such as 1E+300000, takes no time, no memory, and no process, wherever a record holds one."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.sink.types import binder_of
from sluiceway.converters.registry.base import RegistryConverter
from sluiceway.converters.registry.client import WriterSchema
from sluiceway.data import Schema, Type, decimal_schema
from sluiceway.data.schema import INTEGER_BITS
from sluiceway.data.values import convert_to_boolean, convert_to_byte, convert_to_integer, convert_to_long, convert_to_short
from sluiceway.discovery import converter_class
from sluiceway.errors import DataError
from sluiceway.java.numbers import decimal_to_integer, wrap
from sluiceway.spark.rounds.arrow_rows import to_array
from sluiceway.transforms.util.casting import cast_of_schema
from support.fuzz import processor_time

EXPONENTS = (-300_000, -400, -77, -64, -39, -38, -1, 0, 1, 38, 39, 63, 64, 65, 77, 400, 300_000)
VAST = [Decimal((sign, digits, exponent)) for exponent in EXPONENTS for sign in (0, 1) for digits in ((1,), (9, 0, 7) * 9)]
SECONDS = 0.5  # the digits of 10**300,000 take several


def _json_schema(kind: str, format_: str) -> Callable[[str], Any]:
    """Return the reader of a struct of an integer and a decimal, whose numbers keep all digits then."""
    number = {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.version": 1}
    number["connect.parameters"] = {"scale": "0"}
    field = {"type": kind, "connect.type": format_, "connect.index": 0}
    converter = converter_class("JsonSchemaConverter")()
    assert isinstance(converter, RegistryConverter)
    converter.configure({"schema.registry.url": "http://nowhere.invalid"}, is_key=False)
    text = json.dumps({"type": "object", "properties": {"a": field, "b": {**number, "connect.index": 1}}})
    converter._writer_schema = lambda *_: WriterSchema(text, "JSON", (), 1)  # type: ignore[method-assign]
    return lambda number: converter.to_connect_data("t", b"\0\0\0\0\1" + f'{{"a": {number}, "b": 1.0}}'.encode()).value["a"]


def _json(schema: Schema) -> Callable[[str], Any]:
    converter = converter_class("JsonConverter")()
    converter.configure({"schemas.enable": "true"}, is_key=False)
    envelope = '{"schema": {"type": "%s"}, "payload": %s}'
    return lambda number: converter.to_connect_data("t", (envelope % (schema.type.value, number)).encode()).value


CONVERSIONS = {
    Type.INT8: convert_to_byte,
    Type.INT16: convert_to_short,
    Type.INT32: convert_to_integer,
    Type.INT64: convert_to_long,
}


@pytest.mark.parametrize("type_", INTEGER_BITS)
def test_integers_are_the_low_bits_of_a_decimal_as_in_java(type_: Type) -> None:
    bits, schema = INTEGER_BITS[type_], Schema(type_)
    as_json = _json_schema("integer", type_.value)
    from_json, cast, convert = _json(schema), cast_of_schema(decimal_schema(0), type_), CONVERSIONS[type_]
    for value in VAST:
        with processor_time(SECONDS):
            found = [decimal_to_integer(value, bits), as_json(str(value)), from_json(str(value)), convert(None, value)]
            narrow = convert(None, str(value))
        with processor_time(SECONDS):
            cast(value.quantize(Decimal(0), context=Context(prec=100)) if abs(value.adjusted()) < 70 else Decimal(0))
        # A conversion narrows a long, which has the same low bits.
        expected = wrap(int(value), bits) if value.adjusted() < 1000 and abs(value) >= 1 else 0
        assert [*found, narrow] == [expected] * 5, value


def test_a_boolean_is_whether_the_integer_part_has_bits() -> None:
    for value in VAST:
        with processor_time(SECONDS):
            assert convert_to_boolean(None, value) is (decimal_to_integer(value, 64) != 0)


@pytest.mark.parametrize("scale", [0, 1, 5, 37, 38])
def test_a_data_frame_takes_a_decimal_exactly_or_refuses_it(scale: int) -> None:
    exact = Context(prec=MAX_PREC, Emax=MAX_EMAX)
    beyond = [Decimal((0, digits, -scale - more)) for digits in ((0,), (1,)) for more in (38, 39, 44, 99_999_999)]
    for value in [*VAST, *beyond]:
        with processor_time(SECONDS):
            try:
                found = to_array(decimal_schema(scale), [value])[0].as_py()
            except DataError:
                continue
        assert exact.compare(found, value) == 0, (scale, value)


@pytest.mark.parametrize("database", ["mysql", "sqlserver"])
def test_a_driver_that_writes_all_digits_gets_no_decimal_beyond_all_columns(database: str) -> None:
    bind = binder_of(dialect_of(database), ZoneInfo("UTC"), "f", decimal_schema(0))
    assert bind is not None
    for value in VAST:
        if abs(value.adjusted()) < 1000:
            assert bind(value) is value
        else:
            with pytest.raises(DataError, match="more than 10,000 digits"):
                bind(value)
    assert bind(Decimal("NaN")).is_nan()
