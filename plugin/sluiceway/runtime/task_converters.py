"""Creates a task's converters from the connector's and the worker's config."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import NULL, Converter, HeaderConverter, SourceRecord
from sluiceway.config.worker import WorkerConfig
from sluiceway.converters.byte_array_converter import ByteArrayConverter
from sluiceway.data import Header, Headers, Schema
from sluiceway.discovery import converter_class, header_converter_class
from sluiceway.java_plugins.stages import JavaConverter
from sluiceway.kafka.clients import ConsumedMessage

_VERSION = "plugin.version"

_KEY, _VALUE = operator.methodcaller("key"), operator.methodcaller("value")
_KEY_AND_SCHEMA, _VALUE_AND_SCHEMA = operator.attrgetter("key_schema", "key"), operator.attrgetter("value_schema", "value")


@dataclass(frozen=True, slots=True)
class Converters:
    """The converters of one task."""

    key: Converter
    value: Converter
    header: HeaderConverter

    def headers_to_kafka(self, topic: str, headers: Headers) -> list[tuple[str, bytes | None]]:
        """Return headers in the form that ``Producer.produce`` takes."""
        convert = self.header.from_connect_header
        return [(key, convert(topic, key, schema, value)) for key, value, schema in headers]

    def headers_from_kafka(self, topic: str, headers: list[tuple[str, bytes | None]]) -> Headers:
        """Return a message's headers as Connect headers, for sink tasks."""
        convert = self.header.to_connect_header
        pairs = ((key, convert(topic, key, data) or NULL) for key, data in headers)
        return tuple(Header(key, value, schema) for key, (schema, value) in pairs)

    def decode_ahead(self, messages: Sequence[ConsumedMessage]) -> None:
        """Let Java converters convert a batch in one call, before its messages are converted one by one."""
        for converter, part in ((self.key, _KEY), (self.value, _VALUE)):
            if isinstance(converter, JavaConverter):
                topics: dict[str, list[bytes | None]] = {}
                for message in messages:
                    topics.setdefault(message.topic(), []).append(part(message))
                converter.decode_ahead(topics)

    def encode_ahead(self, records: Sequence[SourceRecord]) -> None:
        """Let Java converters convert a batch in one call, before its records are converted one by one."""
        for converter, part in ((self.key, _KEY_AND_SCHEMA), (self.value, _VALUE_AND_SCHEMA)):
            if isinstance(converter, JavaConverter):
                topics: dict[str, list[tuple[Schema | None, Any]]] = {}
                for record in records:
                    topics.setdefault(record.topic, []).append(part(record))
                converter.encode_ahead(topics)

    def close(self) -> None:
        """Close all three converters, even if one fails. Raises the last error."""
        try:
            self.key.close()
        finally:
            try:
                self.value.close()
            finally:
                self.header.close()


def task_converters(config: Mapping[str, str], worker: WorkerConfig, *, preview: bool = False) -> Converters:
    """Return a task's configured converters. Runs on the executor. Raises ConfigError.

    As in Connect, a converter that the connector names takes its options only from the connector's config, and one that
    the worker names only from the worker's. Those of a ``preview`` change nothing in other systems.
    """
    return Converters(
        key=_converter("key.converter", config, worker, preview=preview),
        value=_converter("value.converter", config, worker, preview=preview),
        header=_header_converter("header.converter", config, worker, preview=preview),
    )


def converters_of_bytes() -> Converters:
    """Return the converters for records that are converted already."""
    return Converters(ByteArrayConverter(), ByteArrayConverter(), ByteArrayConverter())


def _converter(key: str, config: Mapping[str, str], worker: WorkerConfig, *, preview: bool) -> Converter:
    name, options = class_and_options(key, config, worker)
    converter = converter_class(name, options.get(_VERSION))()
    if preview:
        converter.for_preview()
    converter.configure(options, is_key=key == "key.converter")
    return converter


def _header_converter(key: str, config: Mapping[str, str], worker: WorkerConfig, *, preview: bool) -> HeaderConverter:
    name, options = class_and_options(key, config, worker)
    header = header_converter_class(name, options.get(_VERSION))()
    if preview:
        header.for_preview()
    if isinstance(header, Converter):
        header.configure(options, is_key=False)
    else:
        header.configure(options)
    return header


def class_and_options(key: str, config: Mapping[str, str], worker: WorkerConfig) -> tuple[str, dict[str, str]]:
    """Return the converter's class name and its options without their prefix."""
    prefix = f"{key}."
    name = config.get(key, "").strip()
    if not name:
        return worker.text(key), worker.with_prefix(prefix)
    return name, {option[len(prefix) :]: value for option, value in config.items() if option.startswith(prefix)}
