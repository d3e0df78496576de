"""Prints values as Connect's ``Values.convertToString`` does: similar to JSON, but a top-level string has no quotes. No I/O."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from sluiceway.data.class_names import java_class
from sluiceway.data.instant import MOMENT_TYPES, millis_of
from sluiceway.data.schema import Schema
from sluiceway.data.struct import Struct
from sluiceway.data.text import java_text
from sluiceway.errors import DataError
from sluiceway.java.dates.hybrid_calendar import DAY_MS
from sluiceway.java.dates.simple_date_format import SimpleDateFormat

DATE_FORMAT = SimpleDateFormat("yyyy-MM-dd")
TIME_FORMAT = SimpleDateFormat("HH:mm:ss.SSS'Z'")
TIMESTAMP_FORMAT = SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


def date_format_for(millis: int) -> SimpleDateFormat:
    """Return the time format up to 1 January 1970, the date format for a midnight, else the timestamp format."""
    if millis < DAY_MS:
        return TIME_FORMAT
    return TIMESTAMP_FORMAT if millis % DAY_MS else DATE_FORMAT


def value_text(value: Any, schema: Schema | None, *, embedded: bool = False) -> str:
    """Return a value's text; strings and bytes are quoted if ``embedded``. Raises DataError for a value outside the data API.

    The schema only distinguishes 32-bit floats from doubles.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return java_text(value, schema)
    if isinstance(value, str):
        return f'"{_escaped(value)}"' if embedded else value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return value_text(base64.b64encode(value).decode("ascii"), None, embedded=embedded)
    if isinstance(value, MOMENT_TYPES):
        millis = millis_of(value)
        return date_format_for(millis).format(millis)
    return _container_text(value, schema)


def _container_text(value: Any, schema: Schema | None) -> str:
    keys, items = (None, None) if schema is None else (schema.key_schema, schema.value_schema)
    if isinstance(value, Struct):
        return _entries((field.name, None, value[field.name], field.schema) for field in value.schema.fields)
    if isinstance(value, Mapping):
        return _entries((key, keys, item, items) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(value_text(item, items, embedded=True) for item in value) + "]"
    if java_class(value).startswith("java."):
        return java_text(value)
    raise DataError(f"Failed to serialize unexpected value type {java_class(value)}: {value}")


def _entries(entries: Iterable[tuple[Any, Schema | None, Any, Schema | None]]) -> str:
    texts = (
        f"{value_text(key, key_schema, embedded=True)}:{value_text(item, item_schema, embedded=True)}"
        for key, key_schema, item, item_schema in entries
    )
    return "{" + ",".join(texts) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
