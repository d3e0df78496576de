"""Converts Kafka messages to sink records."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluiceway.api import ColumnBatch, SinkRecord, TopicPartition
from sluiceway.data import Schema
from sluiceway.data.schema_advice import advised
from sluiceway.errors import ConnectError
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.runtime.errors.errant_record_reporter import InternalSinkRecord, consumer_record_of, with_originals
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.task_converters import Converters
from sluiceway.runtime.transforms.batch_transform import transform_batch
from sluiceway.runtime.transforms.transformation_chain import TransformationChain

Decode = Callable[[bytes | None], tuple[Schema | None, Any]]

_NO_TIMESTAMP = -1  # of a message whose producer set none
_PARTS = {0: "key", 1: "value"}  # by stage
_STAGES = (Stage.KEY_CONVERTER, Stage.VALUE_CONVERTER, Stage.HEADER_CONVERTER)


@dataclass(slots=True)
class SinkBatch:
    """Records for one ``put``, or ``columns`` of one topic partition for one ``put_columns``.

    ``starts`` are the first offsets of each partition, ``ends`` the next ones to read. ``failure`` is the error of the first
    message that could not be converted or transformed. The batch ends before it.
    """

    records: Sequence[SinkRecord] = ()
    columns: ColumnBatch | None = None
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    failure: Exception | Interrupted | None = None

    def __len__(self) -> int:
        return len(self.records) if self.columns is None else self.columns.count

    def transform(self, chain: TransformationChain[SinkRecord], tolerance: RetryWithToleranceOperator) -> None:
        """Replace the records by the transformed ones. Offsets remain those the records were read from (KIP-793)."""
        records = self.records
        batch = transform_batch(chain, records, tolerance, describe=_describe, original=consumer_record_of)
        keep_originals = tolerance.settings.reports_errors and batch.records is not records
        self.records = with_originals(batch, records) if keep_originals else batch.records
        if batch.failure is not None:
            self.failure = batch.failure
            for record in reversed(records[batch.taken :]):  # the first one of each partition is the next to read
                self.ends[TopicPartition(record.original_topic, record.original_kafka_partition)] = record.original_kafka_offset

    def drop(self, partitions: frozenset[TopicPartition]) -> None:
        """Drop the records and offsets of partitions that are no longer assigned."""
        if self.columns is not None and not partitions.isdisjoint(self.starts):
            self.columns = None
        self.records = [record for record in self.records if record.original_topic_partition not in partitions]
        for partition in partitions:
            self.starts.pop(partition, None)
            self.ends.pop(partition, None)


class SinkRecordConverter:
    """Converts messages to sink records. Calls ``new_topic`` with each topic at its first message."""

    def __init__(
        self,
        converters: Converters,
        tolerance: RetryWithToleranceOperator,
        new_topic: Callable[[str], None],
        *,
        needs_schemas: bool = False,
    ) -> None:
        self._needs_schemas = needs_schemas
        self._converters = converters
        self._tolerance = tolerance
        self._new_topic = new_topic
        self._new_record: type[SinkRecord] = InternalSinkRecord if tolerance.settings.reports_errors else SinkRecord
        self._decoders: dict[str, tuple[Decode, Decode]] = {}

    def convert(self, messages: Sequence[ConsumedMessage]) -> SinkBatch:
        """Return a batch with the records of these messages. Raises Interrupted or Abandoned if a retry is interrupted."""
        batch = SinkBatch()
        records: list[SinkRecord] = []
        topic, partition, offset = "", -1, -1
        self._converters.decode_ahead(messages)
        for message in messages:
            if message.partition() != partition or message.topic() != topic:
                if partition >= 0:
                    batch.ends[TopicPartition(topic, partition)] = offset + 1
                topic, partition = message.topic(), message.partition()
                batch.starts.setdefault(TopicPartition(topic, partition), message.offset())
                decode_key, decode_value = self._decoders_for(topic)
            offset = message.offset()
            stage = 0
            try:
                key_schema, key = decode_key(message.key())
                stage = 1
                value_schema, value = decode_value(message.value())
                stage = 2
                kind, timestamp = message.timestamp()
                headers = message.headers()
                record = self._new_record(
                    topic,
                    partition,
                    offset,
                    value,
                    value_schema,
                    key,
                    key_schema,
                    timestamp if kind and timestamp != _NO_TIMESTAMP else None,
                    kind,
                    self._converters.headers_from_kafka(topic, headers) if headers else (),
                )
                if type(record) is InternalSinkRecord:
                    record.original = ConsumerRecord.of(message)
                records.append(record)
            except Exception as error:  # noqa: BLE001 (a converter may raise anything)
                try:
                    recovered = self._retry(message, stage, error)
                except ConnectError as failure:
                    batch.failure = failure
                    offset -= 1  # this message is the next to read
                    break
                if recovered is not None:
                    records.append(recovered)
        if partition >= 0:
            batch.ends[TopicPartition(topic, partition)] = offset + 1
        batch.records = records
        return batch

    def _retry(self, message: ConsumedMessage, failed: int, error: Exception) -> SinkRecord | None:
        """Convert a message whose stage number ``failed`` has failed once. Return None if it must be skipped."""
        original = ConsumerRecord.of(message)
        parts: list[Any] = []
        for number, (operation, kind) in enumerate(self._operations(original)):
            if number > failed:  # this stage has not been tried yet
                try:
                    parts.append(operation())
                    continue
                except Exception as next_error:  # noqa: BLE001 (a converter may raise anything)
                    error = next_error
            elif number < failed:
                parts.append(operation())
                continue
            description = f"the record at offset {original.offset} of {original.topic}-{original.partition} cannot be converted"
            if number in _PARTS and self._needs_schemas:
                error = advised(error, _PARTS[number])
            part = self._tolerance.retry(operation, description, error, ProcessingContext(_STAGES[number], kind, original))
            if part is None:
                return None
            parts.append(part)
        (key_schema, key), (value_schema, value), headers = parts
        timed = original.timestamp_type
        record = self._new_record(
            original.topic,
            original.partition,
            original.offset,
            value,
            value_schema,
            key,
            key_schema,
            original.timestamp if timed and original.timestamp != _NO_TIMESTAMP else None,
            timed,
            headers,
        )
        if isinstance(record, InternalSinkRecord):
            record.original = original
        return record

    def _operations(self, message: ConsumerRecord) -> list[tuple[Callable[[], Any], type]]:
        """Return the conversions of a message in the order of ``_STAGES``, each with its converter's class."""
        decode_key, decode_value = self._decoders_for(message.topic)
        converters = self._converters
        return [
            (functools.partial(decode_key, message.key), type(converters.key)),
            (functools.partial(decode_value, message.value), type(converters.value)),
            (functools.partial(converters.headers_from_kafka, message.topic, list(message.headers)), type(converters.header)),
        ]

    def _decoders_for(self, topic: str) -> tuple[Decode, Decode]:
        decoders = self._decoders.get(topic)
        if decoders is None:
            self._new_topic(topic)
            decoders = self._converters.key.decoder(topic), self._converters.value.decoder(topic)
            self._decoders[topic] = decoders
        return decoders


def _describe(record: SinkRecord) -> str:
    partition = f"{record.original_topic}-{record.original_kafka_partition}"
    return f"the record at offset {record.original_kafka_offset} of {partition}"
