"""Reads row events. For each table map and set of columns it generates one function that decodes all rows of an event.

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

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.mysql.binlog import events, temporal
from sluiceway.connectors.cdc.mysql.binlog.charsets import BINARY_COLLATION, Charsets, decoder, is_utf_8
from sluiceway.connectors.cdc.mysql.binlog.decimals import decimal_bytes, decimal_reader
from sluiceway.connectors.cdc.mysql.binlog.events import EventType
from sluiceway.connectors.cdc.mysql.binlog.integers import read_length
from sluiceway.connectors.cdc.mysql.binlog.json_values import json_text
from sluiceway.connectors.cdc.mysql.binlog.table_map import ColumnType, MappedColumn, TableMap
from sluiceway.errors import ConnectError

Row = tuple[Any, ...]


INSERT, UPDATE, DELETE = "c", "u", "d"

_V1 = {EventType.WRITE_ROWS_V1: INSERT, EventType.UPDATE_ROWS_V1: UPDATE, EventType.DELETE_ROWS_V1: DELETE}
_V2 = {EventType.WRITE_ROWS: INSERT, EventType.UPDATE_ROWS: UPDATE, EventType.DELETE_ROWS: DELETE}
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


@dataclass(frozen=True, slots=True)
class RowsEvent:
    """A row event with its rows still encoded. ``before`` and ``after`` are bit sets of the columns in the images."""

    operation: str
    table_id: int
    ends_statement: bool
    before: int
    after: int
    width: int
    data: bytes


def read_rows_event(event_type: int, body: memoryview, id_bytes: int = 6) -> RowsEvent:
    """Return the event of a body (without header and checksum)."""
    operation = OPERATIONS[event_type]
    table_id = int.from_bytes(body[:id_bytes], "little")
    flags = int.from_bytes(body[id_bytes : id_bytes + 2], "little")
    at = id_bytes + 2
    if event_type in _WITH_EXTRA_DATA:
        at += int.from_bytes(body[at : at + 2], "little")
    width, at = read_length(body, at)
    size = (width + 7) // 8
    first = int.from_bytes(body[at : at + size], "little")
    at += size
    second = first
    if operation == UPDATE:
        second = int.from_bytes(body[at : at + size], "little")
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
    )


class RowReaders:
    """Generates and caches the readers of one table map."""

    def __init__(self, table: TableMap, charsets: Charsets, calendar: temporal.Calendar) -> None:
        self._table = table
        self._charsets = charsets
        self._calendar = calendar
        self._readers: dict[tuple[int, int], Callable[[bytes], list[tuple[Row | None, Row | None]]]] = {}

    def read(self, event: RowsEvent) -> list[tuple[Row | None, Row | None]]:
        """Return the rows of an event as pairs of the image before and after."""
        key = (event.before, event.after)
        reader = self._readers.get(key)
        if reader is None:
            reader = self._readers[key] = self._generate(event)
        return reader(event.data)

    def _generate(self, event: RowsEvent) -> Callable[[bytes], list[tuple[Row | None, Row | None]]]:
        if event.width != len(self._table.columns):
            raise ConnectError(
                f"A row event of {self._table.database}.{self._table.table} has {event.width} columns but its table map "
                f"{len(self._table.columns)}. The binary log is damaged."
            )
        code = _Code(self._charsets, self._calendar)
        lines = ["def read(data):", " rows = []", " add = rows.append", " at, end = 0, len(data)", " while at < end:"]
        images = []
        for name, present, known in (("before", event.before, 0), ("after", event.after, event.before)):
            if present:
                lines += code.image(name, self._table.columns, present, known)
            images.append(name if present else "None")
        lines += [f"  add(({', '.join(images)}))", " return rows"]
        names: dict[str, Any] = dict(code.names)
        exec("\n".join(lines), names)  # noqa: S102 (code generated from the table map's types alone)
        reader: Callable[[bytes], list[tuple[Row | None, Row | None]]] = names["read"]
        return reader


class _Code:
    """Writes the statements that decode the image of a row from ``data`` at ``at``."""

    def __init__(self, charsets: Charsets, calendar: temporal.Calendar) -> None:
        self._charsets = charsets
        self._calendar = calendar
        self.names: dict[str, Any] = {"integer": int.from_bytes, "ABSENT": UNAVAILABLE, "read_length": read_length}

    def image(self, name: str, columns: Sequence[MappedColumn], present: int, known: int) -> list[str]:
        """Return the statements for an image that has the columns ``present``; variables have the values of those ``known``."""
        shown = [index for index in range(len(columns)) if present >> index & 1]
        size = (len(shown) + 7) // 8
        lines = [f"  nulls = integer(data[at:at + {size}], 'little')", f"  at += {size}"]
        for bit, index in enumerate(shown):
            lines.append(f"  if nulls & {1 << bit}: v{index} = None")
            lines.append("  else:")
            lines += [f"   {line}" for line in self._column(index, columns[index])]
        values = "".join(f"v{index}," if (present | known) >> index & 1 else "ABSENT," for index in range(len(columns)))
        return [*lines, f"  {name} = ({values})"]

    def _add(self, value: Any) -> str:
        name = f"f{len(self.names)}"
        self.names[name] = value
        return name

    def _call(self, index: int, function: Callable[..., Any], size: int) -> list[str]:
        return [f"v{index} = {self._add(function)}(data, at)", f"at += {size}"]

    def _unpack(self, index: int, form: str) -> list[str]:
        unpack = self._add(struct.Struct(form).unpack_from)
        return [f"v{index}, = {unpack}(data, at)", f"at += {struct.calcsize(form)}"]

    def _column(self, index: int, column: MappedColumn) -> list[str]:
        type_ = column.type
        if type_ in _FIXED_FORMS:
            form = _FIXED_FORMS[type_]
            return self._unpack(index, f"<{form.upper() if column.unsigned and form in _INTEGERS else form}")
        if type_ == ColumnType.INT24:
            return [f"v{index} = integer(data[at:at + 3], 'little', signed={not column.unsigned})", "at += 3"]
        if type_ == ColumnType.YEAR:
            return [f"v{index} = data[at] and 1900 + data[at]", "at += 1"]
        if type_ in _TEMPORAL:
            return self._temporal(index, column)
        if type_ == ColumnType.NEWDECIMAL:
            precision, scale = column.metadata >> 8, column.metadata & 0xFF
            return self._call(index, decimal_reader(precision, scale), decimal_bytes(precision, scale))
        if type_ in (ColumnType.ENUM, ColumnType.SET):
            return [f"v{index} = integer(data[at:at + {column.metadata}], 'little')", f"at += {column.metadata}"]
        if type_ == ColumnType.BIT:
            size = (column.metadata >> 8) + ((column.metadata & 0xFF) + 7) // 8
            return [f"v{index} = integer(data[at:at + {size}], 'big')", f"at += {size}"]
        return self._string(index, column)

    def _temporal(self, index: int, column: MappedColumn) -> list[str]:
        type_, precision = column.type, column.metadata
        fraction = temporal.fraction_bytes(precision)
        if type_ in (ColumnType.DATE, ColumnType.NEWDATE):
            return self._call(index, temporal.date_reader(self._calendar), 3)
        if type_ == ColumnType.DATETIME2:
            return self._call(index, temporal.datetime2_reader(precision, self._calendar), 5 + fraction)
        if type_ == ColumnType.TIMESTAMP2:
            return self._call(index, temporal.timestamp2_reader(precision), 4 + fraction)
        if type_ == ColumnType.TIME2:
            return self._call(index, temporal.time2_reader(precision), 3 + fraction)
        if type_ == ColumnType.DATETIME:
            return self._call(index, temporal.old_datetime_reader(self._calendar), 8)
        if type_ == ColumnType.TIME:
            return self._call(index, temporal.old_time_reader, 3)
        return [f"v{index} = integer(data[at:at + 4], 'little') * 1000000", "at += 4"]

    def _string(self, index: int, column: MappedColumn) -> list[str]:
        size = _length_bytes(column)
        lines = [
            f"n = data[at]; at += {size}" if size == 1 else f"n = integer(data[at:at + {size}], 'little'); at += {size}",
            f"v{index} = data[at:at + n]",
            "at += n",
        ]
        if column.type in (ColumnType.BLOB_COMPRESSED, ColumnType.VARCHAR_COMPRESSED):
            lines.append(f"v{index} = {self._add(_uncompressed_value)}(v{index})")
        if column.type == ColumnType.JSON:
            return [*lines, f"v{index} = {self._add(json_text)}(v{index})"]
        if (
            column.collation is None
            or column.collation == BINARY_COLLATION
            or column.type in (ColumnType.GEOMETRY, ColumnType.VECTOR)
        ):
            return lines
        charset = self._charsets.name(column.collation)
        if is_utf_8(charset):
            return [*lines, f"v{index} = v{index}.decode('utf_8', 'replace')"]
        return [*lines, f"v{index} = {self._add(decoder(charset))}(v{index})"]


_FIXED_FORMS = {
    ColumnType.TINY: "b",
    ColumnType.SHORT: "h",
    ColumnType.LONG: "i",
    ColumnType.LONGLONG: "q",
    ColumnType.FLOAT: "f",
    ColumnType.DOUBLE: "d",
}
_INTEGERS = "bhiq"

_TEMPORAL = frozenset(
    {
        ColumnType.DATE,
        ColumnType.NEWDATE,
        ColumnType.TIME,
        ColumnType.DATETIME,
        ColumnType.TIMESTAMP,
        ColumnType.TIME2,
        ColumnType.DATETIME2,
        ColumnType.TIMESTAMP2,
    }
)

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


def _length_bytes(column: MappedColumn) -> int:
    """Return the size of the length before a string's bytes."""
    if column.type in _WITH_LENGTH_BYTES:
        return column.metadata
    if column.type in _STRINGS:
        return 2 if column.metadata > 255 else 1
    raise ConnectError(
        f"Column {column.name or ''} has the type {column.type} of the binary log, which this connector cannot read. "
        "Exclude its table, or convert the column to another type."
    )


def _uncompressed_value(data: bytes) -> bytes:
    """Return the content of a value of a COMPRESSED column: header, length, and zlib's stream with or without its header."""
    if not data or data[0] == 0:
        return data[1:]
    return zlib.decompress(data[1 + (data[0] & 0x07) :], -zlib.MAX_WBITS if data[0] & 0x08 else zlib.MAX_WBITS)
