"""Columnar form of InsertField."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from sluiceway.api.columns import ColumnBatch, NotColumnar, RowFormReason
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.columns.constants import repeated
from sluiceway.data import Field, Schema
from sluiceway.transforms.columns.structs import copied, copies, struct_array

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.util.columnar import ColumnFunction

    Reader = Callable[[ColumnBatch, Schema], AnyArray]


def inserting(
    fields: Sequence[Field], changed: Schema, replace: bool, attributes: Sequence[str], constants: Sequence[str]
) -> ColumnFunction:
    """Return the function that adds attributes of the records, then constants, after the ``fields`` of structs."""
    kept, added = copies(fields, changed.fields), changed.fields[len(fields) :]
    readers = [*(_READERS[attribute] for attribute in attributes), *map(_constant, constants)]

    def insert(structs: AnyArray, batch: ColumnBatch) -> AnyArray:
        inserted = [read(batch, field.schema) for read, field in zip(readers, added, strict=True)]
        return struct_array(changed, [*copied(structs, kept, replace), *inserted], structs)

    return insert


def _topic(batch: ColumnBatch, schema: Schema) -> AnyArray:
    return repeated(schema, batch.topic, batch.count)


def _partition(batch: ColumnBatch, schema: Schema) -> AnyArray:
    return repeated(schema, batch.partition, batch.count)


def _offset(batch: ColumnBatch, schema: Schema) -> AnyArray:
    if batch.offsets is None:
        raise NotColumnar("records of a source have no offset", RowFormReason.TRANSFORM)
    return batch.offsets


def _timestamp(batch: ColumnBatch, schema: Schema) -> AnyArray:
    timestamps = pa.nulls(batch.count, pa.int64()) if batch.timestamps is None else batch.timestamps
    if timestamps.null_count and not schema.optional:
        raise NotColumnar("null in a required field")
    return timestamps.cast(arrow_type(schema))


def _constant(text: str) -> Reader:
    return lambda batch, schema: repeated(schema, text, batch.count)


_READERS: dict[str, Reader] = {
    "topic": _topic,
    "kafka_partition": _partition,
    "kafka_offset": _offset,
    "timestamp": _timestamp,
}
