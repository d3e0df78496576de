"""SimpleHeaderConverter: header values as text, from which it infers their type."""

from __future__ import annotations

from typing import Any

from sluiceway.api import NULL, HeaderConverter, SchemaAndValue
from sluiceway.data import BYTES_SCHEMA, STRING_SCHEMA, Schema
from sluiceway.data.values import convert_to_string, parse_string


class SimpleHeaderConverter(HeaderConverter):
    """Converts header values to text, and infers the type from text: ``1`` is a number, ``[1,2]`` a list. Runs on executors.

    Any other text is a string.
    """

    java_class = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        text = convert_to_string(schema, value)
        # Java encodes an unpaired surrogate as a question mark.
        return None if text is None else text.encode("utf-8", "replace")

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue | None:
        if data is None:
            return NULL
        text = data.decode("utf-8", "replace")
        if not text:
            return SchemaAndValue(STRING_SCHEMA, text)
        try:
            parsed = parse_string(text)
            return None if parsed.schema is None else SchemaAndValue(*parsed)
        except (ArithmeticError, RecursionError):
            return SchemaAndValue(BYTES_SCHEMA, data)
