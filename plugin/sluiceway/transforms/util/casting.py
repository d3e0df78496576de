"""Casts values between Connect's primitive types with Java's rules, for Cast. No I/O.

Narrowing keeps the low bits, large doubles saturate, and text is parsed as strictly as in Java.
"""

from __future__ import annotations

import base64
import datetime as dt
import functools
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from sluiceway.data import Schema, Struct, Type, java_text
from sluiceway.data.instant import Instant, millis_of
from sluiceway.data.logical import DATE, TIME, TIMESTAMP, date_to_days, time_to_millis, timestamp_to_millis
from sluiceway.data.numbers import BigInteger, Float32, Int8, Int16, Int32
from sluiceway.data.schema import INTEGER_BITS
from sluiceway.data.values.text import date_format_for
from sluiceway.errors import DataError
from sluiceway.java.numbers import (
    decimal_text,
    decimal_to_integer,
    double_to_integer,
    parse_double,
    parse_float32,
    parse_integer,
    to_float32,
)
from sluiceway.transforms.util.requirements import java_class

Function = Callable[[Any], Any]

TARGETS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING)
SOURCES = (*TARGETS, Type.BYTES)

_EXACT = 1 << 53
_ENCODERS: dict[str, Callable[[Schema, Any], int]] = {
    DATE: date_to_days,
    TIME: time_to_millis,
    TIMESTAMP: timestamp_to_millis,
}


def names(types: tuple[Type, ...]) -> str:
    """Return types as Java prints a set: ``[INT8, STRING]``."""
    return f"[{', '.join(type_.name for type_ in types)}]"


def same(value: Any) -> Any:
    """Return the value unchanged."""
    return value


def cast_of_schema(schema: Schema, target: Type) -> Function:
    """Return the cast of a schema's values, which must not be None; its results fit the target type.

    The cast raises DataError for a text that is not a number, and for every value if the schema's type cannot be cast.
    """
    if schema.type not in SOURCES:
        return _refusal(schema.type)
    casts = _CASTS[target]
    if schema.name in _ENCODERS and target is not Type.STRING:
        encode, narrow = _ENCODERS[schema.name], casts[int]
        return lambda value: narrow(encode(schema, value))
    if schema.type is Type.FLOAT32 and schema.name is None:
        cast = casts[Float32]
        return lambda value: cast(Float32(value))
    if (
        schema.type in INTEGER_BITS
        and target in INTEGER_BITS
        and schema.name is None
        and INTEGER_BITS[schema.type] <= INTEGER_BITS[target]
    ):
        return same
    if schema.name is None:
        return casts[_CLASSES[schema.type]]
    return lambda value: casts[type(value)](value)


class Casts(dict[type, Function]):
    """Casts to one type by the Python class of the value; for other classes, one that raises DataError."""

    def __missing__(self, kind: type) -> Function:
        found = next((self[base] for base in kind.__mro__ if base in self), None) or _refusal_of(kind)
        self[kind] = found
        return found


@functools.cache
def schemaless_casts(target: Type) -> Casts:
    """Return the casts of schemaless values, which must not be None; results have the class of their width (``Int8``).

    A cast raises DataError for a text that is not a number, and for every value if its class cannot be cast.
    """
    kind = _KINDS.get(target)
    casts = {source: cast for source, cast in _CASTS[target].items() if source in _SCHEMALESS} | {BigInteger: _not_in_data_api}
    return Casts(casts if kind is None else {source: _wrapped(kind, cast) for source, cast in casts.items()})


def _refusal_of(kind: type) -> Function:
    if issubclass(kind, (bytes, bytearray, memoryview)):
        return _unexpected
    if issubclass(kind, Struct):
        return _refusal(Type.STRUCT)
    if issubclass(kind, Mapping):
        return _refusal(Type.MAP)
    return _refusal(Type.ARRAY) if issubclass(kind, (list, tuple)) else _not_in_data_api


def _refusal(source: Type) -> Function:
    def refuse(_value: Any) -> Any:
        raise DataError(f"Cast transformation does not support casting from {source.name}; supported types are {names(SOURCES)}")

    return refuse


def _unexpected(value: Any) -> Any:
    raise DataError(f"Unexpected type in Cast transformation: class {java_class(value)}")


def _not_in_data_api(value: Any) -> Any:
    raise DataError(
        f"Cast transformation was passed a value of type class {java_class(value)} which is not supported by Connect's data API"
    )


def _wrapped(kind: type, cast: Function) -> Function:
    return lambda value: kind(cast(value))


def _reading(parse: Function) -> Function:
    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise DataError(f"Value ({text}) was out of range for requested data type") from error

    return read


def _to_integers(bits: int) -> dict[type, Function]:
    half, mask = 1 << (bits - 1), (1 << bits) - 1

    def narrow(value: int) -> int:
        return (value + half & mask) - half

    return {
        int: narrow,
        Int8: narrow,
        Int16: narrow,
        Int32: narrow,
        bool: int,
        float: lambda value: double_to_integer(value, bits),
        Float32: lambda value: double_to_integer(value, bits),
        str: _reading(lambda text: parse_integer(text, bits)),
        Decimal: lambda value: decimal_to_integer(value, bits),
    }


def _int_to_float32(value: int) -> float:
    return to_float32(value) if -_EXACT <= value <= _EXACT else parse_float32(str(value))  # rounds once, as Java does


def _bytes_text(value: Any) -> str:
    return base64.b64encode(value).decode("ascii")


def _moment_text(value: Any) -> str:
    millis = millis_of(value)
    return date_format_for(millis).format(millis)


_FUNCTIONS: dict[Type, dict[type, Function]] = {
    **{type_: _to_integers(bits) for type_, bits in INTEGER_BITS.items()},
    Type.FLOAT32: {
        int: _int_to_float32,
        Int8: float,
        Int16: float,
        Int32: to_float32,
        bool: float,
        float: to_float32,
        Float32: float,
        str: _reading(parse_float32),
        Decimal: lambda value: parse_float32(str(value)),
    },
    Type.FLOAT64: {
        int: float,
        Int8: float,
        Int16: float,
        Int32: float,
        bool: float,
        float: same,
        Float32: to_float32,
        str: _reading(parse_double),
        Decimal: float,
    },
    Type.BOOLEAN: {
        int: bool,
        Int8: bool,
        Int16: bool,
        Int32: bool,
        bool: same,
        str: lambda text: text.lower() == "true",
        float: lambda value: double_to_integer(value, 64) != 0,
        Float32: lambda value: double_to_integer(value, 64) != 0,
        Decimal: lambda value: decimal_to_integer(value, 64) != 0,
    },
    Type.STRING: {
        int: str,
        Int8: str,
        Int16: str,
        Int32: str,
        bool: lambda value: "true" if value else "false",
        str: same,
        float: java_text,
        Float32: java_text,
        Decimal: decimal_text,
        bytes: _bytes_text,
        bytearray: _bytes_text,
        memoryview: _bytes_text,
        dt.datetime: _moment_text,
        dt.date: _moment_text,
        dt.time: _moment_text,
        Instant: _moment_text,
    },
}
_CASTS = {target: Casts(functions) for target, functions in _FUNCTIONS.items()}

_CLASSES = {
    Type.INT8: int,
    Type.INT16: int,
    Type.INT32: int,
    Type.INT64: int,
    Type.FLOAT32: float,
    Type.FLOAT64: float,
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: bytes,
}
_KINDS: dict[Type, type] = {Type.INT8: Int8, Type.INT16: Int16, Type.INT32: Int32, Type.FLOAT32: Float32}
_SCHEMALESS = {int, Int8, Int16, Int32, bool, float, Float32, str, bytes, bytearray, memoryview}
