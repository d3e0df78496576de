"""Decodes the packed dates and times of rows. No I/O.

Dates are days and datetimes microseconds since the epoch; both are ``INVALID`` for dates that no calendar has, such as
0000-00-00, which the servers accept depending on sql_mode.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

DAY_MICROS = 86_400_000_000
_EPOCH = dt.date(1970, 1, 1).toordinal()
_MONTHS = 13


class Invalid:
    """The type of ``INVALID``."""

    def __repr__(self) -> str:
        return "INVALID"


INVALID = Invalid()

Days = int | Invalid
"""Days since the epoch, or INVALID."""


class Calendar:
    """Converts dates to days since the epoch, with a memo, because rows share dates.

    Args:
        adjust_years: read years 0 to 69 as 2000 to 2069 and 70 to 99 as 1970 to 1999 (``enable.time.adjuster``).
    """

    def __init__(self, *, adjust_years: bool) -> None:
        self.adjusts_years = adjust_years
        self._memo: dict[int, Days] = {}

    def days(self, year: int, month: int, day: int) -> Days:
        key = (year * _MONTHS + month) << 5 | day
        found = self._memo.get(key)
        return self._add(key) if found is None else found

    def packed_days(self, key: int) -> Days:
        """Return the days of a date packed as in DATETIME2: ``(year * 13 + month) << 5 | day``."""
        found = self._memo.get(key)
        return self._add(key) if found is None else found

    def _add(self, key: int) -> Days:
        if len(self._memo) > 100_000:
            self._memo.clear()
        year, month = divmod(key >> 5, _MONTHS)
        if self.adjusts_years and year < 100:
            year += 2000 if year < 70 else 1900
        try:
            days: Days = dt.date(year, month, key & 31).toordinal() - _EPOCH
        except ValueError:
            days = INVALID
        if year == 0 and days is INVALID and month and key & 31:
            days = _days_of_year_zero(month, key & 31)
        self._memo[key] = days
        return days


def _days_of_year_zero(month: int, day: int) -> Days:
    """Return the days of a date in the year 0, which Python's dates do not have; it has the calendar of the year 400."""
    try:
        return dt.date(400, month, day).toordinal() - 146_097 - _EPOCH
    except ValueError:
        return INVALID


def fraction_bytes(precision: int) -> int:
    return (precision + 1) // 2


def fraction_factor(precision: int) -> int:
    """Return what the stored fraction of a value is multiplied by to be microseconds."""
    return (1_000_000, 10_000, 100, 1)[fraction_bytes(precision)]


def datetime2_reader(precision: int, calendar: Calendar) -> Callable[[bytes, int], int | Invalid]:
    """Return a reader of DATETIME(precision): 5 bytes, big-endian, then the fraction."""
    size = fraction_bytes(precision)
    factor = fraction_factor(precision)
    packed_days = calendar.packed_days
    from_bytes = int.from_bytes

    def read(data: bytes, at: int) -> int | Invalid:
        packed = from_bytes(data[at : at + 5], "big") - 0x8000000000
        days = packed_days(packed >> 17)
        if isinstance(days, Invalid):
            return INVALID
        seconds = (packed >> 12 & 31) * 3600 + (packed >> 6 & 63) * 60 + (packed & 63)
        micros = days * DAY_MICROS + seconds * 1_000_000
        return micros + from_bytes(data[at + 5 : at + 5 + size], "big") * factor if size else micros

    return read


def timestamp2_reader(precision: int) -> Callable[[bytes, int], int]:
    """Return a reader of TIMESTAMP(precision) as microseconds since the epoch; 0 is the zero timestamp."""
    size = fraction_bytes(precision)
    factor = fraction_factor(precision)
    from_bytes = int.from_bytes

    def read(data: bytes, at: int) -> int:
        return from_bytes(data[at : at + 4], "big") * 1_000_000 + from_bytes(data[at + 4 : at + 4 + size], "big") * factor

    return read


def time2_reader(precision: int) -> Callable[[bytes, int], int]:
    """Return a reader of TIME(precision) as signed microseconds."""
    size = fraction_bytes(precision)
    bits = 8 * size
    factor = fraction_factor(precision)
    offset = 0x800000 << bits
    from_bytes = int.from_bytes

    def read(data: bytes, at: int) -> int:
        packed = from_bytes(data[at : at + 3 + size], "big") - offset
        sign, packed = (-1, -packed) if packed < 0 else (1, packed)
        time, fraction = packed >> bits, packed & ((1 << bits) - 1)
        seconds = (time >> 12 & 1023) * 3600 + (time >> 6 & 63) * 60 + (time & 63)
        return sign * (seconds * 1_000_000 + fraction * factor)

    return read


def date_reader(calendar: Calendar) -> Callable[[bytes, int], Days]:
    """Return a reader of DATE: 3 bytes with day, month and year."""
    days = calendar.days

    def read(data: bytes, at: int) -> Days:
        packed = data[at] | data[at + 1] << 8 | data[at + 2] << 16
        return days(packed >> 9, packed >> 5 & 15, packed & 31)

    return read


def old_datetime_reader(calendar: Calendar) -> Callable[[bytes, int], int | Invalid]:
    """Return a reader of the DATETIME of old tables: 8 bytes with the decimal number YYYYMMDDhhmmss."""

    def read(data: bytes, at: int) -> int | Invalid:
        date, time = divmod(int.from_bytes(data[at : at + 8], "little"), 1_000_000)
        days = calendar.days(date // 10_000, date // 100 % 100, date % 100)
        if isinstance(days, Invalid):
            return INVALID
        return days * DAY_MICROS + (time // 10_000 * 3600 + time // 100 % 100 * 60 + time % 100) * 1_000_000

    return read


def old_time_reader(data: bytes, at: int) -> int:
    """Return the TIME of old tables: 3 bytes with the signed decimal number hhmmss, as microseconds."""
    number = int.from_bytes(data[at : at + 3], "little", signed=True)
    sign, number = (-1, -number) if number < 0 else (1, number)
    return sign * (number // 10_000 * 3600 + number // 100 % 100 * 60 + number % 100) * 1_000_000
