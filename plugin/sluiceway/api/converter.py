"""Converters: between Connect's data and the bytes in Kafka. Used on executors."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sluiceway.config.definition import ConfigDef
from sluiceway.data import Schema


class SchemaAndValue(NamedTuple):
    """A value with its schema; ``schema`` None is a schemaless value."""

    schema: Schema | None
    value: Any


NULL = SchemaAndValue(None, None)


class HeaderConverter(abc.ABC):
    """Translates header values. Configured once, then called by one thread."""

    java_class: str | None = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the options, for validation and for the documentation."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027
        """Take the converter's own options, prefix removed. Raises ConfigError for a value that cannot be used."""

    @abc.abstractmethod
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes for a header's value. Raises DataError for what cannot be written."""

    @abc.abstractmethod
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue | None:
        """Return the value in a header's bytes; None is a null without a schema, as ``NULL`` is.

        Raises DataError for bytes that are not of this format.
        """

    def close(self) -> None:  # noqa: B027
        """Give back what the converter holds, if anything; called once, after the last use, also after an error."""


class Converter(HeaderConverter):
    """Translates keys or values, and headers in the same way. Configured once, then called by one thread."""

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """Take the converter's own options, prefix removed (``value.converter.schemas.enable`` is ``schemas.enable``).

        Raises ConfigError for a value that cannot be used.
        """

    @abc.abstractmethod
    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes for a value; None is a null (tombstone). Raises DataError for what cannot be written."""

    @abc.abstractmethod
    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the value in the bytes. Raises DataError for bytes that are not of this format."""

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        return self.from_connect_data(topic, schema, value)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self.to_connect_data(topic, data)

    def encoder(self, topic: str, schema: Schema | None) -> Callable[[Any], bytes | None]:
        """Return ``from_connect_data`` specialised for one topic and schema: the runtime asks once for each pair.

        Overridden where knowing the schema saves work for each record; must give the same bytes.
        """
        return functools.partial(self.from_connect_data, topic, schema)

    def decoder(self, topic: str) -> Callable[[bytes | None], tuple[Schema | None, Any]]:
        """Return ``to_connect_data`` specialised for one topic, answering a pair: the runtime asks once for each topic.

        Overridden where that saves work for each record; must give the same values.
        """
        return functools.partial(self.to_connect_data, topic)
