"""Maps Arrow's columns to Connect's schemas, the reverse of ``arrow_schema``, for sources that read Arrow data.

| Arrow | Connect |
|---|---|
| int8 to int64, uint8 to uint32 | INT8 to INT64, the next larger type for unsigned integers |
| float16 and float32, float64 | FLOAT32, FLOAT64 |
| bool, text, binary | BOOLEAN, STRING, BYTES |
| decimal | Decimal, with ``connect.decimal.precision`` unless it has 38 digits |
| date, time, timestamp | Date, Time, Timestamp in milliseconds; a timestamp without time zone is in UTC |
| list, map, struct | ARRAY, MAP, STRUCT |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluiceway.columns.arrow_schema import PRECISION, arrow_type
from sluiceway.data import Schema, Type, date_schema, time_schema, timestamp_schema
from sluiceway.data.logical import DECIMAL, SCALE
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

_DIGITS = 38
_PRIMITIVE: dict[pa.DataType, Type] = {
    pa.int8(): Type.INT8,
    pa.uint8(): Type.INT16,
    pa.int16(): Type.INT16,
    pa.uint16(): Type.INT32,
    pa.int32(): Type.INT32,
    pa.uint32(): Type.INT64,
    pa.int64(): Type.INT64,
    pa.float16(): Type.FLOAT32,
    pa.float32(): Type.FLOAT32,
    pa.float64(): Type.FLOAT64,
    pa.bool_(): Type.BOOLEAN,
    pa.null(): Type.STRING,
}
_Is = Callable[[pa.DataType], bool]
_KINDS: list[tuple[_Is, Type]] = [
    (pa.types.is_string, Type.STRING),
    (pa.types.is_large_string, Type.STRING),
    (pa.types.is_string_view, Type.STRING),
    (pa.types.is_binary, Type.BYTES),
    (pa.types.is_large_binary, Type.BYTES),
    (pa.types.is_fixed_size_binary, Type.BYTES),
    (pa.types.is_binary_view, Type.BYTES),
]
_LOGICAL: list[tuple[_Is, Callable[..., Schema]]] = [
    (pa.types.is_date, date_schema),
    (pa.types.is_time, time_schema),
    (pa.types.is_timestamp, timestamp_schema),
]


def row_schema(columns: Iterable[pa.Field[Any]], name: str | None = None) -> Schema:
    """Return the schema of rows with these columns. Raises DataError for a column whose type Connect lacks."""
    return _struct(columns, name=name, optional=False)


def connect_array(schema: Schema, rows: AnyArray) -> AnyArray:
    """Return an array that ``schema`` was made from as one that ``to_values`` takes.

    Its type is ``arrow_type(schema)``, except that nested fields are optional where Arrow cannot convert them otherwise: those of
    a null struct. Times and timestamps lose what is below a millisecond. Raises DataError.
    """
    type_: Any = arrow_type(schema)
    try:
        try:
            return rows.cast(type_, safe=False)
        except pa.ArrowException:
            return rows.cast(_optional(type_), safe=False)
    except pa.ArrowException as error:
        raise DataError(f"Columns of {rows.type} cannot be converted to {type_}: {error}") from error


def _optional(type_: Any) -> Any:
    """Return a type whose nested fields are all optional."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(each.name, _optional(each.type)) for each in type_])
    if pa.types.is_list(type_):
        return pa.list_(_optional(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(_optional(type_.key_type), _optional(type_.item_type))
    return type_


def _struct(columns: Iterable[pa.Field[Any]], *, name: str | None = None, optional: bool) -> Schema:
    fields = []
    for column in columns:
        try:
            fields.append((column.name, _schema(column.type, optional=column.nullable)))
        except DataError as error:
            raise DataError(f"column {column.name}: {error}") from error
    return Schema(Type.STRUCT, optional=optional, name=name, fields=fields)


def _schema(type_: Any, *, optional: bool) -> Schema:
    if type_ in _PRIMITIVE:
        return Schema(_PRIMITIVE[type_], optional=optional)
    if pa.types.is_nested(type_):
        return _nested(type_, optional=optional)
    if isinstance(type_, pa.BaseExtensionType):
        return _schema(type_.storage_type, optional=optional)  # a uuid is 16 bytes
    if pa.types.is_dictionary(type_):
        return _schema(type_.value_type, optional=optional)
    if pa.types.is_decimal(type_):
        return _decimal(type_, optional=optional)
    for applies, made in _LOGICAL:
        if applies(type_):
            return made(optional=optional)
    for applies, kind in _KINDS:
        if applies(type_):
            return Schema(kind, optional=optional)
    raise DataError(f"Connect has no type for {type_}. Leave the column out.")


def _nested(type_: Any, *, optional: bool) -> Schema:
    if pa.types.is_struct(type_):
        return _struct(type_, optional=optional)
    if pa.types.is_map(type_):
        item = type_.item_field
        return Schema(
            Type.MAP,
            optional=optional,
            key_schema=_schema(type_.key_type, optional=False),
            value_schema=_schema(item.type, optional=item.nullable),
        )
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        item = type_.value_field
        return Schema(Type.ARRAY, optional=optional, value_schema=_schema(item.type, optional=item.nullable))
    raise DataError(f"Connect has no type for {type_}. Leave the column out.")


def _decimal(type_: Any, *, optional: bool) -> Schema:
    parameters = {SCALE: str(type_.scale)}
    if type_.precision != _DIGITS:
        parameters[PRECISION] = str(type_.precision)
    return Schema(Type.BYTES, optional=optional, name=DECIMAL, version=1, parameters=parameters)
