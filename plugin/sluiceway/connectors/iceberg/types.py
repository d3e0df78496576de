"""Maps Arrow types to those of Iceberg's columns. No I/O."""

from __future__ import annotations

import pyarrow as pa

from sluiceway.connectors.tables.evolution import convert_type, wider_decimal
from sluiceway.errors import DataError

_TO: dict[pa.DataType, pa.DataType] = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}
_SAME: set[pa.DataType] = {pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()}
_WIDER: set[tuple[pa.DataType, pa.DataType]] = {(pa.int32(), pa.int64()), (pa.float32(), pa.float64())}


def column_type(type_: pa.DataType, path: str = "") -> pa.DataType:
    """Return the Arrow type of an Iceberg column for data of an Arrow type. Raises DataError if there is none."""
    return convert_type(type_, _leaf, path)


def _leaf(type_: pa.DataType) -> pa.DataType:
    if type_ in _SAME:
        return type_
    if type_ in _TO:
        return _TO[type_]
    if isinstance(type_, pa.TimestampType):
        return pa.timestamp("us", "UTC" if type_.tz else None)
    if pa.types.is_time(type_):
        return pa.time64("us")
    if pa.types.is_decimal(type_) and type_.precision <= 38:
        return pa.decimal128(type_.precision, type_.scale)
    if pa.types.is_null(type_):
        return pa.string()  # schemaless nested fields that are all null
    if pa.types.is_fixed_size_binary(type_):
        return type_
    raise DataError(f"Iceberg has no type for {type_}.")


def widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether Iceberg can change a column of type ``old`` to ``new``."""
    return (old, new) in _WIDER or wider_decimal(old, new)
