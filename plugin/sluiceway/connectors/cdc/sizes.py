"""Estimates the memory of records, so that batches of large rows are short. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from sluiceway.api import EncodedRecords, SourceRecord
from sluiceway.data import Struct

_LARGEST_ROW = 1 << 14  # bytes on average, above which columns save nothing and need memory


def fits_columns(size: int, rows: int) -> bool:
    """Return True if rows of so many bytes in all are small enough to be encoded in columns."""
    return size <= _LARGEST_ROW * rows


def size_of(record: SourceRecord) -> int:
    """Return about the number of bytes of a record's value: of its texts and bytes, which are what can be large."""
    return _size(record.value)


def bounded(records: Iterator[SourceRecord], most: int, most_bytes: int) -> list[SourceRecord]:
    """Return the next records: at most so many, and not many more bytes."""
    found: list[SourceRecord] = []
    for record in records:
        found.append(record)
        most_bytes -= _size(record.value)
        if len(found) >= most or most_bytes <= 0:
            break
    return found


def next_part(
    items: Iterator[SourceRecord | EncodedRecords], most: int, most_bytes: int
) -> tuple[list[SourceRecord], EncodedRecords | None]:
    """Return the next records: single ones, at most so many and not many more bytes, then a batch that comes before these."""
    found: list[SourceRecord] = []
    for item in items:
        if isinstance(item, EncodedRecords):
            return found, item
        found.append(item)
        most_bytes -= _size(item.value)
        if len(found) >= most or most_bytes <= 0:
            break
    return found, None


def _size(value: object) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    if not isinstance(value, Struct):
        return 0
    rows = (row for row in value.values_ if isinstance(row, Struct))
    return sum(len(each) for row in rows for each in row.values_ if isinstance(each, (str, bytes)))
