"""Converts values between types and from and to text (Connect's ``Values``). No I/O.

Every ``convert_to_...`` takes the value's schema (None for a schemaless value) and raises DataError for a value that it cannot
convert. None converts to None if the return type allows it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sluiceway.data import schema as schemas
from sluiceway.data.instant import Instant
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.data.schema import Schema, Type
from sluiceway.data.struct import Struct
from sluiceway.data.values.converting import convert
from sluiceway.data.values.inferred_schemas import schema_of, type_of
from sluiceway.data.values.parsing import Parsed, parse_string
from sluiceway.data.values.text import date_format_for

__all__ = [
    "Parsed",
    "convert_to_boolean",
    "convert_to_byte",
    "convert_to_date",
    "convert_to_decimal",
    "convert_to_double",
    "convert_to_float",
    "convert_to_integer",
    "convert_to_list",
    "convert_to_long",
    "convert_to_map",
    "convert_to_short",
    "convert_to_string",
    "convert_to_struct",
    "convert_to_time",
    "convert_to_timestamp",
    "date_format_for",
    "parse_string",
    "schema_of",
    "type_of",
]

_LIST = Schema(Type.ARRAY)
_MAP = Schema(Type.MAP)
_STRUCT = Schema(Type.STRUCT)
_DATE = date_schema()
_TIME = time_schema()
_TIMESTAMP = timestamp_schema()


def convert_to_boolean(schema: Schema | None, value: Any) -> bool | None:
    """Return a boolean, the boolean in a text, or True for a number other than 0."""
    return None if value is None else bool(convert(schemas.BOOLEAN_SCHEMA, schema, value))


def convert_to_byte(schema: Schema | None, value: Any) -> int | None:
    """Return the low 8 bits of a number, or of the number in a text."""
    return _integer(schemas.INT8_SCHEMA, schema, value)


def convert_to_short(schema: Schema | None, value: Any) -> int | None:
    """Return the low 16 bits of a number, or of the number in a text."""
    return _integer(schemas.INT16_SCHEMA, schema, value)


def convert_to_integer(schema: Schema | None, value: Any) -> int | None:
    """Return the low 32 bits of a number, or of the number in a text."""
    return _integer(schemas.INT32_SCHEMA, schema, value)


def convert_to_long(schema: Schema | None, value: Any) -> int | None:
    """Return the low 64 bits of a number, or of the number in a text."""
    return _integer(schemas.INT64_SCHEMA, schema, value)


def convert_to_float(schema: Schema | None, value: Any) -> float | None:
    """Return a number rounded to a float of 32 bits."""
    return None if value is None else float(convert(schemas.FLOAT32_SCHEMA, schema, value))


def convert_to_double(schema: Schema | None, value: Any) -> float | None:
    """Return a number as a float of 64 bits."""
    return None if value is None else float(convert(schemas.FLOAT64_SCHEMA, schema, value))


def convert_to_string(schema: Schema | None, value: Any) -> str | None:
    """Return a value's text, which ``parse_string`` can parse."""
    return None if value is None else str(convert(schemas.STRING_SCHEMA, schema, value))


def convert_to_list(schema: Schema | None, value: Any) -> list[Any]:
    """Return a list, or the list in a text."""
    return convert(_LIST, schema, value)  # type: ignore[no-any-return]


def convert_to_map(schema: Schema | None, value: Any) -> Mapping[Any, Any]:
    """Return a map, or the map in a text."""
    return convert(_MAP, schema, value)  # type: ignore[no-any-return]


def convert_to_struct(schema: Schema | None, value: Any) -> Struct:
    """Return a Struct unchanged. Raises DataError for any other value."""
    return convert(_STRUCT, schema, value)  # type: ignore[no-any-return]


def convert_to_date(schema: Schema | None, value: Any) -> dt.date | Instant:
    """Return the day of a timestamp, of a number of days, or of a text."""
    return convert(_DATE, schema, value)  # type: ignore[no-any-return]


def convert_to_time(schema: Schema | None, value: Any) -> dt.time | Instant:
    """Return the time of day of a timestamp, of a number of milliseconds, or of a text."""
    return convert(_TIME, schema, value)  # type: ignore[no-any-return]


def convert_to_timestamp(schema: Schema | None, value: Any) -> dt.datetime | Instant:
    """Return the timestamp of a date or time, of milliseconds since the epoch, or of a text."""
    return convert(_TIMESTAMP, schema, value)  # type: ignore[no-any-return]


def convert_to_decimal(schema: Schema | None, value: Any, scale: int) -> Decimal:
    """Return the decimal of a number, a text or unscaled bytes; ``scale`` applies only to bytes."""
    return convert(decimal_schema(scale), schema, value)  # type: ignore[no-any-return]


def _integer(target: Schema, schema: Schema | None, value: Any) -> int | None:
    return None if value is None else int(convert(target, schema, value))
