"""Reads the time in a field of a record's value. No I/O."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from sluiceway.data.instant import MOMENT_TYPES, millis_of
from sluiceway.errors import DataError


def millis_at(value: Any, field: str) -> int:
    """Return the time that a field of a value holds, as ``millis_in``; dots lead into nested structs and maps.

    Raises DataError, also for a value without the field.
    """
    found = value
    for name in field.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return millis_in(found, field)


def millis_in(value: Any, field: str) -> int:
    """Return the time that a field holds, in milliseconds since the epoch: a Timestamp, milliseconds, or text in ISO 8601.

    Raises DataError, which names the field, for any other value.
    """
    if isinstance(value, bool):
        raise DataError(f"The field {field} is a boolean, not a time.")
    if isinstance(value, (int, float)):
        return int(value)
    if isinstance(value, MOMENT_TYPES):
        return millis_of(value)
    if isinstance(value, str):
        return parsed_millis(value, field)
    raise DataError(f"The field {field} with the value {value!r} is not a time. Use a Timestamp, milliseconds, or ISO 8601.")


def parsed_millis(text: str, field: str) -> int:
    """Return the time that text in ISO 8601 is, in UTC unless it has an offset. Raises DataError."""
    try:
        moment = dt.datetime.fromisoformat(text.replace("Z", "+00:00") if text.endswith("Z") else text)
    except ValueError as error:
        raise DataError(f"The field {field} with the value {text!r} is not a time in ISO 8601.") from error
    return millis_of(moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.timezone.utc))
