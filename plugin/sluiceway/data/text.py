"""Prints values as Java's ``String.valueOf`` does, for StringConverter, FileStreamSink and error messages."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sluiceway.data.instant import MOMENT_TYPES, date_text, millis_of
from sluiceway.data.numbers import Float32
from sluiceway.data.schema import Schema, Type
from sluiceway.java.numbers import decimal_text, java_double, java_float

__all__ = ["java_double", "java_float", "java_text"]


def java_text(value: Any, schema: Schema | None = None) -> str:
    """Return ``String.valueOf(value)``: ``null``, ``true``, ``1.0E10``, ``{a=1}``, ``[1, 2]``, ``Struct{a=b}``.

    The schema distinguishes 32-bit floats from doubles. Bytes, for which Java prints an address, are printed as UTF-8 with bad
    sequences replaced.
    """
    if type(value) is str:
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        single = isinstance(value, Float32) or (schema is not None and schema.type is Type.FLOAT32)
        return java_float(value) if single else java_double(value)
    if isinstance(value, int):
        return int.__repr__(value)
    return _other(value, schema)


def _other(value: Any, schema: Schema | None) -> str:
    from sluiceway.data.struct import Struct

    keys, values = (None, None) if schema is None else (schema.key_schema, schema.value_schema)
    if isinstance(value, Struct):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{java_text(key, keys)}={java_text(item, values)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(java_text(item, values) for item in value) + "]"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, MOMENT_TYPES):
        return date_text(millis_of(value))
    if isinstance(value, Decimal):
        return decimal_text(value)
    return str(value)
