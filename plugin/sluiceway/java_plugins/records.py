"""Converts records from and to the rows in which they cross to the plugin host. ``Rows.java`` is the other side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.api.transform import ConnectRecord
from sluiceway.java_plugins.acknowledgements import SentRecords
from sluiceway.java_plugins.values import Values

MessageRow = tuple[int, tuple[int, int], "bytes | None", "bytes | None", "list[tuple[str, bytes | None]] | None"]


def rows_of(values: Values, records: Sequence[ConnectRecord], *, originals: bool = False) -> list[list[Any]]:
    """Return the rows of records, all of them a source's or a sink's. ``originals`` adds the messages of sink records."""
    return [row_of(values, record, originals=originals) for record in records]


def row_of(values: Values, record: ConnectRecord, *, originals: bool = False) -> list[Any]:
    """Return the row of one record."""
    row = [
        record.topic,
        record.kafka_partition,
        *values.plain(record.key_schema, record.key),
        *values.plain(record.value_schema, record.value),
        record.timestamp,
        values.plain_headers(record.headers),
    ]
    if isinstance(record, SourceRecord):
        row += [
            None if record.source_partition is None else values.plain(None, record.source_partition)[1],
            None if record.source_offset is None else values.plain(None, record.source_offset)[1],
        ]
        return row
    row += [
        record.kafka_offset,
        record.timestamp_type,
        record.original_topic,
        record.original_kafka_partition,
        record.original_kafka_offset,
        _message_row(getattr(record, "original", None)) if originals else None,
    ]
    return row


def record_of(values: Values, row: Sequence[Any], before: ConnectRecord) -> ConnectRecord:
    """Return the record of a row that Java's transforms have made of ``before``."""
    topic, partition, key_number, key, value_number, value, timestamp, headers, position = row
    key_schema, key = values.value(key_number, key)
    value_schema, value = values.value(value_number, value)
    record = before.with_data(key_schema, key, value_schema, value)
    record.topic = topic
    record.kafka_partition = partition
    record.timestamp = timestamp
    record.headers = values.headers(headers) if headers else ()
    if position is not None and isinstance(record, SourceRecord):
        source_partition, source_offset = values.value(-1, position)[1]
        record.source_partition, record.source_offset = source_partition, source_offset
    return record


class JavaSourceRecord(SourceRecord):
    """A record that a Java source task has returned, with its index in the batch. ``sent`` collects the places of the batch."""

    __slots__ = ("index", "sent")

    index: int
    sent: SentRecords | None


def source_records(values: Values, rows: Sequence[Sequence[Any]], sent: SentRecords | None) -> list[JavaSourceRecord]:
    """Return the records of a batch that a Java source task has returned."""
    records: list[JavaSourceRecord] = []
    partition: Any = None
    for index, row in enumerate(rows):
        topic, kafka_partition, key_number, key, value_number, value, timestamp, headers, position = row
        key_schema, key = values.value(key_number, key)
        value_schema, value = values.value(value_number, value)
        source_partition, source_offset = values.value(-1, position)[1]
        if source_partition != partition:  # records of one partition share an object, as collecting offsets is faster then
            partition = source_partition
        record = JavaSourceRecord(
            partition, source_offset, topic, value, value_schema, key, key_schema, kafka_partition, timestamp
        )
        if headers:
            record.headers = values.headers(headers)
        record.index, record.sent = index, sent
        records.append(record)
    return records


def _message_row(message: Any) -> MessageRow | None:
    if message is None:
        return None
    return message.offset, (message.timestamp_type, message.timestamp), message.key, message.value, list(message.headers) or None


def sink_record_of(values: Values, row: Sequence[Any]) -> SinkRecord:
    """Return the record of a row that a Java sink task has made itself. ``row`` ends with its offset."""
    topic, partition, key_number, key, value_number, value, timestamp, headers, (offset,) = row
    key_schema, key = values.value(key_number, key)
    value_schema, value = values.value(value_number, value)
    return SinkRecord(topic, partition, offset, value, value_schema, key, key_schema, timestamp, 0, values.headers(headers))
