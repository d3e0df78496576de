"""Polls JDBC source tasks as rows and as columns, and compares what they return."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sluiceway.api import Column, ColumnBatch, EncodedRecords, SourceColumns, SourceRecord
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.testing import MemoryOffsets
from sluiceway.testing.running import RunningSource

GIVE_UP_SECONDS = 30.0
Polled = list[Sequence[SourceRecord] | SourceColumns]


def polled(config: Mapping[str, str], records: int, *, columns: bool) -> Polled:
    """Return what a task's polls return until there are so many records."""
    found: Polled = []
    until = time.monotonic() + GIVE_UP_SECONDS
    with RunningSource(JdbcSourceConnector, config, offsets=MemoryOffsets()) as source:
        [task] = source.tasks
        while sum(map(len, found)) < records:
            assert time.monotonic() < until, f"{sum(map(len, found))} of {records} records"
            batch = source.call(task.poll_columns if columns else task.poll)
            if batch:
                assert not isinstance(batch, EncodedRecords)
                found.append(batch)
    return found


def columns_like_rows(config: Mapping[str, str], records: int) -> int:
    """Assert that both forms of a source return the same records; return how many came as columns."""
    rows, columns = polled(config, records, columns=False), polled(config, records, columns=True)
    assert list(map(len, columns)) == list(map(len, rows))
    count = 0
    for as_rows, batch in zip(rows, columns, strict=True):
        assert not isinstance(as_rows, SourceColumns)
        if isinstance(batch, SourceColumns):
            last = as_rows[-1]
            assert (batch.source_partition, batch.source_offset) == (last.source_partition, last.source_offset)
            check_columns(batch.batch, as_rows)
            count += len(batch)
            batch = batch.records()
        assert list(map(_parts, batch)) == list(map(_parts, as_rows))
    return count


def check_columns(batch: ColumnBatch, records: Sequence[SourceRecord]) -> None:
    """Assert that a batch has the topic, keys and values of records."""
    assert {(record.topic, record.kafka_partition, record.timestamp) for record in records} == {(batch.topic, None, None)}
    assert batch.timestamps is None
    assert _encoded(batch.topic, batch.key, batch.count) == _messages(records, key=True)
    assert _encoded(batch.topic, batch.value, batch.count) == _messages(records, key=False)


def _encoded(topic: str, column: Column, count: int) -> list[bytes | None]:
    if column.values is None:
        return [None] * count
    column.values.validate(full=True)
    encode = JsonConverter().column_encoder(topic, column.schema)
    assert encode is not None
    return encode(column.values).to_pylist()


def _messages(records: Sequence[SourceRecord], *, key: bool) -> list[bytes | None]:
    converter = JsonConverter()
    if key:
        return [r.key_schema and converter.from_connect_data(r.topic, r.key_schema, r.key) for r in records]
    return [converter.from_connect_data(r.topic, r.value_schema, r.value) for r in records]


def _parts(record: SourceRecord) -> tuple[Any, ...]:
    schemas = record.key_schema, record.value_schema
    return (record.topic, record.source_partition, record.source_offset, *schemas, repr(record.key), repr(record.value))
