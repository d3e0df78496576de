"""Decodes MySQL's binary JSON to text without blanks. MariaDB stores JSON as text and does not need this. No I/O."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator

from sluiceway.connectors.cdc.mysql.binlog.decimals import decimal_reader
from sluiceway.connectors.cdc.mysql.binlog.table_map import ColumnType
from sluiceway.errors import ConnectError

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = range(5)
_INT16, _UINT16, _INT32, _UINT32, _INT64, _UINT64, _DOUBLE, _STRING = range(5, 13)
_OPAQUE = 15
_NUMBERS = {_INT16: "<h", _UINT16: "<H", _INT32: "<i", _UINT32: "<I", _INT64: "<q", _UINT64: "<Q", _DOUBLE: "<d"}
_LITERALS = {0: "null", 1: "true", 2: "false"}
_INLINE_SMALL = frozenset({_LITERAL, _INT16, _UINT16})
_INLINE_LARGE = _INLINE_SMALL | {_INT32, _UINT32}


def json_text(data: bytes) -> str:
    """Return the JSON text of a binary document; ``{}`` for the empty value of a column that was added without a default."""
    return _Document(len(data)).value(data[0], data, 1) if data else "{}"


class _Document:
    """Reads the values of a document of ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self._left = size  # each value takes a byte of its own at least

    def value(self, kind: int, data: bytes, at: int) -> str:
        self._left -= 1
        if self._left < 0:
            raise ConnectError("A JSON document in the binary log has values that contain each other. The binary log is damaged.")
        if kind in (_SMALL_OBJECT, _LARGE_OBJECT):
            return "{" + ",".join(self._members(data[at:], large=kind == _LARGE_OBJECT)) + "}"
        if kind in (_SMALL_ARRAY, _LARGE_ARRAY):
            return "[" + ",".join(self._elements(data[at:], large=kind == _LARGE_ARRAY)) + "]"
        if kind == _LITERAL:
            return _LITERALS[data[at]]
        if kind in _NUMBERS:
            (number,) = struct.unpack_from(_NUMBERS[kind], data, at)
            return str(number)
        if kind == _STRING:
            length, at = _variable_length(data, at)
            return _quoted(data[at : at + length].decode("utf_8", "replace"))
        if kind == _OPAQUE:
            length, start = _variable_length(data, at + 1)
            return _opaque(data[at], data[start : start + length])
        raise ConnectError(f"A JSON document in the binary log has the unknown type {kind}.")

    def _members(self, data: bytes, *, large: bool) -> Iterator[str]:
        size = 4 if large else 2
        count = int.from_bytes(data[:size], "little")
        keys = 2 * size
        entries = keys + count * (size + 2)
        for index in range(count):
            entry = keys + index * (size + 2)
            offset = int.from_bytes(data[entry : entry + size], "little")
            length = int.from_bytes(data[entry + size : entry + size + 2], "little")
            key = data[offset : offset + length].decode("utf_8", "replace")
            yield f"{_quoted(key)}:{self._entry(data, entries + index * (size + 1), size)}"

    def _elements(self, data: bytes, *, large: bool) -> Iterator[str]:
        size = 4 if large else 2
        count = int.from_bytes(data[:size], "little")
        for index in range(count):
            yield self._entry(data, 2 * size + index * (size + 1), size)

    def _entry(self, data: bytes, at: int, size: int) -> str:
        """Return the value of an entry, which holds small values itself and the offset of others."""
        kind = data[at]
        if kind in (_INLINE_LARGE if size == 4 else _INLINE_SMALL):
            return self.value(kind, data, at + 1)
        return self.value(kind, data, int.from_bytes(data[at + 1 : at + 1 + size], "little"))


def _variable_length(data: bytes, at: int) -> tuple[int, int]:
    """Return a length of 7 bits a byte, lowest first, and the position after it."""
    length = shift = 0
    while True:
        byte = data[at]
        at += 1
        length |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return length, at
        shift += 7


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _opaque(type_: int, data: bytes) -> str:
    if type_ == ColumnType.NEWDECIMAL:
        precision, scale = data[0], data[1]
        unscaled = decimal_reader(precision, scale)(data, 2)
        digits = str(abs(unscaled)).rjust(scale + 1, "0")
        text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
        return f"-{text}" if unscaled < 0 else text
    if type_ in (ColumnType.DATE, ColumnType.DATETIME, ColumnType.TIMESTAMP):
        return _quoted(_datetime(int.from_bytes(data[:8], "little"), date_only=type_ == ColumnType.DATE))
    if type_ == ColumnType.TIME:
        return _quoted(_time(int.from_bytes(data[:8], "little", signed=True)))
    return _quoted(base64.b64encode(data).decode())


def _datetime(packed: int, *, date_only: bool) -> str:
    micros, packed = packed & 0xFFFFFF, packed >> 24
    year, month = divmod(packed >> 22, 13)
    date = f"{year:04}-{month:02}-{packed >> 17 & 31:02}"
    if date_only:
        return date
    return f"{date} {packed >> 12 & 31:02}:{packed >> 6 & 63:02}:{packed & 63:02}" + _fraction(micros)


def _time(packed: int) -> str:
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    micros, packed = packed & 0xFFFFFF, packed >> 24
    return f"{sign}{packed >> 12 & 1023:02}:{packed >> 6 & 63:02}:{packed & 63:02}" + _fraction(micros)


def _fraction(micros: int) -> str:
    return f".{micros:06}" if micros else ""
