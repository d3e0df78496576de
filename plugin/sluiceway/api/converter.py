"""Base classes of converters, which convert between Connect's data and bytes in Kafka. Run on executors."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sluiceway.api.columns import ColumnDecoder, ColumnEncoder
from sluiceway.config.definition import ConfigDef
from sluiceway.data import Schema


class SchemaAndValue(NamedTuple):
    """A value with its schema. Schemaless values have the schema None."""

    schema: Schema | None
    value: Any


NULL = SchemaAndValue(None, None)


class JsonLayout(NamedTuple):
    """A converter's JSON form of a schema's values, for tasks that write JSON themselves: see ``SourceTaskContext.converters``.

    A message is ``prefix``, what ``encode`` returns for the value's JSON text, and ``suffix``.

    Attributes:
        encode: encodes JSON text; strings in it have the escapes that JSON demands, and may have more.
        text: returns the function from values of a schema, also of a field's, to their JSON text. It raises DataError like
            the converter.
        base64_decimals: whether decimals are written as base64 of their unscaled value.
    """

    prefix: bytes
    suffix: bytes
    encode: Callable[[str], bytes]
    text: Callable[[Schema], Callable[[Any], str]]
    base64_decimals: bool


class HeaderConverter(abc.ABC):
    """Converts header values. Configured once, then called by one thread."""

    java_class: str | None = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the definition of the converter's options, for validation and documentation."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027
        """Set the converter's options, without their prefix. Raises ConfigError for an invalid value."""

    def for_preview(self) -> None:  # noqa: B027
        """Convert as usual, but change nothing in other systems, such as a Schema Registry. Called before ``configure``."""

    @abc.abstractmethod
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes for a header's value. Raises DataError if it cannot be converted."""

    @abc.abstractmethod
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue | None:
        """Return the value in a header's bytes. None means a schemaless null, like ``NULL``.

        Raises DataError for bytes in another format.
        """

    def close(self) -> None:  # noqa: B027
        """Release the converter's resources. Called once, after the last use, also after an error."""


class Converter(HeaderConverter):
    """Converts record keys, values and headers. Configured once, then called by one thread."""

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """Set the converter's options, without their prefix (``value.converter.schemas.enable`` is ``schemas.enable``).

        Raises ConfigError for an invalid value.
        """

    @abc.abstractmethod
    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes for a value; None is a tombstone. Raises DataError if the value cannot be converted."""

    @abc.abstractmethod
    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the value in the bytes. Raises DataError for bytes in another format."""

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        return self.from_connect_data(topic, schema, value)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self.to_connect_data(topic, data)

    def encoder(self, topic: str, schema: Schema | None) -> Callable[[Any], bytes | None]:
        """Return ``from_connect_data`` specialized for a topic and schema. The runtime calls this once for each pair.

        Override it if knowing the schema saves work per record. It must return the same bytes.
        """
        return functools.partial(self.from_connect_data, topic, schema)

    def decoder(self, topic: str) -> Callable[[bytes | None], tuple[Schema | None, Any]]:
        """Return ``to_connect_data`` specialized for a topic, returning a pair. The runtime calls this once for each topic.

        Override it if that saves work per record. It must return the same values.
        """
        return functools.partial(self.to_connect_data, topic)

    def json_layout(self, schema: Schema) -> JsonLayout | None:
        """Return how values of a schema are written as JSON, or None if the converter does not write JSON."""
        return None

    def column_decoder(self, topic: str) -> ColumnDecoder | None:
        """Return the columnar form of ``decoder``, or None if there is none. The runtime calls this once for each topic."""
        return None

    def column_encoder(self, topic: str, schema: Schema | None) -> ColumnEncoder | None:
        """Return the columnar form of ``encoder``, or None if there is none for this schema."""
        return None
