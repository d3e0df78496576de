"""Converts Connect values to fastavro's data, with functions made once for each schema. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sluiceway.converters.registry.avro_branches import branch_tag
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.avro_schema import (
    KEY,
    UNION,
    VALUE,
    AvroOptions,
    filled,
    fixed_size,
    full_name,
    has_string_keys,
    to_avro,
)
from sluiceway.data.logical import FROM_LOGICAL
from sluiceway.data.null_values import null_value
from sluiceway.data.numbers import Float32, Int8, Int16, Int32
from sluiceway.errors import DataError

Convert = Callable[[Any], Any]


def writer(schema: Schema | None, options: AvroOptions) -> Convert:
    """Return the function from values of a schema, other than None, to fastavro's data."""
    if schema is None:
        return anything
    return _converter(schema, options) or _same


def _same(value: Any) -> Any:
    return value


def _converter(schema: Schema, options: AvroOptions) -> Convert | None:
    """Return the conversion of values other than None; None if no conversion is needed."""
    if schema.name in FROM_LOGICAL:
        convert = FROM_LOGICAL[schema.name]
        size = fixed_size(schema)
        if size is not None:
            return lambda value: filled(convert(schema, value), size)
        return lambda value: convert(schema, value)
    if schema.type is Type.STRUCT:
        return _union(schema, options) if schema.name == UNION else _struct(schema, options)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return _array(schema.value_schema, options)
    if schema.type is Type.MAP:
        return _map(schema, options)
    return None


def _item(schema: Schema, options: AvroOptions) -> Convert | None:
    """Like ``_converter``, for items that may be None."""
    convert, optional = _converter(schema, options), schema.optional
    default = null_value(schema, replace=not options.keep_nulls)
    if convert is None and default is None and (optional or schema.type is not Type.BOOLEAN):
        return None  # fastavro refuses invalid nulls, except for booleans, which it writes as false

    def item(value: Any) -> Any:
        if value is None:
            value = default
            if value is None:
                if not optional:
                    raise DataError("Found null value for non-optional schema: an item of a list or map")
                return None
        return value if convert is None else convert(value)

    return item


def _array(items: Schema, options: AvroOptions) -> Convert | None:
    convert = _item(items, options)
    return None if convert is None else lambda values: [convert(value) for value in values]


def _map(schema: Schema, options: AvroOptions) -> Convert | None:
    assert schema.key_schema is not None and schema.value_schema is not None  # noqa: S101, PT018 (checked by to_avro)
    keys, values = _item(schema.key_schema, options) or _same, _item(schema.value_schema, options) or _same
    if not has_string_keys(schema, options):
        return lambda pairs: [{KEY: keys(key), VALUE: values(value)} for key, value in pairs.items()]
    return None if values is _same else lambda pairs: {key: values(value) for key, value in pairs.items()}


def _struct(schema: Schema, options: AvroOptions) -> Convert:
    fields = [
        (
            options.plain(field.name),
            field.index,
            null_value(field.schema, replace=not options.keep_nulls),
            _converter(field.schema, options),
            field.schema.optional,
        )
        for field in schema.fields
    ]

    def write(value: Any) -> dict[str, Any]:
        values = values_of(schema, value)
        datum: dict[str, Any] = {}
        for name, index, default, convert, optional in fields:
            item = values[index]
            if item is None:
                item = default
                if item is None:
                    if not optional:
                        raise DataError(f"Found null value for non-optional schema: field {name}")
                    datum[name] = None
                    continue
            datum[name] = item if convert is None else convert(item)
        return datum

    return write


def values_of(schema: Schema, value: Any) -> list[Any]:
    """Return a struct's values in field order. Raises DataError for other values and other schemas."""
    if type(value) is not Struct:
        raise DataError(f"Invalid type for STRUCT: {type(value).__name__}")
    if value.schema is not schema and value.schema != schema:
        raise DataError("Mismatching schema.")
    return value.values_


def _union(schema: Schema, options: AvroOptions) -> Convert:
    is_tagged = len(schema.fields) > 1 or not schema.optional
    branches = [(field.index, _branch_tag(field.schema, options), _converter(field.schema, options)) for field in schema.fields]

    def write(value: Any) -> Any:
        values = values_of(schema, value)
        for index, tag, convert in branches:
            item = values[index]
            if item is not None:
                datum = item if convert is None else convert(item)
                return (tag, {VALUE: datum}) if is_tagged else datum
        if schema.optional:
            return None
        raise DataError("The struct of a union must have a field that is not null.")

    return write


def _branch_tag(schema: Schema, options: AvroOptions) -> str:
    node = to_avro(schema.replace(optional=False, default=None), options)
    if isinstance(node, dict):
        return branch_tag(str(node["type"]), full_name(node) if "name" in node else None)
    return str(node)


def anything(value: Any) -> dict[str, Any]:
    """Return a schemaless value as a record ``Anything``, which has only the field of its type, and no field for null."""
    if value is None:
        return {}
    kind = type(value)
    if kind in _SCHEMALESS:
        return {_SCHEMALESS[kind]: value}
    if isinstance(value, (list, tuple)):
        return {"array": [anything(item) for item in value]}
    if isinstance(value, Mapping) and not isinstance(value, Struct):
        return {"map": [{KEY: anything(key), VALUE: anything(item)} for key, item in value.items()]}
    raise DataError(
        f"Unknown type for schemaless data: {kind.__name__}. Add a schema, or convert the value to a string or number."
    )


_SCHEMALESS = {
    bool: "boolean",
    Int8: "int",
    Int16: "int",
    Int32: "int",
    int: "long",
    Float32: "float",
    float: "double",
    str: "string",
    bytes: "bytes",
    bytearray: "bytes",
    memoryview: "bytes",
}
