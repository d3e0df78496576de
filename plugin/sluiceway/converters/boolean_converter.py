"""BooleanConverter: a boolean as one byte, 0 or 1."""

from __future__ import annotations

from typing import Any

from sluiceway.api import Converter, SchemaAndValue
from sluiceway.api.columns import ColumnDecoder, ColumnEncoder
from sluiceway.config.definition import ConfigDef
from sluiceway.converters.config import converter_config_def
from sluiceway.data import Schema, Type
from sluiceway.data.class_names import java_class
from sluiceway.errors import DataError

_OPTIONAL_BOOLEAN = Schema(Type.BOOLEAN, optional=True)
_READ = {
    None: SchemaAndValue(_OPTIONAL_BOOLEAN, None),
    b"\x00": SchemaAndValue(_OPTIONAL_BOOLEAN, False),
    b"\x01": SchemaAndValue(_OPTIONAL_BOOLEAN, True),
}


class BooleanConverter(Converter):
    """Converts booleans to one byte, and back to optional booleans. Runs on executors."""

    java_class = "org.apache.kafka.connect.converters.BooleanConverter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return converter_config_def()

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type.name}")
        if value is None:
            return None
        if not isinstance(value, bool):
            raise DataError(f"BooleanConverter is not compatible with objects of type class {java_class(value)}")
        return b"\x01" if value else b"\x00"

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        read = _READ.get(data)
        if read is None:
            raise DataError("Failed to deserialize boolean: ")
        return read

    def column_decoder(self, topic: str) -> ColumnDecoder | None:
        if type(self) is not BooleanConverter:
            return None
        from sluiceway.converters import simple_columns

        return simple_columns.decoder(_OPTIONAL_BOOLEAN, simple_columns.booleans_of)

    def column_encoder(self, topic: str, schema: Schema | None) -> ColumnEncoder | None:
        if type(self) is not BooleanConverter:
            return None
        from sluiceway.converters import simple_columns

        return simple_columns.encoder(schema, frozenset({Type.BOOLEAN}), simple_columns.bytes_of_booleans)
