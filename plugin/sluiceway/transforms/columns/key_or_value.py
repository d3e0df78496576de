"""Applies functions on arrays to the key or value column of a batch, with each transform's rule for nulls."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.api.columns import Column, ColumnBatch, ColumnTransform, NotColumnar, RowFormReason, row_form
from sluiceway.api.transform import KeyOrValueTransform
from sluiceway.columns.arrow_schema import nullable
from sluiceway.columns.constants import nulls as nulls_of
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.util.columnar import ColumnFunction

_Nulls = tuple[Schema | None, Any]


def column_transform(
    transform: KeyOrValueTransform, schema: Schema, changed: Schema, function: ColumnFunction
) -> ColumnTransform:
    """Return the columnar form for keys or values of ``schema``; ``function`` makes arrays of the ``changed`` schema of them."""
    part, nulls = transform.part, result_for_null(transform, schema)

    def transform_part(batch: ColumnBatch) -> ColumnBatch:
        values = (batch.key if part == "key" else batch.value).values
        assert values is not None  # noqa: S101 (a column with a schema has values)
        if not values.null_count or (nulls is not None and nulls[0] == changed):
            column = Column(changed, _checked(changed, function(values, batch)))
        else:
            column = _all_null(values, nulls)
        return dataclasses.replace(batch, key=column) if part == "key" else dataclasses.replace(batch, value=column)

    return transform_part


def schemaless_transform(transform: KeyOrValueTransform, *, reads_records: bool) -> ColumnTransform:
    """Return the columnar form for keys or values without a schema, which applies the row form's function to each value.

    ``reads_records`` says that the function uses the record, not only the value.
    """
    part, nulls = transform.part, result_for_null(transform, None)

    def transform_part(batch: ColumnBatch) -> ColumnBatch:
        objects = (batch.key if part == "key" else batch.value).objects
        if objects is None:
            if nulls == (None, None):
                return batch
            objects = [None] * batch.count
        records = _records(batch) if reads_records else repeat(None)
        with row_form():
            column = Column(None, None, _each(transform, objects, records))
        return dataclasses.replace(batch, key=column) if part == "key" else dataclasses.replace(batch, value=column)

    return transform_part


def _each(transform: KeyOrValueTransform, objects: Sequence[Any], records: Iterable[Any]) -> list[Any]:
    """Return the transformed values. Raises NotColumnar if one gets a schema."""
    if all(value is None for value in objects):
        return [_null_of(transform) for _ in objects]
    schema, function, _ = transform.resolve(None)
    if schema is not None:
        raise NotColumnar("a schema for values without one", RowFormReason.TRANSFORM)
    if None in objects:
        pairs = zip(objects, records, strict=False)
        return [_null_of(transform) if value is None else function(value, record) for value, record in pairs]
    return list(map(function, objects, records))


def _null_of(transform: KeyOrValueTransform) -> Any:
    schema, value = transform.on_null(None)
    if schema is not None:
        raise NotColumnar("a schema for null without one", RowFormReason.TRANSFORM)
    return value


def _records(batch: ColumnBatch) -> Iterator[SinkRecord | SourceRecord]:
    """Yield one record with the topic, partition, offset and timestamp of each of the batch's records in turn."""
    timestamps: Iterable[Any] = repeat(None) if batch.timestamps is None else batch.timestamps.to_pylist()
    if batch.offsets is None:
        source = SourceRecord({}, {}, batch.topic, None, kafka_partition=batch.partition)
        for _, source.timestamp in zip(range(batch.count), timestamps, strict=False):
            yield source
        return
    sink = SinkRecord(batch.topic, batch.partition or 0, 0, None)
    offsets: list[Any] = batch.offsets.to_pylist()
    for sink.kafka_offset, sink.timestamp in zip(offsets, timestamps, strict=False):
        yield sink


def result_for_null(transform: KeyOrValueTransform, schema: Schema | None) -> _Nulls | None:
    """Return the schema and value that a transform returns for null, or None if it raises an error."""
    try:
        return transform.on_null(schema)
    except Exception:  # noqa: BLE001 (the row form raises it for the record)
        return None


def _checked(schema: Schema, values: AnyArray) -> AnyArray:
    if values.null_count and not nullable(schema):
        raise NotColumnar("null without an optional schema")
    return values


def _all_null(values: AnyArray, nulls: _Nulls | None) -> Column:
    if nulls is None or nulls[1] is not None or values.null_count < len(values):
        raise NotColumnar("nulls get another schema than values, or an error")
    schema = nulls[0]
    return Column(schema, None if schema is None else nulls_of(schema, len(values)))
