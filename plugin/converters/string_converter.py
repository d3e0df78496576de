"""StringConverter: values as plain text."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from typing import Any

from sluiceway.api import NULL, Converter, SchemaAndValue
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.data import OPTIONAL_STRING_SCHEMA, Schema, java_text
from sluiceway.errors import ConfigError

_ENCODING = "converter.encoding"


class StringConverter(Converter):
    """Writes ``String.valueOf`` of any value and reads text, as optional strings. Runs on executors.

    ``converter.encoding`` (default UTF8) names the character set of both directions.
    """

    java_class = "org.apache.kafka.connect.storage.StringConverter"
    encoding = "utf-8"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([
            ConfigKey(name=_ENCODING, type=Type.STRING, default="UTF8", importance=Importance.HIGH,
                      doc="The name of the character set to use for encoding and decoding strings."),
        ])  # fmt: skip

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        name = str(self.config_def().parse(config)[_ENCODING])
        try:
            self.encoding = codecs.lookup(name).name
            "".encode(self.encoding)  # refuses codecs that are not character sets, such as base64
        except LookupError:
            raise ConfigError(_ENCODING, name, "There is no such character set") from None

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        # Java writes ? for what the character set does not have, half a surrogate pair included.
        return java_text(value).encode(self.encoding, "replace")

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return NULL if data is None else SchemaAndValue(OPTIONAL_STRING_SCHEMA, data.decode(self.encoding, "replace"))

    def encoder(self, topic: str, schema: Schema | None) -> Callable[[Any], bytes | None]:
        encoding = self.encoding

        def encode(value: Any) -> bytes | None:
            return value.encode(encoding, "replace") if type(value) is str else self.from_connect_data(topic, schema, value)

        return encode

    def decoder(self, topic: str) -> Callable[[bytes | None], tuple[Schema | None, Any]]:
        encoding = self.encoding

        def decode(data: bytes | None) -> tuple[Schema | None, Any]:
            return NULL if data is None else (OPTIONAL_STRING_SCHEMA, data.decode(encoding, "replace"))

        return decode
