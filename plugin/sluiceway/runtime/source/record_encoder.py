"""Converts source records to what the producer takes: key, value, headers, partition and timestamp. No I/O of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluiceway.api import ENCODED, SourceRecord
from sluiceway.data import Headers, Schema
from sluiceway.runtime.errors.processing_context import ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.source.failed_sends import describe_source_record
from sluiceway.runtime.task_converters import Converters

Encode = Callable[[Any], bytes | None]
Converted = tuple["bytes | None", "bytes | None", dict[str, Any]]
"""A record's key, its value, and the options of ``Producer.produce``."""


class RecordEncoder:
    """Converts one task's records. Keeps an encoder for each topic and schema. Not thread-safe."""

    def __init__(self, converters: Converters, tolerance: RetryWithToleranceOperator) -> None:
        self._converters = converters
        self._tolerance = tolerance
        self._shared_headers: tuple[str, Headers, list[tuple[str, bytes | None]]] = ("", (), [])
        self._encoders: dict[tuple[str, Schema | None, Schema | None], tuple[Encode, Encode]] = {}
        self._last: tuple[str | None, Schema | None, Schema | None, tuple[Encode, Encode]] = (None, None, None, (_unchanged,) * 2)

    def encoders_for(self, topic: str, key_schema: Schema | None, value_schema: Schema | None) -> tuple[Encode, Encode]:
        """Return the encoders of keys and values."""
        known = self._encoders.get((topic, key_schema, value_schema))
        if known is not None:
            return known
        encoders = (
            _unchanged if key_schema is ENCODED else self._converters.key.encoder(topic, key_schema),
            _unchanged if value_schema is ENCODED else self._converters.value.encoder(topic, value_schema),
        )
        self._encoders[topic, key_schema, value_schema] = encoders
        return encoders

    def encoders_of(self, record: SourceRecord) -> tuple[Encode, Encode]:
        """Return those of a record. Successive records of a task often share topic and schemas."""
        topic, key_schema, value_schema, encoders = self._last
        if record.value_schema is not value_schema or record.topic is not topic or record.key_schema is not key_schema:
            encoders = self.encoders_for(record.topic, record.key_schema, record.value_schema)
            self._last = record.topic, record.key_schema, record.value_schema, encoders
        return encoders

    def headers_of(self, topic: str, headers: Headers) -> Any:
        """Return the converted headers of a record. Successive records of a task often share theirs."""
        known, shared, converted = self._shared_headers
        if headers is not shared or topic is not known:
            converted = self._converters.headers_to_kafka(topic, headers)
            self._shared_headers = topic, headers, converted
        return converted

    def convert(self, record: SourceRecord) -> Converted | None:
        """Return a converted record, or None if it was skipped because its conversion failed. Raises ConnectError."""
        stage = Stage.KEY_CONVERTER
        executing_class: type = type(self._converters.key)

        def convert() -> Converted:
            nonlocal stage, executing_class
            stage, executing_class = Stage.KEY_CONVERTER, type(self._converters.key)
            encode_key, encode_value = self.encoders_for(record.topic, record.key_schema, record.value_schema)
            key = encode_key(record.key)
            stage, executing_class = Stage.VALUE_CONVERTER, type(self._converters.value)
            value = encode_value(record.value)
            stage, executing_class = Stage.HEADER_CONVERTER, type(self._converters.header)
            return key, value, self._options(record)

        try:
            return convert()
        except Exception as error:  # noqa: BLE001 (a converter may raise anything)
            description = f"{describe_source_record(record)} cannot be converted"
            return self._tolerance.retry(convert, description, error, ProcessingContext(stage, executing_class, record))

    def _options(self, record: SourceRecord) -> dict[str, Any]:
        """Return the options of ``produce`` for a record's headers, partition and timestamp."""
        options: dict[str, Any] = {}
        if record.headers:
            options["headers"] = self._converters.headers_to_kafka(record.topic, record.headers)
        if record.kafka_partition is not None:
            options["partition"] = record.kafka_partition
        if record.timestamp is not None:
            options["timestamp"] = record.timestamp
        return options


def _unchanged(data: bytes | None) -> bytes | None:
    return data
