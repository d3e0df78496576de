"""The stored form of values in row events: their sizes and character sets, by their column's type. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from sluiceway.connectors.cdc.mysql.binlog.charsets import BINARY_COLLATION, Charsets
from sluiceway.connectors.cdc.mysql.binlog.decimals import decimal_bytes
from sluiceway.connectors.cdc.mysql.binlog.table_map import ColumnType, MappedColumn
from sluiceway.connectors.cdc.mysql.binlog.temporal import fraction_bytes
from sluiceway.errors import ConnectError


class ValueSize(NamedTuple):
    """The size of a column's values in bytes.

    ``fixed`` is the size of all values, or, for strings, that of the length before each.
    """

    fixed: int
    has_length: bool = False


_FIXED_SIZES = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT24: 3,
    ColumnType.LONG: 4,
    ColumnType.LONGLONG: 8,
    ColumnType.FLOAT: 4,
    ColumnType.DOUBLE: 8,
    ColumnType.YEAR: 1,
    ColumnType.DATE: 3,
    ColumnType.NEWDATE: 3,
    ColumnType.TIME: 3,
    ColumnType.DATETIME: 8,
    ColumnType.TIMESTAMP: 4,
}
_BEFORE_FRACTION = {ColumnType.DATETIME2: 5, ColumnType.TIMESTAMP2: 4, ColumnType.TIME2: 3}
_WITH_LENGTH_BYTES = frozenset(
    {
        ColumnType.BLOB,
        ColumnType.TINY_BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB_COMPRESSED,
        ColumnType.GEOMETRY,
        ColumnType.JSON,
        ColumnType.VECTOR,
    }
)
_STRINGS = frozenset({ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED, ColumnType.VAR_STRING, ColumnType.STRING})
_COMPRESSED = frozenset({ColumnType.BLOB_COMPRESSED, ColumnType.VARCHAR_COMPRESSED})
_BYTES = frozenset({ColumnType.GEOMETRY, ColumnType.VECTOR})


def is_compressed(column: MappedColumn) -> bool:
    return column.type in _COMPRESSED


def charset_of(column: MappedColumn, charsets: Charsets) -> str | None:
    """Return the character set of a column's strings, or None if its values are bytes."""
    if column.collation is None or column.collation == BINARY_COLLATION or column.type in _BYTES:
        return None
    return charsets.name(column.collation)


def value_size(column: MappedColumn) -> ValueSize:
    """Return the size of a column's values. Raises ConnectError for a type that is not known."""
    type_, metadata = column.type, column.metadata
    if type_ in _FIXED_SIZES:
        return ValueSize(_FIXED_SIZES[type_])
    if type_ in _BEFORE_FRACTION:
        return ValueSize(_BEFORE_FRACTION[type_] + fraction_bytes(metadata))
    if type_ == ColumnType.NEWDECIMAL:
        return ValueSize(decimal_bytes(metadata >> 8, metadata & 0xFF))
    if type_ in (ColumnType.ENUM, ColumnType.SET):
        return ValueSize(metadata)
    if type_ == ColumnType.BIT:
        return ValueSize((metadata >> 8) + ((metadata & 0xFF) + 7) // 8)
    if type_ in _WITH_LENGTH_BYTES:
        return ValueSize(metadata, has_length=True)
    if type_ in _STRINGS:
        return ValueSize(2 if metadata > 255 else 1, has_length=True)
    raise ConnectError(
        f"Column {column.name or ''} has the type {type_} of the binary log, which this connector cannot read. "
        "Exclude its table, or convert the column to another type."
    )
