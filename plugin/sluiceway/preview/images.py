"""Describes records, bytes and errors of a preview as JSON, clipped to a size. No I/O."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.data import Headers, Schema, Struct
from sluiceway.kafka.clients import ConsumedMessage

LARGEST = 64 * 1024
"""The largest number of characters of one record's data in an answer."""

_DEPTH = 30
_ITEM = 4  # what an item costs besides its text
_CLIPPED = "..."
_BLANKS = frozenset("\t\n\r")


class Clip:
    """Counts the characters of one record and cuts what exceeds the limit. ``clipped`` says whether something was cut."""

    def __init__(self, limit: int = LARGEST) -> None:
        self._left = limit
        self.clipped = False

    @property
    def full(self) -> bool:
        """True if there is no room left."""
        return self._left <= 0

    def text(self, text: str) -> str:
        """Return a text, cut to the room that is left. What UTF-8 cannot hold becomes a question mark."""
        if len(text) > self._left:
            self.clipped = True
            text = text[: max(0, self._left)] + _CLIPPED
        self._left -= len(text)
        return text.encode(errors="replace").decode()

    def data(self, value: Any, depth: int = 0) -> Any:
        """Return Connect's data as JSON: structs as objects, bytes as ``bytes_image``, decimals and dates as text."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            self._left -= 8
            return value if -(2**53) <= value <= 2**53 else self.text(str(value))
        if isinstance(value, float):
            self._left -= 8
            return value if math.isfinite(value) else str(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self.bytes(bytes(value))
        if depth >= _DEPTH:
            self.clipped = True
            return _CLIPPED
        if isinstance(value, Struct):
            return self._object(((name, value.get_without_default(name)) for name in value), depth)
        if isinstance(value, Mapping):
            return self._object(value.items(), depth)
        if isinstance(value, (list, tuple)):
            return self._list(value, depth)
        return self.text(str(value))

    def bytes(self, data: bytes | None) -> dict[str, Any] | None:
        """Return bytes as ``{"size": ..., "text": ...}`` if they are text, else with ``base64``. None stays None."""
        if data is None:
            return None
        text = _as_text(data)
        if text is not None:
            return {"size": len(data), "text": self.text(text)}
        most = max(0, self._left) * 3 // 4
        self.clipped = self.clipped or len(data) > most
        return {"size": len(data), "base64": self.text(base64.b64encode(data[:most]).decode())}

    def _object(self, items: Iterable[tuple[Any, Any]], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            if self.full:
                self.clipped = True
                break
            self._left -= _ITEM
            name = self.text(key if isinstance(key, str) else str(key))
            found[name] = self.data(value, depth + 1)
        return found

    def _list(self, items: Sequence[Any], depth: int) -> list[Any]:
        found: list[Any] = []
        for item in items:
            if self.full:
                self.clipped = True
                break
            self._left -= _ITEM
            found.append(self.data(item, depth + 1))
        return found


def record_image(record: SourceRecord | SinkRecord) -> dict[str, Any]:
    """Return a record of Connect's data as JSON."""
    clip = Clip()
    origin: dict[str, Any]
    if isinstance(record, SourceRecord):
        origin = {"source_partition": clip.data(record.source_partition), "source_offset": clip.data(record.source_offset)}
    else:
        origin = {"offset": record.original_kafka_offset}
    image: dict[str, Any] = {
        **origin,
        "topic": record.topic,
        "partition": record.kafka_partition,
        "timestamp": record.timestamp,
        "key": _with_schema(clip, record.key_schema, record.key),
        "value": _with_schema(clip, record.value_schema, record.value),
        "headers": _headers(clip, record.headers),
    }
    return _marked(image, clip)


def written_image(topic: str, key: bytes | None, value: bytes | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record that a producer would be given; ``options`` are those of ``Producer.produce``."""
    return _bytes_image(topic, options.get("partition"), options.get("timestamp"), key, value, options.get("headers") or ())


def message_image(message: ConsumedMessage) -> dict[str, Any]:
    """Return a record as it is in Kafka."""
    kind, timestamp = message.timestamp()
    topic, partition = message.topic(), message.partition()
    image = _bytes_image(topic, partition, timestamp if kind else None, message.key(), message.value(), message.headers() or ())
    return {**image, "offset": message.offset()}


def _bytes_image(
    topic: str,
    partition: int | None,
    timestamp: int | None,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> dict[str, Any]:
    clip = Clip()
    image = {
        "topic": topic,
        "partition": partition,
        "timestamp": timestamp,
        "key": clip.bytes(key),
        "value": clip.bytes(value),
        "headers": [{"key": clip.text(name), "value": clip.bytes(data)} for name, data in headers if not clip.full],
    }
    return _marked(image, clip)


def schema_text(schema: Schema | None, depth: int = 0) -> str | None:
    """Return a schema in one line, such as ``struct orders.Value {id: int64, name: string?}``. None without a schema."""
    if schema is None:
        return None
    name = f" {schema.name}" if schema.name else ""
    inner = ""
    if depth >= _DEPTH:
        inner = f" {{{_CLIPPED}}}"
    elif schema.fields:
        fields = ", ".join(f"{field.name}: {schema_text(field.schema, depth + 1)}" for field in schema.fields)
        inner = f" {{{fields}}}"
    elif schema.value_schema is not None:
        key = f"{schema_text(schema.key_schema, depth + 1)}, " if schema.key_schema is not None else ""
        inner = f"<{key}{schema_text(schema.value_schema, depth + 1)}>"
    return f"{schema.type.name.lower()}{name}{inner}{'?' if schema.optional else ''}"


def _with_schema(clip: Clip, schema: Schema | None, value: Any) -> dict[str, Any]:
    text = schema_text(schema)
    return {"schema": None if text is None else clip.text(text), "data": clip.data(value)}


def _headers(clip: Clip, headers: Headers) -> list[dict[str, Any]]:
    return [{"key": clip.text(key), **_with_schema(clip, schema, value)} for key, value, schema in headers if not clip.full]


def _marked(image: dict[str, Any], clip: Clip) -> dict[str, Any]:
    return {**image, "clipped": True} if clip.clipped else image


def _as_text(data: bytes) -> str | None:
    """Return bytes as text if they are UTF-8 without control characters."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(char.isprintable() or char in _BLANKS for char in text) else None
