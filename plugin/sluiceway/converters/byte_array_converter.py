"""ByteArrayConverter: bytes without conversion."""

from __future__ import annotations

from typing import Any

from sluiceway.api import Converter, SchemaAndValue
from sluiceway.api.columns import ColumnDecoder, ColumnEncoder
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
        if type(self) is not ByteArrayConverter:
            return None
        from sluiceway.converters import simple_columns

        return simple_columns.decoder(OPTIONAL_BYTES_SCHEMA, simple_columns.unchanged)

    def column_encoder(self, topic: str, schema: Schema | None) -> ColumnEncoder | None:
        if type(self) is not ByteArrayConverter:
            return None
        from sluiceway.converters import simple_columns

        return simple_columns.encoder(schema, frozenset({Type.BYTES}), simple_columns.unchanged)
