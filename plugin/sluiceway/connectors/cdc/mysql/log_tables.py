"""Matches a table's definition with the columns that the log maps. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.rows import DELETE, Row, RowReaders
from sluiceway.connectors.cdc.mysql.binlog.table_map import ColumnType, MappedColumn, TableMap
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, JdbcType, TableDefinition
from sluiceway.connectors.cdc.tables import TableSchema


@dataclass(slots=True)
class LogTable:
    """A table that the log has mapped: how to read its rows and what to make of them. ``schema`` is None if it is not read.

    A signal table that is not ``captured`` is read too, without records. ``row_end`` is the index of the hidden column by which
    a system-versioned table of MariaDB tells former rows from current ones.
    """

    raw: bytes
    id: TableId
    known: TableDefinition | None
    definition: TableDefinition | None
    readers: RowReaders | None
    schema: TableSchema | None
    captured: bool = False
    row_end: int | None = field(init=False)

    def __post_init__(self) -> None:
        columns = () if self.definition is None else self.definition.columns
        self.row_end = next((index for index, each in enumerate(columns) if each.name == _ROW_END and not each.type_name), None)

    def current(self, operation: str, before: Row | None, after: Row | None) -> tuple[str, Row | None, Row | None] | None:
        """Return the change of the current rows that a change of a system-versioned table is; None if only former rows change.

        An update also inserts the former row, and a delete sets the end of its row (MariaDB, "System-Versioned Tables").
        """
        if self.row_end is None:
            return operation, before, after
        was, becomes = (row is not None and _is_current(row[self.row_end]) for row in (before, after))
        if was and not becomes:
            return DELETE, before, None
        return (operation, before, after) if becomes else None


_TYPES = {
    ColumnType.TINY: ("TINYINT", JdbcType.SMALLINT),
    ColumnType.SHORT: ("SMALLINT", JdbcType.SMALLINT),
    ColumnType.INT24: ("MEDIUMINT", JdbcType.INTEGER),
    ColumnType.LONG: ("INT", JdbcType.INTEGER),
    ColumnType.LONGLONG: ("BIGINT", JdbcType.BIGINT),
    ColumnType.FLOAT: ("FLOAT", JdbcType.FLOAT),
    ColumnType.DOUBLE: ("DOUBLE", JdbcType.DOUBLE),
    ColumnType.NEWDECIMAL: ("DECIMAL", JdbcType.DECIMAL),
    ColumnType.DATE: ("DATE", JdbcType.DATE),
    ColumnType.TIME2: ("TIME", JdbcType.TIME),
    ColumnType.DATETIME2: ("DATETIME", JdbcType.TIMESTAMP),
    ColumnType.TIMESTAMP2: ("TIMESTAMP", JdbcType.TIMESTAMP_WITH_TIMEZONE),
    ColumnType.YEAR: ("YEAR", JdbcType.INTEGER),
    ColumnType.BIT: ("BIT", JdbcType.BIT),
    ColumnType.ENUM: ("ENUM", JdbcType.CHAR),
    ColumnType.SET: ("SET", JdbcType.CHAR),
    ColumnType.JSON: ("JSON", JdbcType.OTHER),
    ColumnType.GEOMETRY: ("GEOMETRY", JdbcType.OTHER),
}
_BINARY = 63
_UNSIGNED_TYPES = frozenset({ColumnType.TINY, ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG, ColumnType.LONGLONG})


_STORED: dict[int, frozenset[int]] = {
    **dict.fromkeys((ColumnType.TINY, ColumnType.SHORT), frozenset({JdbcType.SMALLINT, JdbcType.BOOLEAN})),
    **dict.fromkeys((ColumnType.INT24, ColumnType.LONG, ColumnType.YEAR), frozenset({JdbcType.INTEGER})),
    ColumnType.LONGLONG: frozenset({JdbcType.BIGINT}),
    ColumnType.FLOAT: frozenset({JdbcType.FLOAT, JdbcType.REAL}),
    ColumnType.DOUBLE: frozenset({JdbcType.DOUBLE, JdbcType.REAL, JdbcType.FLOAT}),
    ColumnType.NEWDECIMAL: frozenset({JdbcType.DECIMAL, JdbcType.NUMERIC}),
    ColumnType.BIT: frozenset({JdbcType.BIT}),
    **dict.fromkeys((ColumnType.DATE, ColumnType.NEWDATE), frozenset({JdbcType.DATE})),
    **dict.fromkeys((ColumnType.TIME, ColumnType.TIME2), frozenset({JdbcType.TIME})),
    **dict.fromkeys((ColumnType.DATETIME, ColumnType.DATETIME2), frozenset({JdbcType.TIMESTAMP})),
    **dict.fromkeys((ColumnType.TIMESTAMP, ColumnType.TIMESTAMP2), frozenset({JdbcType.TIMESTAMP_WITH_TIMEZONE})),
    **dict.fromkeys((ColumnType.ENUM, ColumnType.SET), frozenset({JdbcType.CHAR})),
    **dict.fromkeys((ColumnType.GEOMETRY, ColumnType.JSON, ColumnType.VECTOR), frozenset({JdbcType.OTHER})),
    **dict.fromkeys(
        (ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED, ColumnType.VAR_STRING),
        frozenset({JdbcType.VARCHAR, JdbcType.NVARCHAR, JdbcType.VARBINARY, JdbcType.OTHER}),
    ),
    ColumnType.STRING: frozenset({JdbcType.CHAR, JdbcType.NCHAR, JdbcType.BINARY, JdbcType.OTHER}),
    **dict.fromkeys(
        (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED),
        frozenset({JdbcType.BLOB, JdbcType.VARCHAR, JdbcType.NVARCHAR, JdbcType.VARBINARY, JdbcType.OTHER}),
    ),
}
"""The declared types of the types of the log."""

_ROW_END = "row_end"
_VERSIONING = frozenset({"row_start", _ROW_END})
_HIDDEN = ("!hidden!", "db_row_hash_")  # of indexes of expressions (MySQL), and of long unique keys (MariaDB)
_ENDLESS = 2_147_483_647_000_000  # the largest TIMESTAMP, in microseconds, or less; larger than a transaction id


def _is_current(row_end: object) -> bool:
    return not isinstance(row_end, int) or row_end >= _ENDLESS  # partial row images may leave it out


def matched_definition(
    definition: TableDefinition | None, mapped: TableMap, *, hidden: bool = False, final: bool = False
) -> TableDefinition | None:
    """Return the definition of the mapped columns in their order, or None if it is unknown.

    Args:
        hidden: the log may have the hidden columns of system versioning besides those of the definition.
        final: there is no better definition: columns that it does not have are hidden; without one, the log's metadata counts.
    """
    count = len(mapped.columns)
    same = definition is not None and len(definition.columns) == count and all(map(fits, definition.columns, mapped.columns))
    if not mapped.has_names:
        return definition if same else None
    names = [(column.name or "").lower() for column in mapped.columns]
    if same and definition is not None and [column.name.lower() for column in definition.columns] == names:
        return definition
    if hidden and definition is not None:
        known_names = {column.name.lower() for column in definition.columns}
        final = known_names <= set(names) and set(names) - known_names <= _VERSIONING
    if not final:
        return None
    if definition is None:
        definition = TableDefinition(TableId(mapped.database, mapped.table))
    known = {column.name.lower(): column for column in definition.columns}
    columns = tuple(_known_or_mapped(known.get(name), name, column) for name, column in zip(names, mapped.columns, strict=True))
    left = tuple(name for name in definition.primary_key if name.lower() in names)
    key = tuple(columns[index].name for index in mapped.primary_key) or left
    columns = tuple(column.required() if column.name in key else column for column in columns)
    return replace(definition, columns=columns, primary_key=key)


def _known_or_mapped(known: ColumnDefinition | None, name: str, mapped: MappedColumn) -> ColumnDefinition:
    """Return a column as it is known, unless it was another one when the row was logged."""
    if known is None and (name in _VERSIONING or name.startswith(_HIDDEN)):
        return _hidden(name)
    return known if known is not None and fits(known, mapped) else _column(mapped)


def fits(known: ColumnDefinition, mapped: MappedColumn) -> bool:
    """Whether the log stores values of a column like this, as far as its type and size tell."""
    stored = _STORED.get(mapped.type)
    if stored is None or not known.type_name:
        return True
    if known.jdbc_type not in stored or (known.type_name == "YEAR") != (mapped.type == ColumnType.YEAR):
        return False
    size = mapped.metadata
    if mapped.type == ColumnType.NEWDECIMAL:
        return (known.length, known.scale or 0) == (size >> 8, size & 0xFF)
    if mapped.type in (ColumnType.TIME2, ColumnType.DATETIME2, ColumnType.TIMESTAMP2):
        return (known.length or 0) == size
    if mapped.type == ColumnType.BIT:
        return (known.length or 1) == (size >> 8) * 8 + (size & 0xFF)
    return True


def _hidden(name: str) -> ColumnDefinition:
    """Return a column that the server has but does not declare, as those of system versioning; records leave it out."""
    return ColumnDefinition(name, 0, "")


def _column(mapped: MappedColumn) -> ColumnDefinition:
    """Return a column as far as the log's metadata describes it."""
    name, jdbc = _TYPES.get(mapped.type, _string_type(mapped))
    length, scale = None, None
    if mapped.type == ColumnType.NEWDECIMAL:
        length, scale = mapped.metadata >> 8, mapped.metadata & 0xFF
    elif mapped.type in (ColumnType.TIME2, ColumnType.DATETIME2, ColumnType.TIMESTAMP2):
        length = mapped.metadata or None
    elif mapped.type == ColumnType.BIT:
        length = (mapped.metadata >> 8) * 8 + (mapped.metadata & 0xFF)
    if mapped.unsigned and mapped.type in _UNSIGNED_TYPES:
        name += " UNSIGNED"
    values = tuple("'" + value.decode("utf_8", "replace").replace("'", "''") + "'" for value in mapped.values)
    return ColumnDefinition(
        name=mapped.name or "",
        jdbc_type=jdbc,
        type_name=name,
        length=length,
        scale=scale,
        optional=mapped.nullable,
        has_default=mapped.nullable,
        enum_values=values,
    )


def _string_type(mapped: MappedColumn) -> tuple[str, int]:
    binary = mapped.collation in (None, _BINARY)
    if mapped.type in (ColumnType.VARCHAR, ColumnType.VAR_STRING):
        return ("VARBINARY", JdbcType.VARBINARY) if binary else ("VARCHAR", JdbcType.VARCHAR)
    if mapped.type == ColumnType.STRING:
        return ("BINARY", JdbcType.BINARY) if binary else ("CHAR", JdbcType.CHAR)
    return ("BLOB", JdbcType.BLOB) if binary else ("TEXT", JdbcType.VARCHAR)
