"""Offsets of time zones, and ISO texts of times with an offset, as Java's ``java.time`` has them."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from typing import NamedTuple

_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_TIME = r"(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{0,9}))?)?"
_DATE = r"(?P<year>\d{4}|[+-]\d{4,10})-(?P<month>\d{2})-(?P<day>\d{2})"
# In timestamps, Java accepts offsets without minutes; in times of day it does not.
_TIMESTAMP = re.compile(rf"{_DATE}[Tt]{_TIME}(?P<zone>[Zz]|[+-]\d{{1,2}}(?::\d{{2}}(?::\d{{2}})?)?)", re.ASCII)
_TIME_OF_DAY = re.compile(rf"{_TIME}(?P<zone>[Zz]|[+-]\d{{2}}:\d{{2}}(?::\d{{2}})?)", re.ASCII)
_ZONE_PARTS = re.compile(r"([+-])(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?", re.ASCII)

_DAY = 86_400
_MOST_HOURS = 18
_CYCLE = 400  # years after which the calendar repeats
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_CYCLE_DAYS = 146_097

_OLD_NAMES = {
    *("EST", "HST", "MST", "ACT", "AET", "AGT", "ART", "AST", "BET", "BST", "CAT", "CNT", "CST", "CTT", "EAT", "ECT"),
    *("IET", "IST", "JST", "MIT", "NET", "NST", "PLT", "PNT", "PRT", "PST", "SST", "VST"),
}
"""Names that Java's TimeZone knows, but ZoneId does not."""


class Zone:
    """A time zone: a region such as ``Europe/Paris``, or an offset such as ``+02:00``."""

    def __init__(self, name: str) -> None:
        """Raise ValueError for an unknown region, or an offset beyond 18 hours."""
        self._region: zoneinfo.ZoneInfo | None = None
        self._offset = 0
        offset = _OFFSET.fullmatch(name)
        if offset is not None:
            self._offset = offset_seconds(name)
        elif name in _OLD_NAMES:
            raise ValueError(f"Unknown time-zone ID: {name}. Use a name of the form Region/City.")
        else:
            self._region = zoneinfo.ZoneInfo(name)

    def offset_at_local(self, seconds: int) -> int:
        """Return the offset in seconds for a local time, given in seconds since 1970-01-01T00:00.

        In a gap or an overlap this is the offset before the transition.
        """
        return self._offset if self._region is None else _seconds(_datetime(seconds).replace(tzinfo=self._region).utcoffset())

    def offset_at_instant(self, seconds: int) -> int:
        """Return the offset in seconds for a point in time, given in seconds since the epoch."""
        if self._region is None:
            return self._offset
        return _seconds(_datetime(seconds).replace(tzinfo=dt.timezone.utc).astimezone(self._region).utcoffset())


def is_zone(name: str) -> bool:
    """Return whether Debezium accepts a name: a region, an offset with minutes, or an old name such as EST."""
    if _OFFSET.fullmatch(name) or name in _OLD_NAMES:
        return True
    return name in zoneinfo.available_timezones() and name not in ("Factory", "localtime", "posixrules")


def offset_seconds(text: str) -> int:
    """Return the seconds of an offset such as ``+05:30`` or ``Z``. Raises ValueError."""
    if text in "Zz":
        return 0
    found = _ZONE_PARTS.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is not an offset of a time zone")
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
    total = (hours * 60 + minutes) * 60 + seconds
    if minutes > 59 or seconds > 59 or total > _MOST_HOURS * 3600:
        raise ValueError(f"Zone offset not in valid range: -18:00 to +18:00: {text}")
    return -total if found[1] == "-" else total


class OffsetTime(NamedTuple):
    """A time of day in nanoseconds, with its offset in seconds."""

    nanos: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> OffsetTime:
        """Parse the form of ``DateTimeFormatter.ISO_OFFSET_TIME``. Raises ValueError."""
        found = _TIME_OF_DAY.fullmatch(text)
        if found is None:
            raise ValueError(f"Text '{text}' could not be parsed as a time with an offset")
        return cls(_time_nanos(found), offset_seconds(found["zone"]))

    def text_at(self, offset: int) -> str:
        """Return the same time with another offset."""
        nanos = (self.nanos + (offset - self.offset) * 10**9) % (_DAY * 10**9)
        return _time_text(nanos) + offset_text(offset)


class OffsetTimestamp(NamedTuple):
    """A local date in days since the epoch and time in nanoseconds, with the offset in seconds."""

    day: int
    nanos: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> OffsetTimestamp:
        """Parse the form of ``DateTimeFormatter.ISO_OFFSET_DATE_TIME``. Raises ValueError."""
        found = _TIMESTAMP.fullmatch(text)
        if found is None or (found["year"][0] == "+" and len(found["year"]) < 6) or found["year"] == "-0000":
            raise ValueError(f"Text '{text}' could not be parsed as a timestamp with an offset")
        year = int(found["year"])
        near = year % _CYCLE + _CYCLE
        day = dt.date(near, int(found["month"]), int(found["day"])).toordinal() - _EPOCH_DAY
        return cls(day + (year - near) // _CYCLE * _CYCLE_DAYS, _time_nanos(found), offset_seconds(found["zone"]))

    @property
    def local_seconds(self) -> int:
        """The seconds of the local time since 1970-01-01T00:00."""
        return self.day * _DAY + self.nanos // 10**9

    def text_at(self, offset: int) -> str:
        """Return the same point in time with another offset."""
        days, nanos = divmod(self.nanos + (offset - self.offset) * 10**9, _DAY * 10**9)
        cycles, day = divmod(self.day + days + _EPOCH_DAY - 1, _CYCLE_DAYS)
        date = dt.date.fromordinal(day + 1)
        year = date.year + cycles * _CYCLE
        sign = "+" if year > 9999 else "-" if year < 0 else ""
        return f"{sign}{abs(year):04d}-{date.month:02d}-{date.day:02d}T{_time_text(nanos)}{offset_text(offset)}"


def offset_text(offset: int) -> str:
    """Return an offset as ``Z``, ``+02:00`` or ``+01:24:30``."""
    if not offset:
        return "Z"
    minutes, seconds = divmod(abs(offset), 60)
    text = f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{seconds:02d}" if seconds else text


def _time_nanos(found: re.Match[str]) -> int:
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"Text '{found.group()}' could not be parsed: invalid time of day")
    return ((hour * 60 + minute) * 60 + second) * 10**9 + int((found["fraction"] or "").ljust(9, "0"))


def _time_text(nanos: int) -> str:
    seconds, fraction = divmod(nanos, 10**9)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{f'{fraction:09d}'.rstrip('0')}" if fraction else text


def _datetime(seconds: int) -> dt.datetime:
    """Return a time; one outside the years 2 to 9998 as the same time of a year there with the same calendar and rules."""
    days, rest = divmod(seconds, _DAY)
    ordinal = days + _EPOCH_DAY
    first, last = 366, 3_651_695
    if ordinal > last:
        ordinal -= -(-(ordinal - last) // _CYCLE_DAYS) * _CYCLE_DAYS
    elif ordinal < first:
        ordinal += -(-(first - ordinal) // _CYCLE_DAYS) * _CYCLE_DAYS
    return dt.datetime.fromordinal(ordinal) + dt.timedelta(seconds=rest)


def _seconds(offset: dt.timedelta | None) -> int:
    return 0 if offset is None else offset.days * _DAY + offset.seconds
