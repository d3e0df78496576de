"""Defines what failed, at which stage and for which record, as the log and the dead letter queue report it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.storage.model import TaskId

_TIMESTAMP_TYPES = {1: "CreateTime", 2: "LogAppendTime"}


class Stage(enum.Enum):
    """The operation that failed. Kafka Connect's names: they appear in ``__connect.errors.stage`` and in the log."""

    TASK_PUT = enum.auto()
    TASK_POLL = enum.auto()
    TRANSFORMATION = enum.auto()
    KEY_CONVERTER = enum.auto()
    VALUE_CONVERTER = enum.auto()
    HEADER_CONVERTER = enum.auto()
    KAFKA_PRODUCE = enum.auto()


class ConsumerRecord(NamedTuple):
    """A record as it was read from Kafka, before any converter. Picklable.

    ``timestamp`` is in milliseconds since the epoch; ``timestamp_type`` is 1 for create time, 2 for log append time, 0 for none.
    """

    topic: str
    partition: int
    offset: int
    timestamp_type: int = 0
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()

    @classmethod
    def of(cls, message: ConsumedMessage) -> ConsumerRecord:
        """Return a message of Kafka's client as a picklable value."""
        kind, timestamp = message.timestamp()
        headers = message.headers() or ()
        return cls(
            message.topic(), message.partition(), message.offset(), kind, timestamp, message.key(), message.value(), headers
        )

    @classmethod
    def without_payload(cls, record: SinkRecord) -> ConsumerRecord:
        """Return a sink record's topic, partition, offset and timestamp, for records whose messages are not kept."""
        return cls(
            record.original_topic,
            record.original_kafka_partition,
            record.original_kafka_offset,
            record.timestamp_type,
            -1 if record.timestamp is None else record.timestamp,
        )


class ProcessingContext(NamedTuple):
    """One failed operation on one record. ``executing_class`` is the class of the converter, transform or task."""

    stage: Stage
    executing_class: type
    original: ConsumerRecord | SourceRecord


def named_class(name: str) -> type:
    """Return a class with this full name: it stands for a Java class in log messages and dead letter queue records."""
    module, _, simple = name.rpartition(".")
    return type(simple, (), {"__module__": module})


def class_name(kind: type) -> str:
    """Return a class's full name, the equivalent of Java's ``Class.getName``."""
    return f"{kind.__module__}.{kind.__qualname__}"


def error_log_message(context: ProcessingContext, task: TaskId, *, include_record: bool) -> str:
    """Return Connect's log message for a failed operation; ``include_record`` adds a description of the record."""
    record = _record_text(context.original) if include_record else ""
    stage = f"Executing stage '{context.stage.name}' with class '{class_name(context.executing_class)}'"
    return f"Error encountered in task {task}. {stage}{record}."


def _record_text(original: ConsumerRecord | SourceRecord) -> str:
    if isinstance(original, SourceRecord):
        return f", where source record is = {original}"
    text = f", where consumed record is {{topic='{original.topic}', partition={original.partition}, offset={original.offset}"
    if original.timestamp_type in _TIMESTAMP_TYPES:
        text += f", timestamp={original.timestamp}, timestampType={_TIMESTAMP_TYPES[original.timestamp_type]}"
    return text + "}"
