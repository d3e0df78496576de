"""Infers the schemas of schemaless values. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sluiceway.data import schema as schemas
from sluiceway.data.numbers import BigInteger, Float32, Int8, Int16, Int32
from sluiceway.data.schema import Schema, Type
from sluiceway.data.struct import Struct
from sluiceway.errors import SchemaBuilderError

_TYPES: tuple[tuple[type | tuple[type, ...], Type | None], ...] = (
    (str, Type.STRING),
    (bool, Type.BOOLEAN),
    (Int8, Type.INT8),
    (Int16, Type.INT16),
    (Int32, Type.INT32),
    (BigInteger, None),
    (int, Type.INT64),
    (Float32, Type.FLOAT32),
    (float, Type.FLOAT64),
    ((bytes, bytearray, memoryview), Type.BYTES),
    ((list, tuple), Type.ARRAY),
    (Struct, Type.STRUCT),
    (Mapping, Type.MAP),
)

_PRIMITIVES = {
    Type.STRING: schemas.STRING_SCHEMA,
    Type.BOOLEAN: schemas.BOOLEAN_SCHEMA,
    Type.INT8: schemas.INT8_SCHEMA,
    Type.INT16: schemas.INT16_SCHEMA,
    Type.INT32: schemas.INT32_SCHEMA,
    Type.INT64: schemas.INT64_SCHEMA,
    Type.FLOAT32: schemas.FLOAT32_SCHEMA,
    Type.FLOAT64: schemas.FLOAT64_SCHEMA,
    Type.BYTES: schemas.BYTES_SCHEMA,
}

_NUMERIC = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)


def type_of(value: Any) -> Type | None:
    """Return a value's type (``ConnectSchema.schemaType``); None for null, decimals, dates and other classes.

    An int is INT64 and a float is FLOAT64 unless it has a narrower class.
    """
    return next((type_ for kinds, type_ in _TYPES if isinstance(value, kinds)), None)


def schema_of(value: Any) -> Schema | None:
    """Return the schema of a value (``Values.inferSchema``), or None if it cannot be inferred.

    Lists and maps have a schema if they are not empty and their items have one type. Raises SchemaBuilderError for a list that
    contains only nulls.
    """
    type_ = type_of(value)
    if type_ is None:
        return None
    if type_ is Type.STRUCT:
        return value.schema  # type: ignore[no-any-return]
    if type_ is Type.ARRAY:
        items = _common(value)
        return None if items is None else Schema.array(items)
    if type_ is Type.MAP:
        keys, values = _common(value.keys()), _common(value.values())
        return None if keys is None or values is None else Schema.map(keys, values)
    return _PRIMITIVES[type_]


def _common(values: Iterable[Any]) -> Schema | None:
    """Return the schema of the type that all values share, without other attributes."""
    found = [(value is None, type_of(value)) for value in values]
    if not found:
        return None
    if all(null for null, _ in found):
        raise SchemaBuilderError("type cannot be null")
    types = {type_ for null, type_ in found if not null}
    if len(types) > 1 or None in types:
        return None
    return Schema(next(filter(None, types)), optional=any(null for null, _ in found))


def merged(first: Schema, second: Schema) -> Schema | None:
    """Return a schema for values of both schemas: the wider number type, or the second of equal types; else None."""
    if first.type is second.type:
        return second
    if first.type in _NUMERIC and second.type in _NUMERIC:
        return max(first, second, key=lambda schema: _NUMERIC.index(schema.type))
    return None
