"""The forms of dates, times and timestamps by ``time.precision.mode``. No I/O.

Dates are days since the epoch; times are microseconds since midnight; timestamps are seconds since the epoch and microseconds
of the second, because Java's arithmetic overflows in a way that records show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sluiceway.data import Instant, Schema, Type

ADAPTIVE, ADAPTIVE_TIME, CONNECT = "adaptive", "adaptive_time_microseconds", "connect"
MICROSECONDS, NANOSECONDS, ISO = "microseconds", "nanoseconds", "isostring"

LONG_MAX, LONG_MIN = (1 << 63) - 1, -(1 << 63)
DAY_MICROS = 86_400_000_000
_KAFKA = "org.apache.kafka.connect.data."
_TIME = "io.debezium.time."


def semantic(type_: Type, name: str, *, version: int = 1) -> Schema:
    """Return the schema of a semantic type."""
    return Schema(type_, name=name, version=version)


ZONED_TIMESTAMP = semantic(Type.STRING, f"{_TIME}ZonedTimestamp")
ZONED_TIME = semantic(Type.STRING, f"{_TIME}ZonedTime")
MICRO_DURATION = semantic(Type.INT64, f"{_TIME}MicroDuration")
INTERVAL = semantic(Type.STRING, f"{_TIME}Interval")


@dataclass(frozen=True, slots=True)
class DateForm:
    schema: Schema
    convert: Callable[[int], object]


@dataclass(frozen=True, slots=True)
class TimeForm:
    schema: Schema
    convert: Callable[[int], object]


@dataclass(frozen=True, slots=True)
class TimestampForm:
    schema: Schema
    convert: Callable[[int, int], object]


def date_form(mode: str) -> DateForm:
    """Return the form of dates."""
    if mode == CONNECT:
        return DateForm(semantic(Type.INT32, f"{_KAFKA}Date"), lambda days: Instant(days * 86_400_000))
    if mode == ISO:
        return DateForm(semantic(Type.STRING, f"{_TIME}IsoDate"), lambda days: f"{iso_date(days)}Z")
    return DateForm(semantic(Type.INT32, f"{_TIME}Date"), lambda days: days)


def time_form(mode: str, precision: int) -> TimeForm:
    """Return the form of times with so many digits of a second."""
    if mode == CONNECT:
        return TimeForm(semantic(Type.INT32, f"{_KAFKA}Time"), lambda micros: Instant(micros // 1000))
    if mode == ISO:
        return TimeForm(semantic(Type.STRING, f"{_TIME}IsoTime"), lambda micros: f"{iso_time(micros % DAY_MICROS)}Z")
    if mode == NANOSECONDS:
        return TimeForm(semantic(Type.INT64, f"{_TIME}NanoTime"), lambda micros: micros * 1000)
    if mode == ADAPTIVE and precision <= 3:
        return TimeForm(semantic(Type.INT32, f"{_TIME}Time"), lambda micros: micros // 1000)
    return TimeForm(semantic(Type.INT64, f"{_TIME}MicroTime"), lambda micros: micros)


def timestamp_form(mode: str, precision: int, *, wrap_nanos: bool = False) -> TimestampForm:
    """Return the form of timestamps without zone. ``wrap_nanos``: nanoseconds out of range wrap around, else they are null."""
    if mode == CONNECT:
        return TimestampForm(
            semantic(Type.INT64, f"{_KAFKA}Timestamp"), lambda seconds, micros: Instant(seconds * 1000 + micros // 1000)
        )
    if mode == ISO:
        return TimestampForm(
            semantic(Type.STRING, f"{_TIME}IsoTimestamp"),
            lambda seconds, micros: f"{iso_timestamp(seconds, iso_fraction(micros))}Z",
        )
    if mode == NANOSECONDS:
        schema = semantic(Type.INT64, f"{_TIME}NanoTimestamp")
        return TimestampForm(schema, _wrapped_nanos if wrap_nanos else _nanos_or_null)
    if mode in (ADAPTIVE, ADAPTIVE_TIME) and precision <= 3:
        return TimestampForm(semantic(Type.INT64, f"{_TIME}Timestamp"), lambda seconds, micros: seconds * 1000 + micros // 1000)
    return TimestampForm(semantic(Type.INT64, f"{_TIME}MicroTimestamp"), epoch_micros)


def wrapped(number: int) -> int:
    """Return a number as a Java long, which wraps around."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def epoch_micros(seconds: int, micros: int) -> int:
    """Return microseconds since the epoch as Debezium computes them: the seconds saturate, and the sum wraps around."""
    return wrapped(min(max(seconds * 1_000_000, LONG_MIN), LONG_MAX) + micros)


def _nanos_or_null(seconds: int, micros: int) -> int | None:
    nanos = seconds * 1_000_000_000 + micros * 1000
    return nanos if LONG_MIN <= nanos <= LONG_MAX else None


def _wrapped_nanos(seconds: int, micros: int) -> int:
    return wrapped(seconds * 1_000_000_000 + micros * 1000)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days since the epoch of a proleptic Gregorian date; year 0 is 1 BC."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a number of days since the epoch."""
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def iso_date(days: int) -> str:
    """Return a date as Java prints it: years of more than four digits have a sign."""
    year, month, day = civil_from_days(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{month:02d}-{day:02d}"


def iso_fraction(micros: int) -> str:
    """Return the fraction of a second with as few digits as needed."""
    return f".{micros:06d}".rstrip("0") if micros else ""


def fixed_fraction(micros: int, digits: int) -> str:
    """Return the fraction of a second with at least so many digits."""
    text = f"{micros:06d}".rstrip("0").ljust(digits, "0")
    return f".{text}" if text else ""


def iso_time(micros: int) -> str:
    """Return a time of day with as few digits of a second as needed."""
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}{iso_fraction(fraction)}"


def iso_timestamp(seconds: int, fraction: str) -> str:
    """Return a timestamp with a fraction of a second that is already text."""
    days, of_day = divmod(seconds, 86_400)
    return f"{iso_date(days)}T{iso_time(of_day * 1_000_000)}{fraction}"
