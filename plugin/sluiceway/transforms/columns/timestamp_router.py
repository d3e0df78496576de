"""Columnar form of TimestampRouter's timestamps."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow.compute as pc

from sluiceway.api.columns import ColumnBatch, NotColumnar, RowFormReason, row_form
from sluiceway.java.dates.hybrid_calendar import DAY_MS
from sluiceway.transforms.columns.integers import floor_divide

_UNITS = (("S", 1), ("s", 1_000), ("m", 60_000), ("HhKka", 3_600_000))
_KNOWN = {letter for names, _ in _UNITS for letter in names} | set("yYMLdDEuFwWGzZX")
_MOST_TEXTS = 16


def common_text(batch: ColumnBatch, pattern: str, format_: Callable[[int], str]) -> str | None:
    """Return the text of the batch's timestamps, None for an empty batch. Raises NotColumnar if there are several texts.

    ``pattern`` is the pattern of ``format_``, which formats in UTC.
    """
    if not batch.count:
        return None
    if batch.timestamps is None or batch.timestamps.null_count:
        raise NotColumnar("records without a timestamp")
    unit = unit_of(pattern)
    starts = pc.unique(floor_divide(batch.timestamps, unit)).to_pylist()
    with row_form():
        texts = {format_(start * unit) for start in starts[:_MOST_TEXTS] if start is not None}
    if len(starts) > _MOST_TEXTS or len(texts) > 1:
        raise NotColumnar("timestamps for several topics", RowFormReason.PARTS)
    return texts.pop()


def unit_of(pattern: str) -> int:
    """Return the milliseconds within which all timestamps have the same text."""
    letters = set(re.sub("'[^']*'", "", pattern))
    found = next((unit for names, unit in _UNITS if letters & set(names)), DAY_MS)
    known = all(letter in _KNOWN or not letter.isalpha() for letter in letters)
    return found if known else 1
