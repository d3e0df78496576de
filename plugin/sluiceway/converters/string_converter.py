"""StringConverter: values as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sluiceway.api import Converter, SchemaAndValue
from sluiceway.api.columns import ColumnDecoder, ColumnEncoder
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, Width
from sluiceway.converters.config import converter_config_def, parsed_options
from sluiceway.data import OPTIONAL_STRING_SCHEMA, Schema, java_text
from sluiceway.data import Type as SchemaType
from sluiceway.errors import SerializationError
from sluiceway.java.charsets import UTF_8, charset

_ENCODING = "converter.encoding"


class StringConverter(Converter):
    """Converts any value to the text of Java's ``String.valueOf``, and bytes to optional strings. Runs on executors.

    ``converter.encoding`` (default UTF-8) is the Java name of the character set for both directions.
    """

    java_class = "org.apache.kafka.connect.storage.StringConverter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return converter_config_def(
            ConfigKey(
                name=_ENCODING,
                type=Type.STRING,
                default="UTF-8",
                importance=Importance.HIGH,
                width=Width.MEDIUM,
                display_name="Encoding",
                doc="Character set for both directions, by its Java name.",
            ),
        )

    def __init__(self) -> None:
        self._charset = UTF_8

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """Set the options. Raises ConfigError, and SerializationError for an unknown encoding."""
        name = str(parsed_options(self.config_def(), config, is_key=is_key)[_ENCODING])
        try:
            self._charset = charset(name)
        except LookupError as error:
            raise SerializationError(f"Unsupported encoding {name}") from error

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return self.encoder(topic, schema)(value)

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(OPTIONAL_STRING_SCHEMA, None if data is None else self._charset.decode(data))

    def encoder(self, topic: str, schema: Schema | None) -> Callable[[Any], bytes | None]:
        encode = self._charset.encode

        def write(value: Any) -> bytes | None:
            if type(value) is str:
                return encode(value)
            return None if value is None else encode(java_text(value, schema))

        return write

    def decoder(self, topic: str) -> Callable[[bytes | None], tuple[Schema | None, Any]]:
        decode = self._charset.decode

        def read(data: bytes | None) -> tuple[Schema | None, Any]:
            return OPTIONAL_STRING_SCHEMA, None if data is None else decode(data)

        return read

    def column_decoder(self, topic: str) -> ColumnDecoder | None:
        """Return the decoder of UTF-8; None for other character sets."""
        if type(self) is not StringConverter or self._charset is not UTF_8:
            return None
        from sluiceway.converters import simple_columns

        return simple_columns.decoder(OPTIONAL_STRING_SCHEMA, simple_columns.text_of_utf8)

    def column_encoder(self, topic: str, schema: Schema | None) -> ColumnEncoder | None:
        """Return the encoder to UTF-8; None for other character sets, for logical types, and for arrays and maps."""
        if type(self) is not StringConverter or self._charset is not UTF_8:
            return None
        from sluiceway.converters import simple_columns

        if schema is not None and schema.type is SchemaType.STRUCT:
            from sluiceway.columns.text import java_texts

            return simple_columns.encoder(
                schema, frozenset({schema.type}), lambda structs: java_texts(schema, structs).cast("binary")
            )
        return simple_columns.encoder(schema, simple_columns.TEXT_TYPES, simple_columns.utf8_of_text)
