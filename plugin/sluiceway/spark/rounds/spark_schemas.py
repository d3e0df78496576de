"""Converts Spark's schemas to Connect's. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluiceway.data import Schema, Type, date_schema, decimal_schema, timestamp_schema
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_PRIMITIVE = {
    "byte": Type.INT8,
    "short": Type.INT16,
    "integer": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
    "char": Type.STRING,
    "varchar": Type.STRING,
    "binary": Type.BYTES,
}


def row_schema(columns: StructType, name: str | None = None) -> Schema:
    """Return the schema of a DataFrame's rows. Raises ConnectError for a column whose type Connect lacks."""
    return _struct(columns, name=name, optional=False)


def _struct(columns: StructType, *, name: str | None = None, optional: bool) -> Schema:
    fields = []
    for column in columns.fields:
        try:
            fields.append((column.name, _schema(column.dataType, optional=column.nullable)))
        except ConnectError as error:
            raise ConnectError(f"column {column.name}: {error}") from error
    return Schema(Type.STRUCT, optional=optional, name=name, fields=fields)


def _schema(kind: DataType, *, optional: bool) -> Schema:
    from pyspark.sql.types import ArrayType, DateType, DecimalType, MapType, StructType, TimestampNTZType, TimestampType

    if isinstance(kind, StructType):
        return _struct(kind, optional=optional)
    if isinstance(kind, ArrayType):
        return Schema(Type.ARRAY, optional=optional, value_schema=_schema(kind.elementType, optional=kind.containsNull))
    if isinstance(kind, MapType):
        return Schema(
            Type.MAP,
            optional=optional,
            key_schema=_schema(kind.keyType, optional=False),
            value_schema=_schema(kind.valueType, optional=kind.valueContainsNull),
        )
    if isinstance(kind, DecimalType):
        return decimal_schema(kind.scale, optional=optional)
    if isinstance(kind, DateType):
        return date_schema(optional=optional)
    if isinstance(kind, (TimestampType, TimestampNTZType)):
        return timestamp_schema(optional=optional)
    known = _PRIMITIVE.get(kind.typeName().partition("(")[0])
    if known is None:
        raise ConnectError(f"Spark's type {kind.simpleString()} has no counterpart in Connect. Cast it in a query.")
    return Schema(known, optional=optional)
