"""Decodes the rows of many messages of pgoutput at once, into columns (TupleData). The columnar form of ``tuples``. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sluiceway.api import NotColumnar
from sluiceway.columns.text_arrays import values_between
from sluiceway.connectors.cdc.column_rows import RawColumn

if TYPE_CHECKING:
    from sluiceway.columns.text_arrays import Numbers

_TAG_AT, _ROW_AT = 5, 6  # behind the kind and the relation
_TEXT, _NULL, _UNCHANGED, _NEW = b"tnuN"


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """The rows of insert, update and delete messages of one relation.

    ``new`` has the rows after the changes, or before them for deletes, ``old`` those before updates for the messages at
    ``with_old``.
    """

    new: list[RawColumn]
    old: list[RawColumn]
    with_old: Numbers


def change_columns(messages: Sequence[bytes], width: int) -> ChangeColumns:
    """Decode messages whose rows have so many columns. Raises NotColumnar if one has another form."""
    data = b"".join(messages)
    content = np.frombuffer(data, np.uint8)
    lengths = np.fromiter(map(len, messages), np.int64, len(messages))
    starts = np.cumsum(lengths) - lengths
    reader = _Reader(data, content, width)
    kinds = content[starts]
    with_old = np.flatnonzero((kinds == ord("U")) & (content[starts + _TAG_AT] != _NEW))
    rows = starts + _ROW_AT
    old: list[RawColumn] = []
    if len(with_old):
        old, ends = reader.columns(rows[with_old])
        if (content[ends] != _NEW).any():
            raise NotColumnar("an update without a new row")
        rows[with_old] = ends + 1
    new, _ = reader.columns(rows)
    return ChangeColumns(new, old, with_old)


class _Reader:
    def __init__(self, data: bytes, content: np.ndarray[Any, np.dtype[np.uint8]], width: int) -> None:
        self._data = data
        self._content = content
        self._width = width

    def columns(self, at: Numbers) -> tuple[list[RawColumn], Numbers]:
        """Return the columns of the rows that begin at these positions, and where the rows end."""
        content = self._content
        if ((content[at].astype(np.int64) << 8 | content[at + 1]) != self._width).any():
            raise NotColumnar("rows with another number of columns")
        at = at + 2
        found = []
        for _ in range(self._width):
            column, at = self._column(at)
            found.append(column)
        return found, at

    def _column(self, at: Numbers) -> tuple[RawColumn, Numbers]:
        content = self._content
        kinds = content[at]
        is_text = kinds == _TEXT
        if is_text.all():
            begin = at + 5
            end = begin + self._lengths(at)
            return RawColumn(values_between(self._data, begin, end, pa.utf8())), end
        begin, end = at + 1, at + 1
        texts = at[is_text]
        begin[is_text] = texts + 5
        end = begin.copy()
        end[is_text] += self._lengths(texts)
        unchanged = kinds == _UNCHANGED
        unavailable = pa.array(unchanged) if unchanged.any() else None
        return RawColumn(values_between(self._data, begin, end, pa.utf8(), ~is_text), unavailable), end

    def _lengths(self, at: Numbers) -> Numbers:
        content = self._content
        parts = [content[at + index].astype(np.int64) for index in range(1, 5)]
        return parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | parts[3]
