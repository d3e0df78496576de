"""Generates the functions that read the rows of row events. No I/O."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.mysql.binlog import temporal
from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets, decoder, is_utf_8
from sluiceway.connectors.cdc.mysql.binlog.column_storage import charset_of, is_compressed, value_size
from sluiceway.connectors.cdc.mysql.binlog.decimals import decimal_reader
from sluiceway.connectors.cdc.mysql.binlog.integers import read_length
from sluiceway.connectors.cdc.mysql.binlog.json_diffs import updated_json
from sluiceway.connectors.cdc.mysql.binlog.json_values import json_text
from sluiceway.connectors.cdc.mysql.binlog.table_map import ColumnType, MappedColumn

NUMBER_FORMS = {
    ColumnType.TINY: "b",
    ColumnType.SHORT: "h",
    ColumnType.LONG: "i",
    ColumnType.LONGLONG: "q",
    ColumnType.FLOAT: "f",
    ColumnType.DOUBLE: "d",
}
"""The forms of numbers in the module ``struct``; those of unsigned integers are upper case."""

INTEGERS = "bhiq"

_PARTIAL_JSON = 1  # of binlog_row_value_options


class RowCode:
    """Writes the statements that read the images of a table's rows from ``data`` at ``at``."""

    def __init__(self, columns: Sequence[MappedColumn], charsets: Charsets, calendar: temporal.Calendar) -> None:
        self._columns = columns
        self._charsets = charsets
        self._calendar = calendar
        self._names: dict[str, Any] = {"integer": int.from_bytes, "ABSENT": UNAVAILABLE}

    def row_reader(self, before: int, after: int, *, partial: bool = False) -> Callable[[bytes], list[Any]]:
        """Return the function that reads all rows of an event whose images have these columns, as pairs.

        Args:
            partial: images after changes may have the changes of JSON documents (PARTIAL_UPDATE_ROWS).
        """
        lines = ["def run(data):", " found = []", " add = found.append", " at, end = 0, len(data)", " while at < end:"]
        images = []
        for name, present, known in (("before", before, 0), ("after", after, before)):
            if present:
                lines += self._image(name, present, known, partial=partial and name == "after")
            images.append(name if present else "None")
        return self._function([*lines, f"  add(({', '.join(images)}))", " return found"])

    def image_finder(self, before: int, after: int) -> Callable[[bytes], list[Any]]:
        """Return the function that finds the positions of the images; it raises IndexError if the last one is cut off."""
        lines = ["def run(data):", " found = []", " add = found.append", " at, end = 0, len(data)", " while at < end:"]
        for present in (before, after):
            if present:
                lines += self._passed_image(present)
        return self._function([*lines, " if at > end: raise IndexError", " return found"])

    def value_reader(self, index: int) -> Callable[[bytes, int], Any]:
        """Return the function that reads a column's value at a position."""
        lines = [f" {line}" for line in self._column(index)]
        return self._function(["def run(data, at):", *lines, f" return v{index}"])

    def _function(self, lines: Sequence[str]) -> Callable[..., Any]:
        names = dict(self._names)
        exec("\n".join(lines), names)  # noqa: S102 (code generated from the table map's types alone)
        function: Callable[..., Any] = names["run"]
        return function

    def _image(self, name: str, present: int, known: int, *, partial: bool) -> list[str]:
        """Return the statements for an image that has the columns ``present``; variables have the values of those ``known``."""
        shown = [index for index in range(len(self._columns)) if present >> index & 1]
        lines = [*(self._value_options() if partial else ()), *_nulls(len(shown))]
        documents = self._documents() if partial else []
        for bit, index in enumerate(shown):
            lines.append(f"  if nulls & {1 << bit}: v{index} = None")
            if index in documents:
                before = f"v{index}" if known >> index & 1 else "ABSENT"
                lines.append(f"  elif partial & {1 << documents.index(index)}:")
                lines += [f"   n = {_length('at', 4)}", "   at += 4 + n"]
                lines.append(f"   v{index} = {self._add(updated_json)}({before}, data[at - n:at])")
            lines.append("  else:")
            lines += [f"   {line}" for line in self._column(index)]
        values = "".join(f"v{index}," if (present | known) >> index & 1 else "ABSENT," for index in range(len(self._columns)))
        return [*lines, f"  {name} = ({values})"]

    def _documents(self) -> list[int]:
        return [index for index, column in enumerate(self._columns) if column.type == ColumnType.JSON]

    def _value_options(self) -> list[str]:
        """Return the statements that read which of all JSON columns have changes instead of documents."""
        size = (len(self._documents()) + 7) // 8
        return [
            f"  options, at = {self._add(read_length)}(data, at)",
            "  partial = 0",
            f"  if options & {_PARTIAL_JSON}:",
            f"   partial = integer(data[at:at + {size}], 'little')",
            f"   at += {size}",
        ]

    def _passed_image(self, present: int) -> list[str]:
        """Return the statements that add the position of an image that has the columns ``present``, and move behind it."""
        sizes = [value_size(column) for index, column in enumerate(self._columns) if present >> index & 1]
        lines = ["  add(at)", *_nulls(len(sizes)), "  if nulls:"]
        for bit, (fixed, has_length) in enumerate(sizes):
            length = f" + {_length('at', fixed)}" if has_length else ""
            lines.append(f"   if not nulls & {1 << bit}: at += {fixed}{length}")
        lines.append("  else:")
        passed = 0
        for fixed, has_length in sizes:
            if has_length:
                lines.append(f"   at += {passed + fixed} + {_length(f'at + {passed}', fixed)}")
            passed = 0 if has_length else passed + fixed
        return [*lines, f"   at += {passed}"]

    def _add(self, value: Any) -> str:
        name = f"f{len(self._names)}"
        self._names[name] = value
        return name

    def _column(self, index: int) -> list[str]:
        """Return the statements that read a column's value into its variable, and move behind it."""
        column = self._columns[index]
        size, has_length = value_size(column)
        if has_length:
            return [f"n = {_length('at', size)}", f"at += {size} + n", f"v{index} = {self._string(column, 'data[at - n:at]')}"]
        return [f"v{index} = {self._fixed(column, size)}", f"at += {size}"]

    def _fixed(self, column: MappedColumn, size: int) -> str:
        """Return the expression of a value of fixed size."""
        type_ = column.type
        if type_ in NUMBER_FORMS:
            unpack = struct.Struct(f"<{number_form(column)}").unpack_from
            return f"{self._add(unpack)}(data, at)[0]"
        if type_ == ColumnType.INT24:
            return f"integer(data[at:at + 3], 'little', signed={not column.unsigned})"
        if type_ == ColumnType.YEAR:
            return "data[at] and 1900 + data[at]"
        if type_ == ColumnType.NEWDECIMAL:
            return f"{self._add(decimal_reader(column.metadata >> 8, column.metadata & 0xFF))}(data, at)"
        if type_ in (ColumnType.ENUM, ColumnType.SET):
            return f"integer(data[at:at + {size}], 'little')"
        if type_ == ColumnType.BIT:
            return f"integer(data[at:at + {size}], 'big')"
        if type_ == ColumnType.TIMESTAMP:
            return "integer(data[at:at + 4], 'little') * 1000000"
        return f"{self._add(self._temporal(type_, column.metadata))}(data, at)"

    def _temporal(self, type_: int, precision: int) -> Callable[[bytes, int], Any]:
        if type_ in (ColumnType.DATE, ColumnType.NEWDATE):
            return temporal.date_reader(self._calendar)
        if type_ == ColumnType.DATETIME2:
            return temporal.datetime2_reader(precision, self._calendar)
        if type_ == ColumnType.TIMESTAMP2:
            return temporal.timestamp2_reader(precision)
        if type_ == ColumnType.TIME2:
            return temporal.time2_reader(precision)
        if type_ == ColumnType.DATETIME:
            return temporal.old_datetime_reader(self._calendar)
        return temporal.old_time_reader

    def _string(self, column: MappedColumn, data: str) -> str:
        """Return the expression of a string whose bytes are ``data``."""
        if is_compressed(column):
            data = f"{self._add(_uncompressed_value)}({data})"
        if column.type == ColumnType.JSON:
            return f"{self._add(json_text)}({data})"
        charset = charset_of(column, self._charsets)
        if charset is None:
            return data
        return f"{data}.decode('utf_8', 'replace')" if is_utf_8(charset) else f"{self._add(decoder(charset))}({data})"


def number_form(column: MappedColumn) -> str:
    form = NUMBER_FORMS[column.type]
    return form.upper() if column.unsigned and form not in "fd" else form


def _nulls(columns: int) -> list[str]:
    """Return the statements that read which columns of an image are null; the bits behind those of the columns are set."""
    size = (columns + 7) // 8
    return [f"  nulls = integer(data[at:at + {size}], 'little') & {(1 << columns) - 1}", f"  at += {size}"]


def _length(at: str, size: int) -> str:
    """Return the expression of a length of ``size`` bytes."""
    return f"data[{at}]" if size == 1 else f"integer(data[{at}:{at} + {size}], 'little')"


def _uncompressed_value(data: bytes) -> bytes:
    """Return the content of a value of a COMPRESSED column: header, length, and zlib's stream with or without its header."""
    if not data or data[0] == 0:
        return data[1:]
    return zlib.decompress(data[1 + (data[0] & 0x07) :], -zlib.MAX_WBITS if data[0] & 0x08 else zlib.MAX_WBITS)
