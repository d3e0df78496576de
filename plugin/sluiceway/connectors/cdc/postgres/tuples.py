"""Decodes the rows in pgoutput's messages (TupleData). No I/O.

Values stay text. A value that the log leaves out because it did not change (TOAST) is UNAVAILABLE.
"""

from __future__ import annotations

from typing import Any

from sluiceway.connectors.cdc.columns import UNAVAILABLE

TupleRow = list[Any]

_SHORT_TEXT = "t\0\0\0"
_NEXT_ROW = 3  # N, and the number of columns in two bytes


def read_row(data: bytes, at: int) -> TupleRow:
    """Return the row from a position to the end."""
    rows = _short_rows(data, at, 1)
    return _row(data, at)[0] if rows is None else rows[0]


def read_rows(data: bytes, at: int) -> tuple[TupleRow, TupleRow]:
    """Return an old row and the new one after it."""
    rows = _short_rows(data, at, 2)
    if rows is not None:
        return rows[0], rows[1]
    old, at = _row(data, at)
    return old, _row(data, at + 1)[0]


def _short_rows(data: bytes, at: int, wanted: int) -> list[TupleRow] | None:
    """Return the rows if no value has 256 bytes or more, else None. More than twice as fast as ``_row``.

    A short text begins with t, three zero bytes and its length. These four bytes are nowhere else: PostgreSQL's text has no zero
    bytes, and the other kinds of values have no content.
    """
    count = data[at] << 8 | data[at + 1]
    text = data[at + 2 :].decode("latin_1")
    before, *pieces = text.split(_SHORT_TEXT)
    rows: list[TupleRow] | None
    if before or len(pieces) != wanted * count:
        rows = _rows_with_gaps(before, pieces, count, wanted)
    elif wanted == 1:
        rows = [[piece[1:] for piece in pieces]]
    else:
        values = [piece[1:] for piece in pieces]
        values[count - 1] = values[count - 1][:-_NEXT_ROW]
        rows = [values[:count], values[count:]]
    if rows is None or text.isascii():
        return rows
    return [[_utf8(value) for value in row] for row in rows]


def _utf8(value: Any) -> Any:
    return value if value is None or value is UNAVAILABLE or value.isascii() else value.encode("latin_1").decode()


def _rows_with_gaps(before: str, pieces: list[str], count: int, wanted: int) -> list[TupleRow] | None:
    """Return rows of short texts between which there are other kinds of values; None if there is a longer text."""
    row: TupleRow = []
    rows = [row]
    gap = before
    for piece in (*pieces, ""):
        at = 0
        while at < len(gap):
            if len(row) == count and gap[at] == "N" and len(rows) < wanted:
                row = []
                rows.append(row)
                at += _NEXT_ROW
            elif gap[at] in "nu" and len(row) < count:
                row.append(None if gap[at] == "n" else UNAVAILABLE)
                at += 1
            else:
                return None
        if piece:
            end = ord(piece[0]) + 1
            row.append(piece[1:end])
            gap = piece[end:]
    return rows if len(row) == count and len(rows) == wanted else None


def _row(data: bytes, at: int) -> tuple[TupleRow, int]:
    count = int.from_bytes(data[at : at + 2], "big")
    at += 2
    row: TupleRow = []
    append = row.append
    for _ in range(count):
        kind = data[at]
        if kind == 0x74:  # t: text
            end = at + 5 + int.from_bytes(data[at + 1 : at + 5], "big")
            append(data[at + 5 : end].decode())
            at = end
        else:
            append(None if kind == 0x6E else UNAVAILABLE)
            at += 1
    return row, at
