"""Converts dates, times and timestamps from and to milliseconds since the epoch, as in Java's ``Date``. No I/O."""

from __future__ import annotations

import datetime as dt
import functools
from typing import Any

from sluiceway.java.dates.hybrid_calendar import DAY_MS
from sluiceway.java.dates.simple_date_format import SimpleDateFormat

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
EPOCH_DAY = EPOCH.toordinal()
_MILLISECOND = dt.timedelta(milliseconds=1)
EARLIEST_MILLIS, LATEST_MILLIS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999


@functools.total_ordering
class Instant:
    """A Java ``Date`` that Python's types cannot represent: outside the years 1 to 9999, or a Date with a time of day.

    Immutable; ``millis`` are the milliseconds since the epoch.
    """

    __slots__ = ("millis",)
    millis: int

    def __init__(self, millis: int) -> None:
        object.__setattr__(self, "millis", millis)

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError("an Instant is immutable; create another one")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and self.millis == other.millis

    def __lt__(self, other: Instant) -> bool:
        return self.millis < other.millis if isinstance(other, Instant) else NotImplemented

    def __hash__(self) -> int:
        return hash((Instant, self.millis))

    def __reduce__(self) -> tuple[type[Instant], tuple[int]]:
        return Instant, (self.millis,)

    def __repr__(self) -> str:
        return f"Instant({self.millis})"

    def __str__(self) -> str:
        return date_text(self.millis)


Moment = dt.date | dt.time | Instant
"""The Python types of a Java ``Date``; ``datetime`` is a subclass of ``date``."""

MOMENT_TYPES = (dt.date, dt.time, Instant)


def millis_of(value: Any) -> int:
    """Return the milliseconds since the epoch, as ``Date.getTime`` does.

    Naive datetimes are in UTC, dates are at midnight, times are on 1 January 1970. Raises TypeError for any other value.
    """
    if isinstance(value, dt.datetime):
        since = (value if value.tzinfo is not None else value.replace(tzinfo=dt.timezone.utc)) - EPOCH
        return (
            since.days * 86_400 + since.seconds
        ) * 1000 + since.microseconds // 1000  # dividing timedeltas takes twice as long
    if isinstance(value, Instant):
        return value.millis
    if isinstance(value, dt.date):
        return (value.toordinal() - EPOCH_DAY) * DAY_MS
    if isinstance(value, dt.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    raise TypeError(f"{type(value).__name__} is not a date, time or timestamp")


def timestamp_of(millis: int) -> dt.datetime | Instant:
    """Return the datetime in UTC of milliseconds since the epoch; an Instant outside the years 1 to 9999."""
    return EPOCH + millis * _MILLISECOND if EARLIEST_MILLIS <= millis <= LATEST_MILLIS else Instant(millis)


def date_of(millis: int) -> dt.date | Instant:
    """Return the date of milliseconds since the epoch; an Instant if the time is not midnight."""
    days, rest = divmod(millis, DAY_MS)
    return Instant(millis) if rest or not EARLIEST_MILLIS <= millis <= LATEST_MILLIS else dt.date.fromordinal(EPOCH_DAY + days)


def time_of(millis: int) -> dt.time | Instant:
    """Return the time of milliseconds since midnight; an Instant outside one day."""
    return (EPOCH + millis * _MILLISECOND).time() if 0 <= millis < DAY_MS else Instant(millis)


_DATE_TEXT = SimpleDateFormat("EEE MMM dd HH:mm:ss zzz yyyy")


def date_text(millis: int) -> str:
    """Return ``Date.toString()`` in UTC."""
    head, year = _DATE_TEXT.format(millis).rsplit(" ", 1)
    return f"{head} {int(year)}"
