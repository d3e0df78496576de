"""Maps Connect's schemas to Arrow types.

| Connect | Arrow |
|---|---|
| INT8, INT16, INT32, INT64 | int8, int16, int32, int64 |
| FLOAT32, FLOAT64 | float32, float64 |
| BOOLEAN, STRING, BYTES | bool, utf8, binary |
| Decimal | decimal128 with 38 digits, or the schema's ``connect.decimal.precision``; decimal256 for more |
| Date, Time, Timestamp | date32, time32 in milliseconds, timestamp in milliseconds and UTC |
| ARRAY, MAP, STRUCT | list, map, struct |

A field is nullable in Arrow if its schema is optional or has a default: arrays keep nulls, and their reader applies the default.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluiceway.api.columns import NotColumnar, RowFormReason
from sluiceway.columns.refused_values import in_field
from sluiceway.data import Field, Schema, Type
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, decimal_scale
from sluiceway.errors import DataError

if TYPE_CHECKING:
    AnyField = pa.Field[Any]

PRECISION = "connect.decimal.precision"

_PRIMITIVE: dict[Type, pa.DataType] = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.utf8(),
    Type.BYTES: pa.binary(),
}
_LOGICAL_OF: dict[str, Type] = {DECIMAL: Type.BYTES, DATE: Type.INT32, TIME: Type.INT32, TIMESTAMP: Type.INT64}
_MOMENTS: dict[str, pa.DataType] = {DATE: pa.date32(), TIME: pa.time32("ms"), TIMESTAMP: pa.timestamp("ms", tz="UTC")}
_DIGITS_128, _DIGITS_256 = 38, 76


@functools.lru_cache(maxsize=4096)
def arrow_type(schema: Schema) -> pa.DataType:
    """Return the Arrow type of a schema's values. Raises NotColumnar for schemas that have none.

    These are decimals with a negative scale or more than 76 digits, logical types on another base type, and maps whose keys are
    arrays or maps.
    """
    if schema.name in _LOGICAL_OF:
        return _logical_type(schema, schema.name)
    if schema.type is Type.STRUCT:
        return pa.struct(arrow_fields(schema))
    if schema.type is Type.ARRAY:
        return pa.list_(_inner("item", schema.value_schema))
    if schema.type is Type.MAP:
        if schema.key_schema is None or schema.key_schema.type in (Type.ARRAY, Type.MAP):
            raise NotColumnar(f"Arrow columns for maps with keys of {schema.key_schema}", RowFormReason.SCHEMA)
        item: Any = _inner("value", schema.value_schema)  # the stubs allow no field here
        return pa.map_(arrow_type(schema.key_schema), item)
    return _PRIMITIVE[schema.type]


def arrow_fields(schema: Schema) -> list[AnyField]:
    """Return the Arrow fields of a struct schema."""
    return [in_field(field.name, arrow_field, field) for field in schema.fields]


def arrow_field(field: Field) -> AnyField:
    """Return the Arrow field of a struct's field."""
    try:
        return pa.field(field.name, arrow_type(field.schema), nullable=nullable(field.schema))
    except UnicodeEncodeError as error:  # an unpaired surrogate
        raise NotColumnar(f"An Arrow field cannot have the name {field.name!r}", RowFormReason.SCHEMA) from error


def nullable(schema: Schema) -> bool:
    """Return True if an array of the schema's values may contain nulls."""
    return schema.optional or schema.default is not None


def logical(schema: Schema) -> str | None:
    """Return the name of the schema's logical type, or None."""
    return schema.name if schema.name in _LOGICAL_OF else None


def _inner(name: str, schema: Schema | None) -> AnyField:
    if schema is None:
        raise NotColumnar("Arrow columns for elements without a schema", RowFormReason.SCHEMA)
    return pa.field(name, arrow_type(schema), nullable=nullable(schema))


def _logical_type(schema: Schema, name: str) -> pa.DataType:
    if schema.type is not _LOGICAL_OF[name]:
        raise NotColumnar(f"{name} as {schema.type.name}", RowFormReason.SCHEMA)
    return _decimal_type(schema) if name == DECIMAL else _MOMENTS[name]


def _decimal_type(schema: Schema) -> pa.DataType:
    try:
        scale = decimal_scale(schema)
        digits = int(schema.parameters.get(PRECISION, _DIGITS_128))
    except (DataError, ValueError) as error:
        raise NotColumnar(str(error), RowFormReason.SCHEMA) from error
    digits = max(digits, scale)
    if scale < 0 or not 0 < digits <= _DIGITS_256:
        raise NotColumnar(f"Arrow has no decimals with {digits} digits and scale {scale}", RowFormReason.SCHEMA)
    return pa.decimal128(digits, scale) if digits <= _DIGITS_128 else pa.decimal256(digits, scale)
