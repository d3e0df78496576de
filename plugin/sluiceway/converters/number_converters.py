"""Converters of numbers to the big-endian bytes of a Java type. Like Java's, they check the value's type, not its schema."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from sluiceway.api import Converter, SchemaAndValue
from sluiceway.api.columns import ColumnDecoder, ColumnEncoder
from sluiceway.config.definition import ConfigDef
from sluiceway.converters.config import converter_config_def
from sluiceway.data import Schema, Type
from sluiceway.data.class_names import java_class
from sluiceway.data.numbers import Float32, Int16, Int32
from sluiceway.errors import DataError
from sluiceway.java.numbers import to_float32


class _NumberConverter(Converter):
    """Converts numbers of one type to bytes, and back to optional numbers. Runs on executors."""

    name: ClassVar[str]
    kind: ClassVar[Type]
    layout: ClassVar[struct.Struct]
    exact: ClassVar[type]
    """The Python type of the number if the value has no schema; see ``_has_java_type`` for values with a schema."""

    _schema: ClassVar[Schema]

    def __init_subclass__(cls) -> None:
        cls._schema = Schema(cls.kind, optional=True)

    @classmethod
    def config_def(cls) -> ConfigDef:
        return converter_config_def()

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        if not self._has_java_type(schema, value):
            raise DataError(f"Failed to serialize to {self.name} (was class {java_class(value)}): ")
        try:
            return self.layout.pack(value)
        except struct.error:
            raise DataError(f"Failed to serialize to {self.name} (was class {java_class(value)}): {value} is too large") from None

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return SchemaAndValue(self._schema, None)
        if len(data) != self.layout.size:
            raise DataError(f"Failed to deserialize {self.name}: ")
        return SchemaAndValue(self._schema, self.layout.unpack(data)[0])

    def column_decoder(self, topic: str) -> ColumnDecoder | None:
        if type(self) not in _BUILT_IN:
            return None
        from sluiceway.columns.arrow_schema import arrow_type
        from sluiceway.converters import simple_columns

        return simple_columns.decoder(self._schema, simple_columns.numbers_of(arrow_type(self._schema), self.layout.size))

    def column_encoder(self, topic: str, schema: Schema | None) -> ColumnEncoder | None:
        """Return the encoder of numbers of this type; None for all others, most of which the row form refuses."""
        if type(self) not in _BUILT_IN:
            return None
        from sluiceway.converters import simple_columns

        return simple_columns.encoder(schema, frozenset({self.kind}), simple_columns.bytes_of(self.layout.size))

    def _has_java_type(self, schema: Schema | None, value: Any) -> bool:
        """Return True if the value has this converter's Java type. The schema sets the width of ``int`` and ``float``."""
        if type(value) is self.exact and (schema is None or schema.type not in _NUMBERS):
            return True
        if schema is None or type(value) not in (self.exact, _NUMBERS[self.kind]):
            return False
        return schema.type is self.kind or schema.type not in _NUMBERS


_NUMBERS: dict[Type, type] = {
    Type.INT8: int,
    Type.INT16: int,
    Type.INT32: int,
    Type.INT64: int,
    Type.FLOAT32: float,
    Type.FLOAT64: float,
}


class ShortConverter(_NumberConverter):
    java_class = "org.apache.kafka.connect.converters.ShortConverter"
    name, kind, layout, exact = "short", Type.INT16, struct.Struct(">h"), Int16


class IntegerConverter(_NumberConverter):
    java_class = "org.apache.kafka.connect.converters.IntegerConverter"
    name, kind, layout, exact = "integer", Type.INT32, struct.Struct(">i"), Int32


class LongConverter(_NumberConverter):
    java_class = "org.apache.kafka.connect.converters.LongConverter"
    name, kind, layout, exact = "long", Type.INT64, struct.Struct(">q"), int


class FloatConverter(_NumberConverter):
    java_class = "org.apache.kafka.connect.converters.FloatConverter"
    name, kind, layout, exact = "float", Type.FLOAT32, struct.Struct(">f"), Float32

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        fits = isinstance(value, float) and self._has_java_type(schema, value)
        return super().from_connect_data(topic, schema, type(value)(to_float32(value)) if fits else value)


class DoubleConverter(_NumberConverter):
    java_class = "org.apache.kafka.connect.converters.DoubleConverter"
    name, kind, layout, exact = "double", Type.FLOAT64, struct.Struct(">d"), float


_BUILT_IN = (ShortConverter, IntegerConverter, LongConverter, FloatConverter, DoubleConverter)
