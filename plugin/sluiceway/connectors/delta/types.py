"""Maps Arrow types to those of Delta's columns. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from sluiceway.connectors.tables.evolution import convert_type
from sluiceway.errors import DataError

_TO: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.null(): pa.string(),  # schemaless nested fields that are all null
    pa.time32("s"): pa.int32(),
    pa.time32("ms"): pa.int32(),  # Delta has no time of day: milliseconds since midnight
    pa.time64("us"): pa.int64(),
    pa.time64("ns"): pa.int64(),
}
_SAME: set[pa.DataType] = {
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
}


def column_type(type_: pa.DataType, path: str = "") -> pa.DataType:
    """Return the Arrow type of a Delta column for data of an Arrow type. Raises DataError if there is none."""
    return convert_type(type_, _leaf, path)


def _leaf(type_: pa.DataType) -> pa.DataType:
    if type_ in _SAME:
        return type_
    if type_ in _TO:
        return _TO[type_]
    if isinstance(type_, pa.TimestampType):
        return pa.timestamp("us", "UTC" if type_.tz else None)
    if pa.types.is_decimal(type_) and type_.precision <= 38:
        return pa.decimal128(type_.precision, type_.scale)
    if pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    raise DataError(f"Delta has no type for {type_}.")


def check_names(fields: Sequence[pa.Field[Any]], path: str = "") -> None:
    """Raise DataError for fields whose names differ by case alone, which Delta does not have beside each other."""
    seen: dict[str, str] = {}
    for field in fields:
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise DataError(
                f"Field {path}{field.name} cannot be written: Delta takes it for {path}{other}, which differs by case alone. "
                "Rename one with ReplaceField."
            )
        _check_inner(field.type, f"{path}{field.name}.")


def _check_inner(type_: pa.DataType, path: str) -> None:
    if isinstance(type_, pa.StructType):
        check_names(list(type_), path)
    elif isinstance(type_, pa.MapType):
        _check_inner(type_.key_type, f"{path}key.")
        _check_inner(type_.item_type, f"{path}value.")
    elif isinstance(type_, pa.ListType):
        _check_inner(type_.value_type, f"{path}element.")
