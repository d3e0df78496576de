"""Converts Connect's values to Arrow arrays that Spark reads, and Spark's Arrow arrays to Connect's values. No I/O.

``sluiceway.columns`` refuses values that it could not return as they were; here a value only has to fit a column of Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluiceway.columns import arrays as columns
from sluiceway.columns.arrow_schema import arrow_type as columns_type
from sluiceway.data import Schema, Type
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, decimal_of, decimal_scale, time_to_millis
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


def arrow_type(schema: Schema) -> pa.DataType:
    """Return the Arrow type of a schema's values in a DataFrame. A Time becomes its milliseconds, as Spark has no such type.

    Raises DataError for what Spark does not have: a struct without fields, a decimal with a negative scale or one above 38.
    """
    if schema.name == DECIMAL:
        scale = decimal_scale(schema)
        if not 0 <= scale <= _DECIMAL_DIGITS:
            raise DataError(
                f"It is a Decimal with the scale {scale}, but Spark has scales from 0 to {_DECIMAL_DIGITS}. Cast it to string."
            )
        return pa.decimal128(_DECIMAL_DIGITS, scale)
    if schema.name == DATE:
        return pa.date32()
    if schema.name == TIMESTAMP:
        return pa.timestamp("us", "UTC")
    if schema.type is Type.STRUCT:
        if not schema.fields:
            raise DataError("It is a struct without fields, which Spark does not write. Leave it out with ReplaceField.")
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
    return pa.field(name, named(name, arrow_type, schema), nullable=schema.optional)


def named(name: str, convert: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns for a field; add the field's name to the DataError that it raises."""
    try:
        return convert(*arguments)
    except DataError as error:
        raise DataError(f"Field {name}: {error}") from error


def to_array(schema: Schema, values: Sequence[Any]) -> AnyArray:
    """Return values as an array of ``arrow_type(schema)``, with the schema's default in place of null.

    Raises DataError for a value that Spark's type cannot represent.
    """
    try:
        return _to_array(schema, values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(
            f"A value of type {schema.name or schema.type.value} cannot be written to a DataFrame: {error}"
        ) from error


def _to_array(schema: Schema, values: Sequence[Any]) -> AnyArray:
    if schema.default is not None and None in values:
        values = [schema.default if value is None else value for value in values]
    if schema.type is Type.STRUCT:
        fields = [arrow_field(field.name, field.schema) for field in schema.fields]
        columns = [
            named(field.name, to_array, field.schema, [None if value is None else value.values_[field.index] for value in values])
            for field in schema.fields
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
    elif schema.name == DECIMAL:
        _check_scales(values, decimal_scale(schema))
    return pa.array(values, arrow_type(schema))


def _check_scales(values: Sequence[Any], scale: int) -> None:
    """Raise ValueError for a decimal with far more digits after the point than ``scale``.

    Arrow divides by a power of ten that it reads beyond its table's end: 1E-39 became 0, and 1E-99999999 ended the process.
    """
    has_scale = decimal_of(1, scale).same_quantum
    for value in values:
        if value is not None and not has_scale(value) and -value.as_tuple().exponent - scale > _DECIMAL_DIGITS:
            raise ValueError(f"{value:.3E} has more digits after the point than a Decimal with the scale {scale}.")


def _ends(values: Sequence[Any]) -> AnyArray:
    """Return the offsets of a list array; a null offset marks a null list."""
    ends: list[int | None] = []
    total = 0
    for value in values:
        ends.append(None if value is None else total)
        total += len(value or ())
    return pa.array([*ends, total], pa.int32())


def to_values(schema: Schema, array: AnyArray) -> list[Any]:
    """Return the values of one of Spark's arrays, whose type ``schema`` was made from. Timestamps lose their microseconds."""
    return columns.to_values(schema, array.cast(_nullable(columns_type(schema)), safe=False))


def _nullable(kind: Any) -> Any:
    """Return a type whose nested fields are all nullable: Arrow refuses to cast the required fields of a null struct."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _nullable(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    return kind


def _part(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("A DataFrame needs the schema of the items of each array and map; this one has none.")
    return schema
