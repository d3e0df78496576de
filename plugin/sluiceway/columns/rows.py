"""Converts between sink records and column batches, where only one side of the chain has a columnar form."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from sluiceway.api import SinkRecord
from sluiceway.api.columns import Column, ColumnBatch, NotColumnar
from sluiceway.columns.arrays import to_array, to_values
from sluiceway.data import Schema


def column_values(column: Column, count: int) -> list[Any]:
    """Return the Connect values of a column of ``count`` records."""
    if column.objects is not None:
        return list(column.objects)
    return [None] * count if column.values is None or column.schema is None else to_values(column.schema, column.values)


def column_of(schema: Schema | None, values: Sequence[Any]) -> Column:
    """Return values of one schema as a column. Raises NotColumnar."""
    if schema is not None:
        return Column(schema, to_array(schema, values))
    return Column(None, None, None if all(value is None for value in values) else values)


def sink_records(batch: ColumnBatch) -> list[SinkRecord]:
    """Return the records of a sink's batch."""
    assert batch.offsets is not None  # noqa: S101 (a sink's batch has offsets)
    keys, values = column_values(batch.key, batch.count), column_values(batch.value, batch.count)
    offsets: list[Any] = batch.offsets.to_pylist()
    timestamps = [None] * batch.count if batch.timestamps is None else batch.timestamps.to_pylist()
    topic, partition = batch.original_topic or batch.topic, batch.partition or 0
    key_schema, value_schema, timestamp_type = batch.key.schema, batch.value.schema, batch.timestamp_type
    records = [
        SinkRecord(topic, partition, offset, value, value_schema, key, key_schema, timestamp, timestamp_type)
        for offset, value, key, timestamp in zip(offsets, values, keys, timestamps, strict=True)
    ]
    if batch.topic != topic:
        for record in records:
            record.topic = batch.topic
    return records


def column_batches(records: Sequence[SinkRecord]) -> list[ColumnBatch | list[SinkRecord]]:
    """Return records as batches in the same order. Records that have no columnar form stay lists.

    These are records with headers, or with a partition or offset that a transform changed.
    """
    batches: list[ColumnBatch | list[SinkRecord]] = []
    for run in _runs(records):
        batch = _batch(run)
        if isinstance(batch, list) and batches and isinstance(batches[-1], list):
            batches[-1] += batch
        else:
            batches.append(batch)
    return batches


def _runs(records: Sequence[SinkRecord]) -> list[list[SinkRecord]]:
    return [list(run) for _, run in groupby(records, _batch_key)]


def _batch_key(record: SinkRecord) -> tuple[object, ...]:
    """Return what the records of a batch have in common."""
    changed = record.kafka_partition != record.original_kafka_partition or record.kafka_offset != record.original_kafka_offset
    return (
        bool(record.headers) or changed,
        record.topic,
        record.original_topic,
        record.kafka_partition,
        record.timestamp_type,
        record.key_schema,
        record.value_schema,
        record.key_schema is None and record.key is not None,
        record.value_schema is None and record.value is not None,
    )


def _batch(records: list[SinkRecord]) -> ColumnBatch | list[SinkRecord]:
    """Return successive records with the same batch key as a batch, or as they are."""
    first = records[0]
    if _batch_key(first)[0]:
        return records
    try:
        key = column_of(first.key_schema, [record.key for record in records])
        value = column_of(first.value_schema, [record.value for record in records])
    except NotColumnar:
        return records
    timestamps = [record.timestamp for record in records]
    return ColumnBatch(
        topic=first.topic,
        partition=first.kafka_partition,
        key=key,
        value=value,
        count=len(records),
        timestamps=None if all(timestamp is None for timestamp in timestamps) else pa.array(timestamps, pa.int64()),
        timestamp_type=first.timestamp_type,
        offsets=pa.array([record.kafka_offset for record in records], pa.int64()),
        original_topic=first.original_topic,
    )
