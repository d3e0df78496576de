"""Builds dead letter queue records: the original record, and headers that describe the error. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from sluiceway.api import SourceRecord
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import Schema, java_text
from sluiceway.errors import TRACE_BYTES, shortened, trace_of
from sluiceway.kafka.dead_letter_headers import CONTEXT_PREFIX, SOURCE_OFFSET, SOURCE_PARTITION
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, class_name
from sluiceway.storage.model import TaskId

KafkaHeader = tuple[str, "bytes | None"]


class DeadLetterRecord(NamedTuple):
    """A record of the dead letter queue topic. ``timestamp`` is in milliseconds since the epoch, None for now."""

    key: bytes | None
    value: bytes | None
    headers: list[KafkaHeader]
    timestamp: int | None


def dead_letter_record(
    context: ProcessingContext, error: BaseException, task: TaskId, *, context_headers: bool
) -> DeadLetterRecord:
    """Return the dead letter queue record of a record that failed.

    For a sink it has the bytes that were read from Kafka. A source record has no bytes yet: its key, value and header
    values are written as JSON, and its source partition and offset as headers beside Connect's.
    """
    original = context.original
    record = _of_source(original) if isinstance(original, SourceRecord) else _of_consumed(original)
    if context_headers:
        record.headers.extend(_context_headers(context, error, task))
    return record


def _of_consumed(original: ConsumerRecord) -> DeadLetterRecord:
    timestamp = original.timestamp if original.timestamp_type and original.timestamp >= 0 else None
    return DeadLetterRecord(original.key, original.value, list(original.headers), timestamp)


def _of_source(record: SourceRecord) -> DeadLetterRecord:
    headers = [(name, _json(schema, value)) for name, value, schema in record.headers]
    key, value = _json(record.key_schema, record.key), _json(record.value_schema, record.value)
    return DeadLetterRecord(key, value, headers, record.timestamp)


def _context_headers(context: ProcessingContext, error: BaseException, task: TaskId) -> list[KafkaHeader]:
    """Return Connect's headers in Connect's order. All values are strings."""
    original = context.original
    if isinstance(original, SourceRecord):
        partition = original.kafka_partition
        position: dict[str, object] = {"topic": original.topic, **({} if partition is None else {"partition": partition})}
    else:
        position = {"topic": original.topic, "partition": original.partition, "offset": original.offset}
    values: dict[str, object] = {
        **position,
        "connector.name": task.connector,
        "task.id": task.task,
        "stage": context.stage.name,
        "class.name": class_name(context.executing_class),
        "exception.class.name": getattr(error, "java_class", None) if hasattr(error, "java_trace") else class_name(type(error)),
        "exception.message": shortened(str(error), TRACE_BYTES) or None,
        "exception.stacktrace": trace_of(error),
    }
    headers: list[KafkaHeader] = [
        (CONTEXT_PREFIX + name, None if value is None else str(value).encode("utf-8", "replace"))
        for name, value in values.items()
    ]
    if isinstance(original, SourceRecord):
        headers.append((SOURCE_PARTITION, _json_object(original.source_partition)))
        headers.append((SOURCE_OFFSET, _json_object(original.source_offset)))
    return headers


def _json_object(values: Mapping[str, Any] | None) -> bytes:
    return orjson.dumps(None if values is None else dict(values), default=java_text, option=orjson.OPT_NON_STR_KEYS)


def _schemaless_json() -> JsonConverter:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"})
    return converter


_JSON = _schemaless_json()


def _json(schema: Schema | None, value: Any) -> bytes | None:
    """Return a value as JSON. A value that does not fit its schema, or JSON, is written as a string: the record is bad.

    Bytes stay as they are: they are what a source could not read.
    """
    if value is None or isinstance(value, bytes):
        return value
    for tried in (schema, None):
        try:
            return _JSON.from_connect_data("", tried, value)
        except Exception:  # noqa: BLE001, S112 (a bad record may hold anything)
            continue
    try:
        return orjson.dumps(value, default=java_text, option=orjson.OPT_NON_STR_KEYS)
    except Exception:  # noqa: BLE001 (as above)
        return orjson.dumps(repr(value).encode("utf-8", "replace").decode())
