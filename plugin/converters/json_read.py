"""From JSON to Connect's data: one function per schema, made once. Pure.

As lenient with scalars as Connect is: a text where a number is wanted is 0, a number where a text is wanted is null.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

import orjson
from sluiceway.converters.json_schema import from_base64
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, TO_LOGICAL, decimal_scale
from sluiceway.data.schema import Schema, Type
from sluiceway.data.struct import Struct
from sluiceway.errors import DataError

Read = Callable[[Any], Any]

_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_DIGITS = bytes(0x30 if 0x30 <= code <= 0x39 else 0x20 for code in range(256))
_QUOTE = ord('"')
_LONG_NUMBER = b"0" * 19


def loads_exactly(data: bytes) -> Any:
    """Parse bytes that are one JSON value and nothing else. Integers keep all their digits; raises ValueError."""
    # orjson makes floats of integers beyond 64 bits. Looking for 19 digits in a row is cheaper than walking the result;
    # a text has no integers.
    if data and data[0] != _QUOTE and _LONG_NUMBER in data.translate(_DIGITS):
        return _DECODER.decode(data.decode("utf-8"))
    return orjson.loads(data)


def loads(data: bytes) -> Any:
    """Parse JSON as leniently as Connect: a byte order mark before it and text after the first value are ignored.

    Raises DataError for what is not JSON.
    """
    try:
        return loads_exactly(data)
    except (ValueError, RecursionError):
        pass
    try:
        return _DECODER.raw_decode(data.decode("utf-8-sig").lstrip(" \t\r\n"))[0]
    except (ValueError, RecursionError) as error:
        raise DataError(f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}") from error


def _refuse(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def reader(schema: Schema | None, *, use_defaults: bool = True) -> Read:
    """Return the function from parsed JSON to values of a schema (None: of no schema)."""
    if schema is None:
        return lambda node: node
    read = _reader_with_nulls(schema, use_defaults)
    exact = None if schema.name in TO_LOGICAL else _EXACT.get(schema.type)
    # Nearly all nodes are of the type itself: those take one call less.
    return read if exact is None else lambda node: node if type(node) is exact else read(node)


def _reader_with_nulls(schema: Schema, use_defaults: bool) -> Read:
    read = _value_reader(schema, use_defaults)
    if schema.default is not None and use_defaults:
        default = schema.default
        return lambda node: default if node is None else read(node)
    if schema.optional:
        return lambda node: None if node is None else read(node)
    name = schema.type.name

    def required(node: Any) -> Any:
        if node is None:
            raise DataError(f"Invalid null value for required {name} field")
        return read(node)

    return required


def _value_reader(schema: Schema, use_defaults: bool) -> Read:
    """Return the reader for nodes that are not null."""
    if schema.name in TO_LOGICAL and schema.type.primitive:
        return _logical(schema)
    if schema.type.primitive:
        return _PRIMITIVES[schema.type](schema)
    return {Type.ARRAY: _array, Type.MAP: _map, Type.STRUCT: _struct}[schema.type](schema, use_defaults)


def _array(schema: Schema, use_defaults: bool) -> Read:
    item = reader(schema.value_schema, use_defaults=use_defaults)

    def read(node: Any) -> Any:
        if not isinstance(node, list):
            raise DataError(f"Arrays should be encoded as JSON arrays, but found {_kind(node)}")
        return [item(element) for element in node]

    return read


def _map(schema: Schema, use_defaults: bool) -> Read:
    key, item = reader(schema.key_schema, use_defaults=use_defaults), reader(schema.value_schema, use_defaults=use_defaults)
    if schema.key_schema is not None and schema.key_schema.type is Type.STRING:

        def read(node: Any) -> Any:
            if not isinstance(node, dict):
                raise DataError(f"Maps with string fields should be encoded as JSON objects, but found {_kind(node)}")
            return {name: item(element) for name, element in node.items()}

        return read

    def read_pairs(node: Any) -> Any:
        if not isinstance(node, list):
            raise DataError(f"Maps with non-string fields should be encoded as JSON array of tuples, but found {_kind(node)}")
        for entry in node:
            if not isinstance(entry, list):
                raise DataError(f"Found invalid map entry instead of array tuple: {_kind(entry)}")
            if len(entry) != 2:
                raise DataError(f"Found invalid map entry, expected length 2 but found :{len(entry)}")
        return {key(name): item(element) for name, element in node}

    return read_pairs


def _struct(schema: Schema, use_defaults: bool) -> Read:
    fields = [(field.name, reader(field.schema, use_defaults=use_defaults)) for field in schema.fields]

    def read(node: Any) -> Any:
        if not isinstance(node, dict):
            raise DataError(f"Structs should be encoded as JSON objects, but found {_kind(node)}")
        get = node.get
        struct = Struct(schema)
        struct.values_ = [item(get(name)) for name, item in fields]
        return struct

    return read


def _logical(schema: Schema) -> Read:
    assert schema.name is not None  # noqa: S101 (the caller looked it up)
    if schema.name == DECIMAL:
        return lambda node: _decimal(schema, node)
    to_logical, kind = TO_LOGICAL[schema.name], {DATE: "Date", TIME: "Time", TIMESTAMP: "Timestamp"}[schema.name]
    bits = _BITS[schema.type]

    def read(node: Any) -> Any:
        if type(node) is not int or not -(1 << (bits - 1)) <= node < 1 << (bits - 1):
            wanted = "integral" if kind == "Timestamp" else "integer"
            raise DataError(f"Invalid type for {kind}, underlying representation should be {wanted} but was {_kind(node)}")
        return to_logical(schema, node)

    return read


def _decimal(schema: Schema, node: Any) -> Decimal:
    if isinstance(node, str):
        return TO_LOGICAL[DECIMAL](schema, from_base64(node))
    if type(node) in (int, float):
        decimal_scale(schema)  # a schema without a scale is wrong whatever the value
        return Decimal(repr(node))
    raise DataError(f"Invalid type for Decimal, underlying representation should be numeric or bytes but was {_kind(node)}")


def _integer(schema: Schema) -> Read:
    half = 1 << (_BITS[schema.type] - 1)

    def read(node: Any) -> Any:
        if type(node) is int and -half <= node < half:
            return node
        if type(node) is int:
            return (node + half) % (2 * half) - half
        return int(max(-half, min(half - 1, node))) if type(node) is float else 0

    return read


def _float(_schema: Schema) -> Read:
    return lambda node: node if type(node) is float else float(node) if type(node) is int else 0.0


def _boolean(_schema: Schema) -> Read:
    return lambda node: node is True


def _text(_schema: Schema) -> Read:
    return lambda node: node if type(node) is str else None


def _bytes(_schema: Schema) -> Read:
    return lambda node: from_base64(node) if type(node) is str else None


def _kind(node: Any) -> str:
    """Return the name of a JSON node's kind in Connect's error texts."""
    if isinstance(node, bool):
        return "BOOLEAN"
    return {dict: "OBJECT", list: "ARRAY", str: "STRING", type(None): "NULL"}.get(type(node), "NUMBER")


_EXACT = {Type.STRING: str, Type.BOOLEAN: bool, Type.FLOAT32: float, Type.FLOAT64: float}
_PRIMITIVES: dict[Type, Callable[[Schema], Read]] = {
    **dict.fromkeys(_BITS, _integer),
    Type.FLOAT32: _float, Type.FLOAT64: _float, Type.BOOLEAN: _boolean, Type.STRING: _text, Type.BYTES: _bytes,
}  # fmt: skip
