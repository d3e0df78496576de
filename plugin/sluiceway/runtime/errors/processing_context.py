"""What failed, at which stage, and for which record: what the log and dead letters tell of it. Stages are Connect's."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.kafka.clients import Message
from sluiceway.storage.model import TaskId

_TIMESTAMP_TYPES = {1: "CreateTime", 2: "LogAppendTime"}


class Stage(enum.Enum):
    """Where a record was when it failed; the names stand in ``__connect.errors.stage`` and in the log."""

    TASK_PUT = enum.auto()
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
    def of(cls, message: Message) -> ConsumerRecord:
        kind, timestamp = message.timestamp()
        headers: Any = message.headers() or ()
        return cls(
            message.topic(), message.partition(), message.offset(), kind, timestamp, message.key(), message.value(), headers
        )

    @classmethod
    def without_payload(cls, record: SinkRecord) -> ConsumerRecord:
        """Return where a record was read, without what was read: for records whose messages are not kept."""
        return cls(
            record.original_topic,
            record.original_kafka_partition,
            record.original_kafka_offset,
            record.timestamp_type,
            -1 if record.timestamp is None else record.timestamp,
        )


class ProcessingContext(NamedTuple):
    """One failed operation on one record; ``executing_class`` is that of the converter, transform or task."""

    stage: Stage
    executing_class: type
    original: ConsumerRecord | SourceRecord


def class_name(kind: type) -> str:
    """Return a class's full name, as Connect writes Java's."""
    return f"{kind.__module__}.{kind.__qualname__}"


def log_text(failure: ProcessingContext, task: TaskId, *, include_record: bool) -> str:
    """Return Connect's log line for a failure; only with ``include_record`` does it tell of the record itself."""
    record = _record_text(failure.original) if include_record else ""
    stage = f"Executing stage '{failure.stage.name}' with class '{class_name(failure.executing_class)}'"
    return f"Error encountered in task {task}. {stage}{record}."


def _record_text(original: ConsumerRecord | SourceRecord) -> str:
    if isinstance(original, SourceRecord):
        return f", where source record is = {original}"
    text = f", where consumed record is {{topic='{original.topic}', partition={original.partition}, offset={original.offset}"
    if original.timestamp_type in _TIMESTAMP_TYPES:
        text += f", timestamp={original.timestamp}, timestampType={_TIMESTAMP_TYPES[original.timestamp_type]}"
    return text + "}"
