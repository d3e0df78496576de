"""SimpleHeaderConverter: header values as text."""

from __future__ import annotations

from typing import Any

from sluiceway.api import NULL, HeaderConverter, SchemaAndValue
from sluiceway.data import STRING_SCHEMA, Schema, java_text


class SimpleHeaderConverter(HeaderConverter):
    """Writes header values as text and reads text back as strings. Runs on executors."""

    java_class = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        return None if value is None else java_text(value).encode("utf-8", "replace")

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return NULL if data is None else SchemaAndValue(STRING_SCHEMA, data.decode("utf-8", "replace"))
