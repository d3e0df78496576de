"""Names the values that dialects adapt between Connect and their drivers, and the conversions that several share. No I/O."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable, Mapping
from decimal import Decimal
from operator import methodcaller
from typing import Any
from zoneinfo import ZoneInfo

from sluiceway.errors import DataError

Convert = Callable[[Any], Any]
"""Converts a value that is not None."""

UTC = dt.timezone.utc

_LONGEST = 10_000


class SinkValue(enum.Enum):
    """The Python values that the sink passes to drivers, beyond those that every driver takes as they are."""

    BOOLEAN = "bool"
    BYTES = "bytes"
    DECIMAL = "Decimal"
    DATE = "date"
    TIME = "time of Connect's Time, to the millisecond"
    TIMESTAMP = "datetime without a zone of Connect's Timestamp, to the millisecond"
    MICRO_TIME = "time of Debezium's types, to the microsecond"
    MICRO_TIMESTAMP = "datetime without a zone of Debezium's types, to the microsecond"


ISO_TEXTS: Mapping[SinkValue, Convert] = {
    SinkValue.DATE: dt.date.isoformat,
    SinkValue.TIME: methodcaller("isoformat", "milliseconds"),
    SinkValue.TIMESTAMP: methodcaller("isoformat", " ", "milliseconds"),
    SinkValue.MICRO_TIME: dt.time.isoformat,
    SinkValue.MICRO_TIMESTAMP: methodcaller("isoformat", " "),
}
"""Adapters for drivers that take dates and times as ISO texts."""


def decimal_in_plain_digits(value: Decimal) -> Decimal:
    """Return a decimal whose plain digits a driver can send. Raises DataError for one that no column holds by far.

    A few bytes, 1E+999999999, are a gigabyte of plain digits.
    """
    if value.is_finite() and (value.adjusted() > _LONGEST or -int(value.as_tuple().exponent) > _LONGEST):
        raise DataError(f"The decimal {value:.3E} has more than {_LONGEST:,} digits before or after its point.")
    return value


def zone_of(name: str) -> dt.tzinfo:
    """Return the time zone of that name. UTC is the constant of ``datetime``, which converts fastest."""
    return UTC if name.upper() in ("UTC", "GMT", "ETC/UTC", "Z") else ZoneInfo(name)


def moment_of(zone: dt.tzinfo) -> Convert:
    """Return the function that makes a driver's datetime one in UTC; a datetime without a zone is in ``zone``."""
    if zone is UTC:
        return _in_utc
    return lambda value: (value.replace(tzinfo=zone) if value.tzinfo is None else value).astimezone(UTC)


def _in_utc(value: dt.datetime) -> dt.datetime:
    if value.tzinfo is UTC:
        return value
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def local_time(moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """Return a moment as a datetime without a zone, by the clock of ``zone``."""
    return moment.astimezone(zone).replace(tzinfo=None)
