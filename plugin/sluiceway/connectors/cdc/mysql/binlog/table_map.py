"""Decodes table map events with their optional metadata: the columns of the row events that follow. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sluiceway.connectors.cdc.mysql.binlog.integers import read_length


class ColumnType:
    """Type codes of columns in the log (the protocol's field types)."""

    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


_T = ColumnType
_NUMERIC = frozenset({_T.TINY, _T.SHORT, _T.INT24, _T.LONG, _T.LONGLONG, _T.NEWDECIMAL, _T.FLOAT, _T.DOUBLE, _T.YEAR})
_CHARACTER = frozenset(
    {
        _T.VARCHAR,
        _T.VAR_STRING,
        _T.STRING,
        _T.BLOB,
        _T.TINY_BLOB,
        _T.MEDIUM_BLOB,
        _T.LONG_BLOB,
        _T.GEOMETRY,  # a kind of BLOB in the servers' code
        _T.BLOB_COMPRESSED,
        _T.VARCHAR_COMPRESSED,
    }
)
_ONE_BYTE_METADATA = frozenset(
    {
        _T.FLOAT,
        _T.DOUBLE,
        _T.TIMESTAMP2,
        _T.DATETIME2,
        _T.TIME2,
        _T.BLOB,
        _T.BLOB_COMPRESSED,
        _T.TINY_BLOB,
        _T.MEDIUM_BLOB,
        _T.LONG_BLOB,
        _T.JSON,
        _T.GEOMETRY,
        _T.VECTOR,
    }
)
_TWO_BYTES_METADATA = frozenset({_T.BIT, _T.VARCHAR, _T.VARCHAR_COMPRESSED, _T.VAR_STRING})
_BIG_ENDIAN_METADATA = frozenset({_T.NEWDECIMAL, _T.ENUM, _T.SET, _T.STRING})

(
    _SIGNEDNESS,
    _DEFAULT_CHARSET,
    _COLUMN_CHARSET,
    _COLUMN_NAME,
    _SET_VALUES,
    _ENUM_VALUES,
    _GEOMETRY_TYPE,
    _SIMPLE_KEY,
    _KEY_WITH_PREFIX,
    _ENUM_AND_SET_DEFAULT_CHARSET,
    _ENUM_AND_SET_CHARSET,
    _VISIBILITY,
) = range(1, 13)


@dataclass(slots=True)
class MappedColumn:
    """One column as the log describes it. Names, values and the key need FULL metadata, collations at least MINIMAL."""

    type: int
    metadata: int
    nullable: bool
    name: str | None = None
    unsigned: bool = False
    collation: int | None = None
    values: tuple[bytes, ...] = ()
    geometry: int | None = None


@dataclass(slots=True)
class TableMap:
    """Maps a table id to a table and its columns. ``raw`` is the event's body, by which equal maps are recognized."""

    table_id: int
    database: str
    table: str
    columns: list[MappedColumn]
    raw: bytes
    has_signedness: bool = False
    primary_key: tuple[int, ...] = ()

    @property
    def has_names(self) -> bool:
        """Whether the log has FULL metadata (``binlog_row_metadata=FULL``)."""
        return bool(self.columns) and self.columns[0].name is not None


def read_table_id(body: memoryview, id_bytes: int = 6) -> int:
    return int.from_bytes(body[:id_bytes], "little")


def read_table_map(body: memoryview, id_bytes: int = 6) -> TableMap:
    """Return the table map of an event's body (without header and checksum)."""
    data = bytes(body)
    table_id = int.from_bytes(data[:id_bytes], "little")
    at = id_bytes + 2
    database, at = _name(data, at)
    table, at = _name(data, at)
    count, at = read_length(data, at)
    types = list(data[at : at + count])
    at += count
    size, at = read_length(data, at)
    columns = _columns(types, data[at : at + size])
    at += size
    nullable = int.from_bytes(data[at : at + (count + 7) // 8], "little")
    for index, column in enumerate(columns):
        column.nullable = bool(nullable >> index & 1)
    result = TableMap(table_id, database, table, columns, data[id_bytes:])
    _read_optional(result, data, at + (count + 7) // 8)
    return result


def _name(data: bytes, at: int) -> tuple[str, int]:
    length = data[at]
    return data[at + 1 : at + 1 + length].decode("utf_8", "replace"), at + 2 + length


def _columns(types: list[int], metadata: bytes) -> list[MappedColumn]:
    columns, at = [], 0
    for type_ in types:
        value = 0
        if type_ in _ONE_BYTE_METADATA:
            value, at = metadata[at], at + 1
        elif type_ in _TWO_BYTES_METADATA:
            value, at = int.from_bytes(metadata[at : at + 2], "little"), at + 2
        elif type_ in _BIG_ENDIAN_METADATA:
            value, at = int.from_bytes(metadata[at : at + 2], "big"), at + 2
        if type_ == _T.STRING:
            type_, value = _string_type(value)
        columns.append(MappedColumn(type_, value, nullable=True))
    return columns


def _string_type(metadata: int) -> tuple[int, int]:
    """Return the real type and the length: ENUM and SET are logged as STRING, and long CHARs borrow two bits of the type."""
    high, low = metadata >> 8, metadata & 0xFF
    if high & 0x30 != 0x30:
        return high | 0x30, low | (((high & 0x30) ^ 0x30) << 4)
    if high in (_T.ENUM, _T.SET):
        return high, low
    return _T.STRING, low


def _read_optional(table: TableMap, data: bytes, at: int) -> None:
    """Read the optional metadata, fields of type, length and value."""
    while at < len(data):
        kind = data[at]
        length, at = read_length(data, at + 1)
        value = data[at : at + length]
        at += length
        reader = _OPTIONAL.get(kind)
        if reader is not None:
            reader(table, value)


def _lengths(value: bytes) -> Iterator[int]:
    at = 0
    while at < len(value):
        number, at = read_length(value, at)
        yield number


def _signedness(table: TableMap, value: bytes) -> None:
    table.has_signedness = True
    numeric = [column for column in table.columns if column.type in _NUMERIC]
    for index, column in enumerate(numeric):
        if index // 8 < len(value):
            column.unsigned = bool(value[index // 8] & (0x80 >> index % 8))


def _characters(table: TableMap) -> list[MappedColumn]:
    return [column for column in table.columns if column.type in _CHARACTER]


def _enums_and_sets(table: TableMap) -> list[MappedColumn]:
    return [column for column in table.columns if column.type in (_T.ENUM, _T.SET)]


def _default_collation(columns: list[MappedColumn], value: bytes) -> None:
    numbers = list(_lengths(value))
    for column in columns:
        column.collation = numbers[0]
    for index, collation in zip(numbers[1::2], numbers[2::2], strict=True):
        columns[index].collation = collation


def _collations(columns: list[MappedColumn], value: bytes) -> None:
    for column, collation in zip(columns, _lengths(value), strict=False):
        column.collation = collation


def _names(table: TableMap, value: bytes) -> None:
    at = 0
    for column in table.columns:
        length, at = read_length(value, at)
        column.name = value[at : at + length].decode("utf_8", "replace")
        at += length


def _string_values(columns: list[MappedColumn], value: bytes) -> None:
    at = 0
    for column in columns:
        count, at = read_length(value, at)
        values = []
        for _ in range(count):
            length, at = read_length(value, at)
            values.append(value[at : at + length])
            at += length
        column.values = tuple(values)


def _of_type(table: TableMap, type_: int) -> list[MappedColumn]:
    return [column for column in table.columns if column.type == type_]


def _geometry(table: TableMap, value: bytes) -> None:
    for column, kind in zip(_of_type(table, _T.GEOMETRY), _lengths(value), strict=False):
        column.geometry = kind


def _simple_key(table: TableMap, value: bytes) -> None:
    table.primary_key = tuple(_lengths(value))


def _key_with_prefix(table: TableMap, value: bytes) -> None:
    table.primary_key = tuple(_lengths(value))[0::2]


_OPTIONAL: dict[int, Callable[[TableMap, bytes], None]] = {
    _SIGNEDNESS: _signedness,
    _DEFAULT_CHARSET: lambda table, value: _default_collation(_characters(table), value),
    _COLUMN_CHARSET: lambda table, value: _collations(_characters(table), value),
    _COLUMN_NAME: _names,
    _SET_VALUES: lambda table, value: _string_values(_of_type(table, _T.SET), value),
    _ENUM_VALUES: lambda table, value: _string_values(_of_type(table, _T.ENUM), value),
    _GEOMETRY_TYPE: _geometry,
    _SIMPLE_KEY: _simple_key,
    _KEY_WITH_PREFIX: _key_with_prefix,
    _ENUM_AND_SET_DEFAULT_CHARSET: lambda table, value: _default_collation(_enums_and_sets(table), value),
    _ENUM_AND_SET_CHARSET: lambda table, value: _collations(_enums_and_sets(table), value),
}
