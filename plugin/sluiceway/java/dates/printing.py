"""Formats the fields of a date by the characters of a SimpleDateFormat pattern. No I/O."""

from __future__ import annotations

from collections.abc import Callable

from sluiceway.java.dates import hybrid_calendar as calendar
from sluiceway.java.dates.symbols import ERAS, HALVES, MONTHS, WEEKDAYS, short


class Moment:
    """A local date and time with the zone's offset. The date is computed on first use."""

    __slots__ = ("_civil", "day", "millis", "offset", "zone_name")

    def __init__(self, local_millis: int, offset: int = 0, zone_name: str = "UTC") -> None:
        """Take local milliseconds since the epoch, which include ``offset``, the milliseconds east of Greenwich."""
        self.day, self.millis = divmod(local_millis, calendar.DAY_MS)
        self.offset = offset
        self.zone_name = zone_name
        self._civil: calendar.Civil | None = None

    @property
    def civil(self) -> calendar.Civil:
        if self._civil is None:
            self._civil = calendar.civil(self.day)
        return self._civil

    @property
    def hour(self) -> int:
        return self.millis // 3_600_000

    @property
    def year_of_era(self) -> int:
        year = self.civil.year
        return year if year > 0 else 1 - year


Print = Callable[[Moment], str]


def printer(letter: str, count: int) -> Print:
    """Return the formatter of a pattern character repeated ``count`` times."""
    named = _NAMED.get(letter)
    if named is not None:
        return named(count)
    value = _NUMBERS[letter]
    return lambda moment: padded(value(moment), count)


def padded(value: int, width: int) -> str:
    """Return a number with at least ``width`` digits after an optional minus."""
    return f"{value:0{width}d}" if value >= 0 else f"-{-value:0{width}d}"


_NUMBERS: dict[str, Callable[[Moment], int]] = {
    "d": lambda moment: moment.civil.day,
    "k": lambda moment: moment.hour or 24,
    "H": lambda moment: moment.hour,
    "m": lambda moment: moment.millis // 60_000 % 60,
    "s": lambda moment: moment.millis // 1000 % 60,
    "S": lambda moment: moment.millis % 1000,
    "D": lambda moment: calendar.day_of_year(moment.day),
    "F": lambda moment: calendar.weekday_in_month(moment.day),
    "w": lambda moment: calendar.week_year_and_week(moment.day)[1],
    "W": lambda moment: calendar.week_of_month(moment.day),
    "h": lambda moment: moment.hour % 12 or 12,
    "K": lambda moment: moment.hour % 12,
    "u": lambda moment: (calendar.weekday(moment.day) + 5) % 7 + 1,
}


def _year(value: Callable[[Moment], int]) -> Callable[[int], Print]:
    def of(count: int) -> Print:
        if count == 2:
            return lambda moment: padded(_last_two(value(moment)), 2)
        return lambda moment: padded(value(moment), count)

    return of


def _last_two(year: int) -> int:
    return year % 100 if year >= 0 else -(-year % 100)


def _month(count: int) -> Print:
    if count < 3:
        return lambda moment: padded(moment.civil.month, count)
    names = MONTHS if count > 3 else tuple(map(short, MONTHS))
    return lambda moment: names[moment.civil.month - 1]


def _weekday(count: int) -> Print:
    names = WEEKDAYS if count > 3 else tuple(map(short, WEEKDAYS))
    return lambda moment: names[calendar.weekday(moment.day) - 1]


def _zone_name(count: int) -> Print:
    def text(moment: Moment) -> str:
        if moment.zone_name == "UTC":
            return "UTC" if count < 4 else "Coordinated Universal Time"
        return moment.zone_name

    return text


def _rfc_zone(_count: int) -> Print:
    return lambda moment: _offset(moment.offset, "", minutes=True)


def _iso_zone(count: int) -> Print:
    if count > 3:
        raise ValueError(f"invalid ISO 8601 format: length={count}")
    separator = ":" if count == 3 else ""
    return lambda moment: _offset(moment.offset, separator, minutes=count > 1) if moment.offset else "Z"


def _offset(millis: int, separator: str, *, minutes: bool) -> str:
    hour, minute = divmod(abs(millis) // 60_000, 60)
    return f"{'-' if millis < 0 else '+'}{hour:02d}" + (f"{separator}{minute:02d}" if minutes else "")


_NAMED: dict[str, Callable[[int], Print]] = {
    "G": lambda _count: lambda moment: ERAS[moment.civil.year > 0],
    "y": _year(lambda moment: moment.year_of_era),
    "Y": _year(lambda moment: calendar.week_year_and_week(moment.day)[0]),
    "M": _month,
    "L": _month,
    "E": _weekday,
    "a": lambda _count: lambda moment: HALVES[moment.hour >= 12],
    "z": _zone_name,
    "Z": _rfc_zone,
    "X": _iso_zone,
}

LETTERS = frozenset(_NUMBERS) | frozenset(_NAMED)
"""The pattern characters of SimpleDateFormat."""
