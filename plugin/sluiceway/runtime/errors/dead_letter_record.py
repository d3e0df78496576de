"""What a dead letter looks like: the record as it was, and headers that say what went wrong. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from sluiceway.api import SourceRecord
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import Schema, java_text
from sluiceway.errors import trace_of
from sluiceway.kafka.dead_letter_headers import CONTEXT_PREFIX, SOURCE_OFFSET, SOURCE_PARTITION
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, class_name
from sluiceway.storage.model import TaskId

Header = tuple[str, "bytes | None"]


class DeadLetterRecord(NamedTuple):
    """What is written to the dead letter topic; ``timestamp`` in milliseconds since the epoch, None for now."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]
    timestamp: int | None


def dead_letter_record(
    failure: ProcessingContext, error: BaseException, task: TaskId, *, context_headers: bool
) -> DeadLetterRecord:
    """Return the dead letter of a record.

    A sink's has the bytes that were read from Kafka. A source's record has none yet: its key, value and header values are
    written as JSON as well as that can be done, and its source partition and offset as headers beside Connect's.
    """
    original = failure.original
    letter = _of_source(original) if isinstance(original, SourceRecord) else _of_consumed(original)
    if context_headers:
        letter.headers.extend(_context(failure, error, task))
    return letter


def _of_consumed(original: ConsumerRecord) -> DeadLetterRecord:
    timestamp = original.timestamp if original.timestamp_type and original.timestamp >= 0 else None
    return DeadLetterRecord(original.key, original.value, list(original.headers), timestamp)


def _of_source(record: SourceRecord) -> DeadLetterRecord:
    headers = [(name, _json(schema, value)) for name, value, schema in record.headers]
    return DeadLetterRecord(
        _json(record.key_schema, record.key), _json(record.value_schema, record.value), headers, record.timestamp
    )


def _context(failure: ProcessingContext, error: BaseException, task: TaskId) -> list[Header]:
    """Return Connect's headers in Connect's order; all values are texts."""
    original = failure.original
    if isinstance(original, SourceRecord):
        partition = original.kafka_partition
        place: dict[str, object] = {"topic": original.topic, **({} if partition is None else {"partition": partition})}
    else:
        place = {"topic": original.topic, "partition": original.partition, "offset": original.offset}
    told: dict[str, object] = {
        **place,
        "connector.name": task.connector,
        "task.id": task.task,
        "stage": failure.stage.name,
        "class.name": class_name(failure.executing_class),
        "exception.class.name": class_name(type(error)),
        "exception.message": str(error) or None,
        "exception.stacktrace": trace_of(error),
    }
    headers: list[Header] = [
        (CONTEXT_PREFIX + name, None if value is None else str(value).encode("utf-8", "replace")) for name, value in told.items()
    ]
    if isinstance(original, SourceRecord):
        headers.append((SOURCE_PARTITION, _place(original.source_partition)))
        headers.append((SOURCE_OFFSET, _place(original.source_offset)))
    return headers


def _place(place: Mapping[str, Any] | None) -> bytes:
    return orjson.dumps(None if place is None else dict(place), default=java_text, option=orjson.OPT_NON_STR_KEYS)


def _plain_json() -> JsonConverter:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"})
    return converter


_JSON = _plain_json()


def _json(schema: Schema | None, value: Any) -> bytes | None:
    """Return a value as JSON; what does not fit its schema, or JSON, as a text: it is a bad record, after all."""
    if value is None:
        return None
    for converted in (schema, None):
        try:
            return _JSON.from_connect_data("", converted, value)
        except Exception:  # noqa: BLE001, S112 (anything may be in there)
            continue
    try:
        return orjson.dumps(value, default=java_text, option=orjson.OPT_NON_STR_KEYS)
    except Exception:  # noqa: BLE001
        return orjson.dumps(repr(value).encode("utf-8", "replace").decode())
