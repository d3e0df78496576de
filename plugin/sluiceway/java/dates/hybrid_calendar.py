"""Computes dates in Java's calendar: Julian up to 4 October 1582, Gregorian from the next day, the 15th. No I/O.

Days are counted from 1970-01-01; years are astronomical (0 is 1 BC); months are 1 to 12; weekdays 1 (Sunday) to 7.
Weeks are those of the United States, as in Java's default locale there: they start on Sunday and 1 January is in week 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

CUTOVER_DAY = -141427
CUTOVER_YEAR = 1582
DAY_MS = 86_400_000

DayOf = Callable[[int, int, int], int]
"""Returns the day number of a year, month and day of the month in one calendar."""

_CYCLE = 146_097  # days in 400 Gregorian years
_EPOCH_FROM_MARCH_0 = 719_468  # days from 1 March of the year 0 (Gregorian) to the epoch
_JULIAN_LAG = 2  # days by which 1 March of the year 0 comes earlier in the Julian calendar


class Civil(NamedTuple):
    """A date in the hybrid calendar."""

    year: int
    month: int
    day: int


def gregorian_day(year: int, month: int, day: int) -> int:
    """Return the day number of a Gregorian date; ``day`` may be any number, counted from the 1st."""
    year -= month < 3
    return year * 365 + year // 4 - year // 100 + year // 400 + _day_from_march(month) + day - 1 - _EPOCH_FROM_MARCH_0


def julian_day(year: int, month: int, day: int) -> int:
    """Return the day number of a Julian date; ``day`` may be any number, counted from the 1st."""
    year -= month < 3
    return year * 365 + year // 4 + _day_from_march(month) + day - 1 - _EPOCH_FROM_MARCH_0 - _JULIAN_LAG


@functools.lru_cache(maxsize=4096)
def civil(day: int) -> Civil:
    """Return the date of a day."""
    if day >= CUTOVER_DAY:
        cycle, rest = divmod(day + _EPOCH_FROM_MARCH_0, _CYCLE)
        year = (rest - rest // 1460 + rest // 36_524 - rest // (_CYCLE - 1)) // 365
        day_of_year = rest - (365 * year + year // 4 - year // 100)
        year += cycle * 400
    else:
        cycle, rest = divmod(day + _EPOCH_FROM_MARCH_0 + _JULIAN_LAG, 1461)
        year = min(rest // 365, 3)
        day_of_year = rest - 365 * year
        year += cycle * 4
    month = (5 * day_of_year + 2) // 153
    return Civil(year + (month >= 10), month + 3 if month < 10 else month - 9, day_of_year - (153 * month + 2) // 5 + 1)


def hybrid_day(year: int, month: int = 1, day: int = 1) -> int:
    """Return the day number of a date in the calendar in force at the time; the ten skipped days of 1582 count as Julian."""
    number = gregorian_day(year, month, day)
    return number if number >= CUTOVER_DAY and year >= CUTOVER_YEAR else julian_day(year, month, day)


def weekday(day: int) -> int:
    return (day + 4) % 7 + 1


def weekday_on_or_before(day: int, wanted: int) -> int:
    """Return the last day up to ``day`` that is the wanted weekday (taken modulo 7)."""
    return day - (day + 5 - wanted) % 7


def day_of_year(day: int) -> int:
    return day - hybrid_day(civil(day).year) + 1


def week_year_and_week(day: int) -> tuple[int, int]:
    """Return the year that a day's week belongs to, and the week's number in it."""
    year = civil(day).year
    sunday = weekday_on_or_before(day, 1)
    if sunday + 6 >= hybrid_day(year + 1):
        return year + 1, 1
    return year, (sunday - weekday_on_or_before(hybrid_day(year), 1)) // 7 + 1


def week_of_month(day: int) -> int:
    first = _first_of_month(day)
    return (weekday_on_or_before(day, 1) - weekday_on_or_before(first, 1)) // 7 + 1


def weekday_in_month(day: int) -> int:
    """Return the ordinal of the day's weekday in its month: 2 for the second Sunday."""
    return (day - _first_of_month(day)) // 7 + 1


def _first_of_month(day: int) -> int:
    year, month, _ = civil(day)
    return hybrid_day(year, month)


def _day_from_march(month: int) -> int:
    return (153 * ((month + 9) % 12) + 2) // 5
