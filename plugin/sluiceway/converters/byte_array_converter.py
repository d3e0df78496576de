"""ByteArrayConverter: bytes without conversion."""

from __future__ import annotations

from typing import Any

from sluiceway.api import ColumnDecoder, ColumnEncoder, Converter, SchemaAndValue
from sluiceway.config.definition import ConfigDef
from sluiceway.converters.config import converter_config_def
from sluiceway.data import OPTIONAL_BYTES_SCHEMA, Schema, Type
from sluiceway.data.class_names import java_class
from sluiceway.errors import DataError


class ByteArrayConverter(Converter):
    """Passes bytes through; their schema is optional bytes. Runs on executors."""

    java_class = "org.apache.kafka.connect.converters.ByteArrayConverter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return converter_config_def()

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
        if value is None or type(value) is bytes:
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise DataError(f"ByteArrayConverter is not compatible with objects of type class {java_class(value)}")

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(OPTIONAL_BYTES_SCHEMA, data)

    def column_decoder(self, topic: str) -> ColumnDecoder | None:
        from sluiceway.converters.text_columns import decode_bytes

        return decode_bytes

    def column_encoder(self, topic: str, schema: Schema | None) -> ColumnEncoder | None:
        if schema is None or schema.type is not Type.BYTES or schema.name is not None:
            return None
        from sluiceway.converters.text_columns import encode_bytes

        return encode_bytes
