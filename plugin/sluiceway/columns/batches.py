"""Selects records of column batches. Offsets and timestamps stay with their records."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluiceway.api.columns import Column, ColumnBatch
from sluiceway.columns.constants import nulls

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.data import Schema


def sliced(batch: ColumnBatch, start: int, end: int) -> ColumnBatch:
    """Return the records ``start`` to ``end`` (exclusive) of a batch, without copying them."""
    return _selected(batch, end - start, lambda values: values[start:end], lambda objects: objects[start:end])


def filtered(batch: ColumnBatch, mask: pa.BooleanArray) -> ColumnBatch:
    """Return the records for which the mask is True."""

    def select_objects(objects: Sequence[Any]) -> list[Any]:
        return list(compress(objects, mask.to_pylist()))

    return _selected(batch, mask.true_count, lambda values: values.filter(mask), select_objects)


def not_null(objects: Sequence[Any]) -> pa.BooleanArray:
    """Return True for each value that is not null."""
    return pa.array([value is not None for value in objects], pa.bool_())


def empty_batch(key_schema: Schema | None, value_schema: Schema | None) -> ColumnBatch:
    """Return a sink's batch of these schemas without records. Raises NotColumnar for schemas that have no Arrow type."""
    key, value = (Column(schema, None if schema is None else nulls(schema, 0)) for schema in (key_schema, value_schema))
    return ColumnBatch(topic="", partition=0, key=key, value=value, count=0, offsets=pa.nulls(0, pa.int64()))


def _selected(
    batch: ColumnBatch,
    count: int,
    select: Callable[[AnyArray], AnyArray],
    select_objects: Callable[[Sequence[Any]], Sequence[Any]],
) -> ColumnBatch:
    def of(values: AnyArray | None) -> AnyArray | None:
        return None if values is None else select(values)

    def selected(column: Column) -> Column:
        objects = None if column.objects is None else select_objects(column.objects)
        return Column(column.schema, of(column.values), objects)

    return dataclasses.replace(
        batch,
        key=selected(batch.key),
        value=selected(batch.value),
        count=count,
        timestamps=of(batch.timestamps),
        offsets=of(batch.offsets),
    )
