"""The records that tasks exchange with Kafka."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

from sluiceway.data import Headers, Schema, Type, java_text

Partition = Mapping[str, Any]
"""A source partition: where a source reads from, as a JSON object such as ``{"filename": "test.txt"}``."""

Offset = Mapping[str, Any]
"""A source offset: the position in a source partition, as a JSON object such as ``{"position": 8}``."""


ENCODED = Schema(Type.BYTES, name="sluiceway.encoded", optional=True)
"""The schema of keys and values that a source task encoded itself (``SourceTaskContext.converters``); they are sent unchanged."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class SourceRecord:
    """A record that a source task read, with its source partition and offset.

    With ``kafka_partition`` None the producer chooses the partition. ``timestamp`` is in milliseconds since the epoch; None
    is the time of sending. Treat a record as immutable after ``poll`` returned it: transforms copy it with ``new_record``.
    """

    __slots__ = (
        "headers",
        "kafka_partition",
        "key",
        "key_schema",
        "source_offset",
        "source_partition",
        "timestamp",
        "topic",
        "value",
        "value_schema",
    )

    def __init__(
        self,
        source_partition: Partition | None,
        source_offset: Offset | None,
        topic: str,
        value: Any,
        value_schema: Schema | None = None,
        key: Any = None,
        key_schema: Schema | None = None,
        kafka_partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> None:
        self.source_partition = source_partition
        self.source_offset = source_offset
        self.topic = topic
        self.value = value
        self.value_schema = value_schema
        self.key = key
        self.key_schema = key_schema
        self.kafka_partition = kafka_partition
        self.timestamp = timestamp
        self.headers = headers

    def new_record(self, **changes: Any) -> SourceRecord:
        """Return a copy with these attributes changed."""
        record = copy.copy(self)
        for name, value in changes.items():
            setattr(record, name, value)
        return record

    def with_data(self, key_schema: Schema | None, key: Any, value_schema: Schema | None, value: Any) -> SourceRecord:
        """Return a copy with another key and value: a faster ``new_record`` for the attributes that transforms change most."""
        record = SourceRecord.__new__(SourceRecord)
        record.source_partition = self.source_partition
        record.source_offset = self.source_offset
        record.topic = self.topic
        record.kafka_partition = self.kafka_partition
        record.timestamp = self.timestamp
        record.headers = self.headers
        record.key_schema = key_schema
        record.key = key
        record.value_schema = value_schema
        record.value = value
        return record

    def replace_data(self, key_schema: Schema | None, key: Any, value_schema: Schema | None, value: Any) -> SourceRecord:
        """Change the key and value in place and return the record. Allowed only for the creator of a record not yet shared."""
        self.key_schema = key_schema
        self.key = key
        self.value_schema = value_schema
        self.value = value
        return self

    def __repr__(self) -> str:
        return (
            f"SourceRecord{{sourcePartition={self.source_partition}, sourceOffset={self.source_offset}, "
            f"topic='{self.topic}', kafkaPartition={self.kafka_partition}}}"
        )

    def __str__(self) -> str:
        """Return Connect's text of the record with its data, for messages that contain the whole record."""
        source = f"sourcePartition={java_text(self.source_partition)}, sourceOffset={java_text(self.source_offset)}"
        return f"SourceRecord{{{source}}} {_connect_record_text(self)}"


class SinkRecord:
    """A record from Kafka for a sink task, converted and transformed.

    Transforms may change ``topic``, ``kafka_partition`` and ``kafka_offset``, but not the ``original_*`` attributes, by which
    offsets are committed (KIP-793). ``timestamp`` is in milliseconds since the epoch or None. ``timestamp_type`` is 1 for
    create time, 2 for log append time, 0 for none.
    """

    __slots__ = (
        "headers",
        "kafka_offset",
        "kafka_partition",
        "key",
        "key_schema",
        "original_kafka_offset",
        "original_kafka_partition",
        "original_topic",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
        "value_schema",
    )

    def __init__(
        self,
        topic: str,
        kafka_partition: int,
        kafka_offset: int,
        value: Any,
        value_schema: Schema | None = None,
        key: Any = None,
        key_schema: Schema | None = None,
        timestamp: int | None = None,
        timestamp_type: int = 0,
        headers: Headers = (),
    ) -> None:
        self.topic = self.original_topic = topic
        self.kafka_partition = self.original_kafka_partition = kafka_partition
        self.kafka_offset = self.original_kafka_offset = kafka_offset
        self.value = value
        self.value_schema = value_schema
        self.key = key
        self.key_schema = key_schema
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.headers = headers

    @property
    def original_topic_partition(self) -> TopicPartition:
        """The topic partition that the record was read from."""
        return TopicPartition(self.original_topic, self.original_kafka_partition)

    def new_record(self, **changes: Any) -> SinkRecord:
        """Return a copy with these attributes changed."""
        record = copy.copy(self)
        for name, value in changes.items():
            setattr(record, name, value)
        return record

    def with_data(self, key_schema: Schema | None, key: Any, value_schema: Schema | None, value: Any) -> SinkRecord:
        """Return a copy with another key and value: a faster ``new_record`` for the attributes that transforms change most."""
        record = SinkRecord.__new__(SinkRecord)
        record.topic = self.topic
        record.original_topic = self.original_topic
        record.kafka_partition = self.kafka_partition
        record.original_kafka_partition = self.original_kafka_partition
        record.kafka_offset = self.kafka_offset
        record.original_kafka_offset = self.original_kafka_offset
        record.timestamp = self.timestamp
        record.timestamp_type = self.timestamp_type
        record.headers = self.headers
        record.key_schema = key_schema
        record.key = key
        record.value_schema = value_schema
        record.value = value
        return record

    def replace_data(self, key_schema: Schema | None, key: Any, value_schema: Schema | None, value: Any) -> SinkRecord:
        """Change the key and value in place and return the record. Allowed only for the creator of a record not yet shared."""
        self.key_schema = key_schema
        self.key = key
        self.value_schema = value_schema
        self.value = value
        return self

    def __repr__(self) -> str:
        return (
            f"SinkRecord{{kafkaOffset={self.kafka_offset}, timestampType={self.timestamp_type}, topic='{self.topic}', "
            f"kafkaPartition={self.kafka_partition}}}"
        )

    def __str__(self) -> str:
        """Return Connect's text of the record with its data, for messages that contain the whole record."""
        kind = ("NoTimestampType", "CreateTime", "LogAppendTime")[self.timestamp_type]
        return (
            f"SinkRecord{{kafkaOffset={self.kafka_offset}, timestampType={kind}, originalTopic={self.original_topic}, "
            f"originalKafkaPartition={self.original_kafka_partition}, originalKafkaOffset={self.original_kafka_offset}}} "
            f"{_connect_record_text(self)}"
        )


def _connect_record_text(record: SourceRecord | SinkRecord) -> str:
    schemas = [java_text(schema) for schema in (record.key_schema, record.value_schema)]
    headers = ", ".join(
        f"ConnectHeader(key={key}, value={java_text(value)}, schema={java_text(schema)})" for key, value, schema in record.headers
    )
    return (
        f"ConnectRecord{{topic='{record.topic}', kafkaPartition={java_text(record.kafka_partition)}, "
        f"key={java_text(record.key)}, keySchema={schemas[0]}, value={java_text(record.value)}, valueSchema={schemas[1]}, "
        f"timestamp={java_text(record.timestamp)}, headers=ConnectHeaders(headers={headers and f'[{headers}]'})}}"
    )
