"""Converts Connect's values to Arrow arrays that Spark reads, and Spark's Arrow arrays to Connect's values. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluiceway.data import Schema, Struct, Type
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, decimal_scale, time_to_millis
from sluiceway.errors import DataError

if TYPE_CHECKING:
    AnyArray = Any  # PyArrow's stubs type each kind of array by itself

_PRIMITIVE: dict[Type, Callable[[], pa.DataType]] = {
    Type.INT8: pa.int8,
    Type.INT16: pa.int16,
    Type.INT32: pa.int32,
    Type.INT64: pa.int64,
    Type.FLOAT32: pa.float32,
    Type.FLOAT64: pa.float64,
    Type.BOOLEAN: pa.bool_,
    Type.STRING: pa.string,
    Type.BYTES: pa.binary,
}
_DECIMAL_DIGITS = 38  # the most that Spark has
_MILLIS = pa.timestamp("ms", "UTC")


def arrow_type(schema: Schema) -> pa.DataType:
    """Return the Arrow type of a schema's values in a DataFrame. A Time becomes its milliseconds, as Spark has no such type."""
    if schema.name == DECIMAL:
        return pa.decimal128(_DECIMAL_DIGITS, decimal_scale(schema))
    if schema.name == DATE:
        return pa.date32()
    if schema.name == TIMESTAMP:
        return pa.timestamp("us", "UTC")
    if schema.type is Type.STRUCT:
        return pa.struct([arrow_field(field.name, field.schema) for field in schema.fields])
    if schema.type is Type.ARRAY:
        return pa.list_(arrow_field("element", _part(schema.value_schema)))
    if schema.type is Type.MAP:
        return _map_type(arrow_type(_part(schema.key_schema)), arrow_field("value", _part(schema.value_schema)))
    return _PRIMITIVE[schema.type]()


def _map_type(key: Any, value: Any) -> pa.DataType:  # PyArrow's stubs know no map with a field
    return pa.map_(key, value)


def arrow_field(name: str, schema: Schema) -> pa.Field[Any]:
    """Return the Arrow field of a column. It is nullable unless the schema is required."""
    return pa.field(name, arrow_type(schema), nullable=schema.optional)


def to_array(schema: Schema, values: Sequence[Any]) -> AnyArray:
    """Return values as an array of ``arrow_type(schema)``, with a field's default in place of a missing value.

    Raises DataError for a value that Spark's type cannot represent.
    """
    try:
        return _to_array(schema, values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(
            f"A value of type {schema.name or schema.type.value} cannot be written to a DataFrame: {error}"
        ) from error


def _to_array(schema: Schema, values: Sequence[Any]) -> AnyArray:
    if schema.type is Type.STRUCT:
        fields = [arrow_field(field.name, field.schema) for field in schema.fields]
        columns = [
            _to_array(field.schema, [None if value is None else value[field.name] for value in values]) for field in schema.fields
        ]
        missing = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(columns, fields=fields, mask=missing)
    if schema.type is Type.ARRAY:
        items = _to_array(_part(schema.value_schema), [item for value in values for item in value or ()])
        return pa.ListArray.from_arrays(_ends(values), items, type=arrow_type(schema))
    if schema.type is Type.MAP:
        kind: Any = arrow_type(schema)
        keys = _to_array(_part(schema.key_schema), [key for value in values for key in value or ()])
        entries = _to_array(_part(schema.value_schema), [entry for value in values for entry in (value or {}).values()])
        return pa.MapArray.from_arrays(_ends(values), keys, entries, type=kind)
    if schema.name == TIME:
        values = [None if value is None else time_to_millis(schema, value) for value in values]
    return pa.array(values, arrow_type(schema))


def _ends(values: Sequence[Any]) -> AnyArray:
    """Return the offsets of a list array; a null offset marks a null list."""
    ends: list[int | None] = []
    total = 0
    for value in values:
        ends.append(None if value is None else total)
        total += len(value or ())
    return pa.array([*ends, total], pa.int32())


def to_values(schema: Schema, array: AnyArray) -> list[Any]:
    """Return the values of one of Spark's arrays, whose schema is ``connect_schema`` of its type."""
    if schema.name == TIMESTAMP:
        if array.type.tz is None:  # TimestampNTZType
            array = array.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        return list(array.cast(_MILLIS, safe=False).to_pylist())
    if schema.type.primitive:
        return list(array.to_pylist())
    if schema.type is Type.STRUCT:
        columns = [to_values(field.schema, array.field(field.index)) for field in schema.fields]
        rows = [Struct.of(schema, list(row)) for row in zip(*columns, strict=True)] if columns else []
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    convert = _converter(schema)
    return [None if value is None else convert(value) for value in array.to_pylist()]


def _converter(schema: Schema) -> Callable[[Any], Any]:
    """Return the conversion of a value that ``to_pylist`` has made: structs are dicts, maps are lists of pairs."""
    if schema.name == TIMESTAMP:
        return lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000)
    if schema.type is Type.STRUCT:
        parts = [(field.name, _nullable(field.schema)) for field in schema.fields]
        return lambda value: Struct.of(schema, [convert(value[name]) for name, convert in parts])
    if schema.type is Type.ARRAY:
        item = _nullable(_part(schema.value_schema))
        return lambda value: [item(each) for each in value]
    if schema.type is Type.MAP:
        key, entry = _nullable(_part(schema.key_schema)), _nullable(_part(schema.value_schema))
        return lambda value: {key(name): entry(each) for name, each in value}
    return lambda value: value


def _nullable(schema: Schema) -> Callable[[Any], Any]:
    convert = _converter(schema)
    return lambda value: None if value is None else convert(value)


def _part(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("A DataFrame needs the schema of the items of each array and map; this one has none.")
    return schema
