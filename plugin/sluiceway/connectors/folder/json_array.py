"""The format of files that are one JSON array, each of whose elements is a record. No I/O."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from sluiceway.connectors.folder.formats import BOM, Columns, Records, Row, byte_order_mark, shortened
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_BLANKS = b" \t\r\n"
_END = re.compile(rb"(?:(?:\[[ \t\r\n]*)?\])?[ \t\r\n]*")
_OPENING, _CLOSING, _QUOTE, _NEWLINE, _COMMA = 1, -1, 2, 3, 4
_KINDS = {b"[{": _OPENING, b"]}": _CLOSING, b'"': _QUOTE, b"\n": _NEWLINE, b",": _COMMA}
_CODES = bytes(next((kind % 256 for marks, kind in _KINDS.items() if byte in marks), 0) for byte in range(256))


class JsonArrayFormat:
    """A file that is a JSON array."""

    def begin(self, data: bytes, *, final: bool) -> tuple[int, Records] | None:
        content = data[byte_order_mark(data) :].lstrip(_BLANKS)
        if not final and (not content or BOM.startswith(content)):
            return None
        if not content.startswith(b"["):
            raise ConnectError(f"the file is no JSON array, which begins with a [, but has {shortened(content)}")
        return len(data) - len(content), JsonArrayRecords()


class _Scan(NamedTuple):
    """The positions of what follows elements, a comma or the bracket that closes the array, and whether the latter is there."""

    ends: list[int]
    is_closed: bool


class JsonArrayRecords(Records):
    """The elements of an array, as values without a schema.

    The data begins with the ``[`` of the array, or with what follows an element: a comma or the ``]``. So each element has one
    byte before it, and is followed by what its position is before. As strings have no newlines in JSON, a newline ends one: a
    missing quote damages the elements of its line only.
    """

    has_lines = False

    def __init__(self) -> None:
        self._known: tuple[bytes, list[int]] = b"", []  # the complete bytes that were looked at last, and the ends of elements

    def complete(self, data: bytes, *, final: bool) -> int:
        if final:
            return len(data)
        ends = _scan(data).ends
        length = ends[-1] if ends else 0
        self._known = data[:length], ends
        return length

    def _scanned(self, data: bytes) -> _Scan:
        known, ends = self._known
        if known.startswith(data):
            return _Scan(ends[: bisect.bisect_left(ends, len(data))], is_closed=not data)
        return _scan(data)

    def rows(self, data: bytes) -> Iterator[Row]:
        start = 0
        ends, is_closed = self._scanned(data)
        for end in ends if is_closed else [*ends, len(data)]:
            try:
                yield Row(orjson.loads(data[start + 1 : end]), end)
            except orjson.JSONDecodeError as error:
                yield Row(None, end, f"an element is not JSON: {error}: {shortened(data[start + 1 : end])}")
            start = end
        if is_closed and not _END.fullmatch(data, start):
            yield Row(
                None, len(data), f"the array must end with a ] and nothing after it, but not with {shortened(data[start:])}"
            )

    def columns(self, data: bytes, most: int) -> Columns | None:
        ends, is_closed = self._scanned(data)
        if not is_closed:
            ends.append(len(data))
        ends = ends[:most]
        if not ends:
            return None
        try:
            objects: list[Any] = orjson.loads(b"[%b]" % data[1 : ends[-1]])
        except orjson.JSONDecodeError:
            return None
        return Columns(len(ends), ends[-1], objects=objects) if len(objects) == len(ends) else None

    def unfinished(self, data: bytes) -> str:
        return "" if self._scanned(data).is_closed else "the file ends before the ] of its array"


def _scan(data: bytes) -> _Scan:
    """Find the ends of the elements by counting brackets outside strings."""
    import numpy as np

    if data[:1] not in (b"[", b","):
        return _Scan([], is_closed=True)
    codes = np.frombuffer(data.translate(_CODES), np.int8)
    marks = 1 + np.flatnonzero(codes[1:])
    kinds = codes[marks]
    quotes = kinds == _QUOTE
    if b"\\" in data:
        quotes &= ~_are_escaped(data, marks)
    # Whether a mark is in a string is told by the number of quotes before it on its line.
    counts = np.cumsum(quotes)
    outside = (counts - np.maximum.accumulate(np.where(kinds == _NEWLINE, counts, 0))) % 2 == 0
    depths = np.cumsum(np.where(outside & (abs(kinds) == _OPENING), kinds, 0), dtype=np.int64)
    closing = np.flatnonzero(depths < 0)[:1]
    ends = np.flatnonzero(outside & (kinds == _COMMA) & (depths == 0))
    if len(closing):
        ends = np.append(ends[ends < closing], closing)
        if len(ends) == 1 and data.startswith(b"[") and not data[1 : marks[closing[0]]].strip(_BLANKS):
            ends = ends[:0]  # of an empty array
    return _Scan(marks[ends].tolist(), is_closed=len(closing) > 0)


def _are_escaped(data: bytes, marks: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return whether an odd number of backslashes is before each mark."""
    import numpy as np

    others = np.flatnonzero(np.frombuffer(data, np.uint8) != ord("\\"))
    before = others[np.searchsorted(others, marks) - 1]  # the last byte before a mark that is no backslash
    are_escaped: npt.NDArray[np.bool_] = (marks - before) % 2 == 0
    return are_escaped
