"""Reads row events. For each table map and set of columns, one generated function decodes all rows of an event.

Values have these types, whatever the column's declared type:

===================== =====================================================================
Integers, YEAR        int
FLOAT, DOUBLE         float
DECIMAL               int, the unscaled value
DATE                  int, days since the epoch, or INVALID
DATETIME, TIMESTAMP   int, microseconds since the epoch, or INVALID; 0 is the zero TIMESTAMP
TIME                  int, signed microseconds
Character strings     str
Binary strings, BLOB  bytes; also geometries, with their SRID before the WKB
BIT                   int
ENUM, SET             int, the 1-based number, or a bit for each member
JSON (MySQL)          str
===================== =====================================================================

A column that a partial row image leaves out is UNAVAILABLE, or has the value of the image before the change, if that has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.cdc.mysql.binlog import events
from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets
from sluiceway.connectors.cdc.mysql.binlog.events import EventType
from sluiceway.connectors.cdc.mysql.binlog.integers import read_length
from sluiceway.connectors.cdc.mysql.binlog.row_code import RowCode
from sluiceway.connectors.cdc.mysql.binlog.table_map import TableMap
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.connectors.cdc.mysql.binlog.row_columns import RowColumns

Row = tuple[Any, ...]


INSERT, UPDATE, DELETE = "c", "u", "d"

_V1 = {EventType.WRITE_ROWS_V1: INSERT, EventType.UPDATE_ROWS_V1: UPDATE, EventType.DELETE_ROWS_V1: DELETE}
_V2 = {
    EventType.WRITE_ROWS: INSERT,
    EventType.UPDATE_ROWS: UPDATE,
    EventType.PARTIAL_UPDATE_ROWS: UPDATE,
    EventType.DELETE_ROWS: DELETE,
}
_COMPRESSED_V1 = {
    EventType.WRITE_ROWS_COMPRESSED_V1: INSERT,
    EventType.UPDATE_ROWS_COMPRESSED_V1: UPDATE,
    EventType.DELETE_ROWS_COMPRESSED_V1: DELETE,
}
_COMPRESSED_V2 = {
    EventType.WRITE_ROWS_COMPRESSED: INSERT,
    EventType.UPDATE_ROWS_COMPRESSED: UPDATE,
    EventType.DELETE_ROWS_COMPRESSED: DELETE,
}
OPERATIONS: dict[int, str] = {int(k): v for kinds in (_V1, _V2, _COMPRESSED_V1, _COMPRESSED_V2) for k, v in kinds.items()}
_WITH_EXTRA_DATA = frozenset(int(kind) for kind in (*_V2, *_COMPRESSED_V2))
_COMPRESSED = frozenset(int(kind) for kind in (*_COMPRESSED_V1, *_COMPRESSED_V2))
_MOST_COLUMNS = 4096  # of a table in MySQL and MariaDB


@dataclass(frozen=True, slots=True)
class RowsEvent:
    """A row event with its rows still encoded. ``before`` and ``after`` are bit sets of the columns in the images.

    ``partial``: images after updates may have changes of JSON documents instead of documents.
    """

    operation: str
    table_id: int
    ends_statement: bool
    before: int
    after: int
    width: int
    data: bytes
    partial: bool = False


def read_rows_event(event_type: int, body: memoryview, id_bytes: int = 6) -> RowsEvent:
    """Return the event of a body (without header and checksum)."""
    operation = OPERATIONS[event_type]
    table_id = int.from_bytes(body[:id_bytes], "little")
    flags = int.from_bytes(body[id_bytes : id_bytes + 2], "little")
    at = id_bytes + 2
    if event_type in _WITH_EXTRA_DATA:
        at += int.from_bytes(body[at : at + 2], "little")
    width, at = read_length(body, at)
    if width > _MOST_COLUMNS:
        raise ConnectError(f"A row event has {width} columns. The binary log is damaged.")
    size = (width + 7) // 8
    columns = (1 << width) - 1  # the bits behind them may be set
    first = int.from_bytes(body[at : at + size], "little") & columns
    at += size
    second = first
    if operation == UPDATE:
        second = int.from_bytes(body[at : at + size], "little") & columns
        at += size
    data = bytes(body[at:])
    if event_type in _COMPRESSED and data:
        data = events.uncompressed(data)
    return RowsEvent(
        operation,
        table_id,
        bool(flags & 1),
        0 if operation == INSERT else first,
        0 if operation == DELETE else second,
        width,
        data,
        event_type == EventType.PARTIAL_UPDATE_ROWS,
    )


class RowReaders:
    """Generates and caches the readers of one table map."""

    def __init__(self, table: TableMap, charsets: Charsets, calendar: Calendar) -> None:
        self._table = table
        self._charsets = charsets
        self._calendar = calendar
        self._readers: dict[tuple[int, int, bool], Callable[[bytes], list[tuple[Row | None, Row | None]]]] = {}
        self._finders: dict[tuple[int, int], Callable[[bytes], list[int]]] = {}

    def read(self, event: RowsEvent) -> list[tuple[Row | None, Row | None]]:
        """Return the rows of an event as pairs of the image before and after."""
        images = (event.before, event.after, event.partial)
        if images not in self._readers:
            self._readers[images] = self._code(event).row_reader(event.before, event.after, partial=event.partial)
        return self._readers[images](event.data)

    def image_starts(self, event: RowsEvent) -> list[int]:
        """Return where the images of an event's rows begin in its data; in updates, those before and after alternate."""
        images = (event.before, event.after)
        if images not in self._finders:
            self._finders[images] = self._code(event).image_finder(*images)
        try:
            return self._finders[images](event.data)
        except IndexError:
            raise self._damaged("a row that is cut off") from None

    def has_all_columns(self, event: RowsEvent) -> bool:
        """Whether the images of an event's rows have all columns of the table."""
        everything = (1 << len(self._table.columns)) - 1
        return event.before in (0, everything) and event.after in (0, everything)

    @cached_property
    def columns(self) -> RowColumns:
        """The decoder of many rows at once, which needs NumPy and Arrow."""
        from sluiceway.connectors.cdc.mysql.binlog.row_columns import RowColumns

        return RowColumns(self._table.columns, self._charsets, self._calendar)

    def _code(self, event: RowsEvent) -> RowCode:
        if event.width != len(self._table.columns):
            raise self._damaged(f"{event.width} columns but its table map {len(self._table.columns)}")
        if event.data and not event.before | event.after:
            raise self._damaged("rows without columns")
        return RowCode(self._table.columns, self._charsets, self._calendar)

    def _damaged(self, what: str) -> ConnectError:
        return ConnectError(f"A row event of {self._table.database}.{self._table.table} has {what}. The binary log is damaged.")
