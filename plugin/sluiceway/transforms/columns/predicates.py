"""Columnar forms of the predicates."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.api.columns import ColumnBatch
from sluiceway.columns.batches import not_null
from sluiceway.transforms.columns.integers import number


def same_for_all(batch: ColumnBatch, result: bool) -> pa.BooleanArray:
    """Return the same result for all records."""
    return pa.repeat(pa.scalar(result), batch.count)


def tombstones(batch: ColumnBatch) -> pa.BooleanArray:
    """Return True for records with a null value."""
    _, values, objects = batch.value
    if objects is not None:
        return pc.invert(not_null(objects))
    return same_for_all(batch, True) if values is None else values.is_null()


def timestamps_between(batch: ColumnBatch, start: int, end: int) -> pa.BooleanArray:
    """Return True for records with a timestamp from ``start`` to ``end``, which is not included."""
    if batch.timestamps is None:
        return same_for_all(batch, False)
    after_start: Any = pc.greater_equal(batch.timestamps, number(start))
    before_end: Any = pc.less(batch.timestamps, number(end))
    return cast("pa.BooleanArray", pc.and_(after_start, before_end).fill_null(False))
