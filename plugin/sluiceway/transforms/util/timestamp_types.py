"""Reads and writes the types of TimestampConverter: string, unix, Date, Time and Timestamp. No I/O.

Converts by way of milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluiceway.data import Schema, Type
from sluiceway.data.instant import MOMENT_TYPES, date_of, millis_of, time_of, timestamp_of
from sluiceway.data.logical import DATE, TIME, TIMESTAMP, date_schema, time_schema, timestamp_schema
from sluiceway.errors import ConnectError, DataError
from sluiceway.java.dates.hybrid_calendar import DAY_MS
from sluiceway.java.dates.simple_date_format import SimpleDateFormat
from sluiceway.java.numbers import wrap
from sluiceway.transforms.util.requirements import java_class

Read = Callable[[Any], int]
Write = Callable[[int], Any]

TYPES = ("string", "unix", "Date", "Time", "Timestamp")
PRECISIONS = ("nanoseconds", "microseconds", "milliseconds", "seconds")

_NAMED = {TIMESTAMP: "Timestamp", DATE: "Date", TIME: "Time"}
_PER_MILLI = {"nanoseconds": 1_000_000, "microseconds": 1_000}
_LONG_MAX, _LONG_MIN = (1 << 63) - 1, -(1 << 63)


def type_of_schema(schema: Schema) -> str:
    """Return the timestamp type of a schema's values. Raises ConnectError if it has none."""
    if schema.name in _NAMED:
        return _NAMED[schema.name]
    if schema.type is Type.STRING:
        return "string"
    if schema.type is Type.INT64:
        return "unix"
    raise ConnectError(f"Schema {schema} does not correspond to a known timestamp type format")


def type_of_value(value: Any) -> str:
    """Return the timestamp type of a schemaless value. Raises DataError if it has none, as an Integer does."""
    if type(value) is int:
        return "unix"
    if isinstance(value, str):
        return "string"
    if isinstance(value, MOMENT_TYPES):
        return "Timestamp"
    raise DataError(f"TimestampConverter does not support class {java_class(value)} objects as timestamps")


def schema_of(type_: str, *, optional: bool) -> Schema:
    """Return the schema of a timestamp type."""
    if type_ == "string":
        return Schema(Type.STRING, optional=optional)
    if type_ == "unix":
        return Schema(Type.INT64, optional=optional)
    if type_ == "Date":
        return date_schema(optional=optional)
    return time_schema(optional=optional) if type_ == "Time" else timestamp_schema(optional=optional)


def reader(type_: str, date_format: SimpleDateFormat | None, precision: str) -> Read:
    """Return the function from values of a type to milliseconds; it raises DataError for a value of another class."""
    if type_ == "string":
        return _text_reader(date_format)
    if type_ == "unix":
        return _unix_reader(precision)

    def read(value: Any) -> int:
        if not isinstance(value, MOMENT_TYPES):
            raise DataError(f"Expected {type_} to be a java.util.Date, but found class {java_class(value)}")
        return millis_of(value)

    return read


def writer(type_: str, date_format: SimpleDateFormat | None, precision: str) -> Write:
    """Return the function from milliseconds to values of a type. Dates and times are in UTC."""
    if type_ == "string":
        assert date_format is not None  # noqa: S101 (the transform's config requires a format)
        return date_format.format
    if type_ == "unix":
        return _unix_writer(precision)
    if type_ == "Date":
        return lambda millis: date_of(wrap(millis - millis % DAY_MS, 64))
    if type_ == "Time":
        return lambda millis: time_of(millis % DAY_MS)
    return timestamp_of


def _text_reader(date_format: SimpleDateFormat | None) -> Read:
    def read(value: Any) -> int:
        if not isinstance(value, str):
            raise DataError(f"Expected string timestamp to be a String, but found class {java_class(value)}")
        if date_format is None:
            raise TypeError("TimestampConverter cannot read text without the option format; set it to the pattern of the text.")
        try:
            return date_format.parse(value)
        except ValueError as error:
            pattern = date_format.pattern
            raise DataError(f"Could not parse timestamp: value ({value}) does not match pattern ({pattern})") from error

    return read


def _unix_reader(precision: str) -> Read:
    divisor = _PER_MILLI.get(precision, 1)
    factor = 1000 if precision == "seconds" else 1

    def read(value: Any) -> int:
        if type(value) is not int:
            raise DataError(f"Expected Unix timestamp to be a Long, but found class {java_class(value)}")
        return _saturated(value * factor) if divisor == 1 else _quotient(value, divisor)

    return read


def _unix_writer(precision: str) -> Write:
    if precision == "seconds":
        return lambda millis: _quotient(millis, 1000)
    factor = _PER_MILLI.get(precision, 1)
    return lambda millis: _saturated(millis * factor)


def _saturated(value: int) -> int:
    return min(max(value, _LONG_MIN), _LONG_MAX)


def _quotient(value: int, divisor: int) -> int:
    """Divide as Java does, rounding toward zero."""
    return value // divisor if value >= 0 else -(-value // divisor)
