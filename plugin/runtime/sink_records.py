"""Makes sink records of Kafka messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.data import Schema
from sluiceway.errors import ConnectError
from sluiceway.kafka.clients import Message
from sluiceway.runtime.chain import Chain, StageError
from sluiceway.runtime.converters import Converters
from sluiceway.runtime.tolerance import Tolerance

Decode = Callable[[bytes | None], tuple[Schema | None, Any]]


@dataclass(slots=True)
class Batch:
    """Records for one ``put``. ``starts`` are the first offsets in it, ``ends`` the next ones after it.

    ``failure`` is what became of the first message that could not be converted or transformed; the batch ends before it.
    """

    records: Sequence[SinkRecord] = ()
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    failure: Exception | None = None

    def transform(self, chain: Chain[SinkRecord], tolerance: Tolerance) -> None:
        """Put what the chain makes of the records in their place. Offsets go by where they were read from (KIP-793)."""
        records = self.records

        def refuse(record: SinkRecord, error: StageError) -> None:
            place = f"{record.original_topic}-{record.original_kafka_partition}"
            what = f"the record at offset {record.original_kafka_offset} of {place} cannot be transformed"
            tolerance.refuse(f"{what} by {error.alias}", error.__cause__ if isinstance(error.__cause__, Exception) else error)

        made = chain(records, refuse)
        self.records = made.records
        if made.failure is not None:
            self.failure = made.failure
            for record in reversed(records[made.taken :]):  # the first of each partition is the next to read
                self.ends[TopicPartition(record.original_topic, record.original_kafka_partition)] = record.original_kafka_offset

    def drop(self, partitions: frozenset[TopicPartition]) -> None:
        """Leave out partitions that the task has lost."""
        self.records = [
            record for record in self.records
            if TopicPartition(record.original_topic, record.original_kafka_partition) not in partitions
        ]  # fmt: skip
        for partition in partitions:
            self.starts.pop(partition, None)
            self.ends.pop(partition, None)


class RecordReader:
    """Converts messages. ``new_topic`` is called with each topic that is read from for the first time."""

    def __init__(self, converters: Converters, tolerance: Tolerance, new_topic: Callable[[str], None]) -> None:
        self._converters = converters
        self._tolerance = tolerance
        self._new_topic = new_topic
        self._decoders: dict[str, tuple[Decode, Decode]] = {}

    def read(self, messages: Sequence[Message]) -> Batch:
        """Return messages as a batch of records."""
        batch = Batch()
        records: list[SinkRecord] = []
        topic, partition, offset = "", -1, -1
        for message in messages:
            if message.partition() != partition or message.topic() != topic:
                if partition >= 0:
                    batch.ends[TopicPartition(topic, partition)] = offset + 1
                topic, partition = message.topic(), message.partition()
                batch.starts.setdefault(TopicPartition(topic, partition), message.offset())
                decode_key, decode_value = self._decoders_for(topic)
            offset = message.offset()
            try:
                key_schema, key = decode_key(message.key())
                value_schema, value = decode_value(message.value())
                kind, timestamp = message.timestamp()
                headers = message.headers()
                records.append(SinkRecord(
                    topic, partition, offset, value, value_schema, key, key_schema, timestamp if kind else None, kind,
                    self._converters.headers_from_kafka(topic, headers) if headers else (),
                ))  # fmt: skip
            except Exception as error:  # noqa: BLE001 (a converter may raise anything; the tolerance decides)
                try:
                    self._tolerance.refuse(f"the record at offset {offset} of {topic}-{partition} cannot be converted", error)
                except ConnectError as failure:
                    batch.failure = failure
                    offset -= 1  # the next to read is this one
                    break
        if partition >= 0:
            batch.ends[TopicPartition(topic, partition)] = offset + 1
        batch.records = records
        return batch

    def _decoders_for(self, topic: str) -> tuple[Decode, Decode]:
        decoders = self._decoders.get(topic)
        if decoders is None:
            self._new_topic(topic)
            decoders = self._converters.key.decoder(topic), self._converters.value.decoder(topic)
            self._decoders[topic] = decoders
        return decoders
