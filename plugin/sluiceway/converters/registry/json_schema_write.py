"""Converts Connect schemas to JSON Schemas, and values to JSON, like Confluent's JsonSchemaConverter. No I/O.

``connect.type`` has Connect's type, ``connect.index`` the index of a field, ``title`` and ``description`` the name and doc. An
optional schema becomes ``oneOf`` null and the schema. A map with keys other than required strings becomes an array of objects
with ``key`` and ``value``.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sluiceway.converters.registry.avro_write import values_of
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.logical import DATE, DECIMAL, FROM_LOGICAL, TIME, TIMESTAMP
from sluiceway.data.null_values import null_value
from sluiceway.errors import DataError

NAMESPACE = "io.confluent.connect.json"
ENUM = f"{NAMESPACE}.Enum"
ENUM_PREFIX = f"{ENUM}."
ONE_OF = f"{NAMESPACE}.OneOf"
KEY, VALUE = "key", "value"

Convert = Callable[[Any], Any]

_PRIMITIVES: dict[Type, dict[str, Any]] = {
    Type.INT8: {"type": "integer", "connect.type": "int8"},
    Type.INT16: {"type": "integer", "connect.type": "int16"},
    Type.INT32: {"type": "integer", "connect.type": "int32"},
    Type.INT64: {"type": "integer", "connect.type": "int64"},
    Type.FLOAT32: {"type": "number", "connect.type": "float32"},
    Type.FLOAT64: {"type": "number", "connect.type": "float64"},
    Type.BOOLEAN: {"type": "boolean"},
    Type.STRING: {"type": "string"},
    Type.BYTES: {"type": "string", "connect.type": "bytes"},
}
_DATES = (DATE, TIME, TIMESTAMP)


@dataclass(frozen=True, slots=True)
class JsonOptions:
    """The converter's options for mapping schemas and values."""

    numeric_decimals: bool = False
    additional_properties: bool = True
    optional_unless_required: bool = False
    keep_nulls: bool = False


def has_string_keys(schema: Schema) -> bool:
    """Return True if a map schema becomes a JSON object, False if it becomes an array of entries."""
    keys = schema.key_schema
    return keys is not None and keys.type is Type.STRING and not keys.optional


def to_json_schema(schema: Schema, options: JsonOptions, index: int | None = None, *, member: bool = False) -> dict[str, Any]:
    """Return the JSON Schema. ``index`` is the index of a struct field; a ``member`` of a ``oneOf`` gets no null of its own."""
    position = {} if index is None else {"connect.index": index}
    if schema.type is Type.STRUCT and schema.name == ONE_OF:
        null = [{"type": "null"}] if schema.optional else []
        return {
            "oneOf": null + [to_json_schema(field.schema, options, field.index, member=True) for field in schema.fields]
        } | position
    node = _base(schema, options) | _annotations(schema, options)
    if schema.optional and not member:
        return {"oneOf": [{"type": "null"}, node]} | position
    return node | position


def _base(schema: Schema, options: JsonOptions) -> dict[str, Any]:
    if schema.type is Type.STRUCT:
        node: dict[str, Any] = {
            "type": "object",
            "properties": {field.name: to_json_schema(field.schema, options, field.index) for field in schema.fields},
        }
        return node if options.additional_properties else node | {"additionalProperties": False}
    if schema.type in (Type.ARRAY, Type.MAP):
        return _container(schema, options)
    if schema.name == DECIMAL:
        return {"type": "number", "connect.type": "bytes"}
    if schema.type is Type.STRING and ENUM in schema.parameters:
        return {"enum": [symbol for key, symbol in schema.parameters.items() if key.startswith(ENUM_PREFIX)]}
    return dict(_PRIMITIVES[schema.type])


def _container(schema: Schema, options: JsonOptions) -> dict[str, Any]:
    if schema.value_schema is None:
        raise DataError("An array or map schema has no schema for its items, which JSON Schema requires.")
    if schema.type is Type.ARRAY:
        return {"type": "array", "items": to_json_schema(schema.value_schema, options)}
    if has_string_keys(schema):
        values = to_json_schema(schema.value_schema, options)
        return {"type": "object", "connect.type": "map", "additionalProperties": values}
    if schema.key_schema is None:
        raise DataError("A map schema has no schema for its keys.")
    entry = {
        KEY: to_json_schema(schema.key_schema, options, 0),
        VALUE: to_json_schema(schema.value_schema, options, 1),
    }
    return {"type": "array", "connect.type": "map", "items": {"type": "object", "properties": entry}}


def _annotations(schema: Schema, options: JsonOptions) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if schema.name is not None:
        found["title"] = schema.name
    if schema.doc is not None:
        found["description"] = schema.doc
    if schema.version is not None:
        found["connect.version"] = schema.version
    parameters = {key: text for key, text in schema.parameters.items() if not key.startswith(NAMESPACE)}
    if parameters:
        found["connect.parameters"] = parameters
    if schema.default is not None:
        found["default"] = writer(schema, options)(schema.default)
    return found


def writer(schema: Schema | None, options: JsonOptions) -> Convert:
    """Return the function from values of a schema to printable values. Numeric decimals stay ``Decimal``."""
    if schema is None:
        return schemaless
    convert, optional = _converter(schema, options), schema.optional
    default = null_value(schema, replace=not options.keep_nulls)
    if convert is None and optional and default is None:
        return _same

    def write(value: Any) -> Any:
        if value is None:
            value = default
            if value is None:
                if optional:
                    return None
                raise DataError("Conversion error: null value for field that is required and has no default value")
        return value if convert is None else convert(value)

    return write


def _same(value: Any) -> Any:
    return value


def _converter(schema: Schema, options: JsonOptions) -> Convert | None:
    """Return the conversion of values other than None; None if no conversion is needed."""
    if schema.name == DECIMAL and options.numeric_decimals:
        return None
    if schema.name in FROM_LOGICAL:
        to_plain = FROM_LOGICAL[schema.name]
        if schema.name in _DATES:
            return lambda value: to_plain(schema, value)
        return lambda value: _base64(to_plain(schema, value))
    if schema.type is Type.BYTES:
        return _base64
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return _finite
    if schema.type is Type.STRUCT:
        return _one_of(schema, options) if schema.name == ONE_OF else _struct(schema, options)
    if schema.type is Type.ARRAY:
        items = writer(schema.value_schema, options)
        return lambda values: [items(value) for value in values]
    return _map(schema, options) if schema.type is Type.MAP else None


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode("ascii")


def _finite(value: Any) -> Any:
    """Return a finite float unchanged, and NaN and infinities as strings, like Jackson."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _struct(schema: Schema, options: JsonOptions) -> Convert:
    fields = [(field.name, writer(field.schema, options)) for field in schema.fields]

    def write(value: Any) -> dict[str, Any]:
        return {name: convert(item) for (name, convert), item in zip(fields, values_of(schema, value), strict=True)}

    return write


def _one_of(schema: Schema, options: JsonOptions) -> Convert:
    converts = [writer(field.schema, options) for field in schema.fields]

    def write(value: Any) -> Any:
        for convert, item in zip(converts, values_of(schema, value), strict=True):
            if item is not None:
                return convert(item)
        if schema.optional:
            return None
        raise DataError("Conversion error: null value for field that is required and has no default value")

    return write


def _map(schema: Schema, options: JsonOptions) -> Convert:
    keys, values = writer(schema.key_schema, options), writer(schema.value_schema, options)
    if has_string_keys(schema):
        return lambda pairs: {key: values(value) for key, value in pairs.items()}
    return lambda pairs: [{KEY: keys(key), VALUE: values(value)} for key, value in pairs.items()]


def schemaless(value: Any) -> Any:
    """Return a schemaless value as a printable value."""
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _base64(value)
    if isinstance(value, int):
        return value if isinstance(value, bool) else int(value)
    if isinstance(value, (list, tuple)):
        return [schemaless(item) for item in value]
    if isinstance(value, Mapping) and not isinstance(value, Struct):
        if all(isinstance(key, str) for key in value):
            return {key: schemaless(item) for key, item in value.items()}
        return [{KEY: schemaless(key), VALUE: schemaless(item)} for key, item in value.items()]
    if value is None or isinstance(value, str):
        return value
    raise DataError(f"{type(value).__name__} does not have corresponding schema type.")
