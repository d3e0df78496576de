"""Computes a timestamp from calendar fields as leniently as Java: month 13 is January of the next year. No I/O.

Of contradicting fields, the one set last counts.
"""

from __future__ import annotations

import datetime as dt

from sluiceway.java.dates import hybrid_calendar as calendar
from sluiceway.java.numbers import wrap

ERA, YEAR, WEEK_YEAR, MONTH = "era", "year", "week_year", "month"
DAY_OF_MONTH, DAY_OF_YEAR, DAY_OF_WEEK = "day_of_month", "day_of_year", "day_of_week"
WEEK_OF_YEAR, WEEK_OF_MONTH, WEEKDAY_IN_MONTH = "week_of_year", "week_of_month", "weekday_in_month"
AM_PM, HOUR, HOUR_OF_DAY = "am_pm", "hour", "hour_of_day"
MINUTE, SECOND, MILLISECOND, OFFSET = "minute", "second", "millisecond", "offset"

_SUNDAY = 1
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_LOCAL_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (local time)
_MILLISECOND = dt.timedelta(milliseconds=1)


class CalendarFields(dict[str, int]):
    """Values of fields, in the order they were set. ``OFFSET`` is in milliseconds east of Greenwich; ``ERA`` 0 is BC."""

    def put(self, field: str, value: int) -> None:
        """Set a field and make it the newest."""
        self.pop(field, None)
        self[field] = value

    def millis(self, zone: dt.tzinfo) -> int:
        """Return the milliseconds since the epoch. Unset fields have their values at the start of 1970."""
        ages = {field: age for age, field in enumerate(self, 1)}
        extra_days, time_of_day = divmod(self._time_of_day(ages), calendar.DAY_MS)
        if WEEK_YEAR in ages and ages[WEEK_YEAR] > ages.get(YEAR, 0):
            day = self._day_of_week_date() + extra_days
        else:
            day = self._day(_day_rule(ages), extra_days)
        local = wrap(day * calendar.DAY_MS + time_of_day, 64)
        return local - (self[OFFSET] if OFFSET in self else offset_of_local(zone, local))

    def _time_of_day(self, ages: dict[str, int]) -> int:
        half_day = max(ages[HOUR], ages[AM_PM]) if HOUR in ages and AM_PM in ages else 0
        if HOUR_OF_DAY in ages and ages[HOUR_OF_DAY] >= half_day:
            hour = self[HOUR_OF_DAY]
        else:
            hour = self.get(HOUR, 0) + 12 * self.get(AM_PM, 0)
        minutes = hour * 60 + self.get(MINUTE, 0)
        return (minutes * 60 + self.get(SECOND, 0)) * 1000 + self.get(MILLISECOND, 0)

    def _day_of_week_date(self) -> int:
        week, weekday = self.get(WEEK_OF_YEAR, 1), self.get(DAY_OF_WEEK, _SUNDAY)
        if not 1 <= weekday <= 7:  # an ISO weekday (Monday is 1) past the end of the week
            weeks, monday_first = divmod(weekday - 1, 7)
            week, weekday = week + weeks, (monday_first + 1) % 7 + 1
        first = calendar.weekday_on_or_before(calendar.hybrid_day(self._astronomical(self[WEEK_YEAR])), _SUNDAY)
        return first + 7 * (week - 1) + weekday - _SUNDAY

    def _astronomical(self, year: int) -> int:
        return 1 - year if self.get(ERA) == 0 else year

    def _day(self, rule: str, extra_days: int) -> int:
        """Return the day number by a rule (see ``_day_rule``), in the calendar in force at the time."""
        year = self._astronomical(self.get(YEAR, 1970))
        gregorian = self._day_in(calendar.gregorian_day, year, rule) + extra_days
        if year > calendar.CUTOVER_YEAR and gregorian >= calendar.CUTOVER_DAY:
            return gregorian
        julian = self._day_in(calendar.julian_day, year, rule) + extra_days
        if year < calendar.CUTOVER_YEAR and julian < calendar.CUTOVER_DAY:
            return julian
        if rule in (DAY_OF_YEAR, WEEK_OF_YEAR):
            return julian
        return gregorian if gregorian >= calendar.CUTOVER_DAY and year >= calendar.CUTOVER_YEAR else julian

    def _day_in(self, day_of: calendar.DayOf, year: int, rule: str) -> int:
        if rule == DAY_OF_YEAR:
            return day_of(year, 1, self[DAY_OF_YEAR])
        if rule == WEEK_OF_YEAR:
            return self._in_week(day_of(year, 1, 1), self.get(WEEK_OF_YEAR, 0))
        years, month = divmod(self.get(MONTH, 0), 12)
        if rule == DAY_OF_MONTH:
            return day_of(year + years, month + 1, self.get(DAY_OF_MONTH, 1))
        first = day_of(year + years, month + 1, 1)
        if rule == WEEK_OF_MONTH:
            return self._in_week(first, self.get(WEEK_OF_MONTH, 0))
        nth, wanted = self.get(WEEKDAY_IN_MONTH, 1), self.get(DAY_OF_WEEK, _SUNDAY)
        if nth >= 0:
            return calendar.weekday_on_or_before(first + wrap(7 * nth, 32) - 1, wanted)
        next_first = day_of(year + years + month // 11, (month + 1) % 12 + 1, 1)
        return calendar.weekday_on_or_before(next_first - 1 + wrap(7 * (nth + 1), 32), wanted)

    def _in_week(self, first: int, week: int) -> int:
        """Return the day of the set weekday in week number ``week``; week 1 contains the day ``first``."""
        start = calendar.weekday_on_or_before(first, _SUNDAY)
        if DAY_OF_WEEK in self:
            start = calendar.weekday_on_or_before(start + 6, self[DAY_OF_WEEK])
        return start + 7 * (week - 1)


def _day_rule(ages: dict[str, int]) -> str:
    """Return the field that determines the day: the newest one that is complete, with its weekday if it needs one."""
    weekday = ages.get(DAY_OF_WEEK, 0)
    week, month_week, nth = (ages.get(field, 0) for field in (WEEK_OF_YEAR, WEEK_OF_MONTH, WEEKDAY_IN_MONTH))

    def with_weekday(age: int) -> int:
        return max(age, weekday) if age and weekday else 0

    rules = {
        DAY_OF_MONTH: ages.get(DAY_OF_MONTH, 0),
        WEEK_OF_MONTH: with_weekday(month_week),
        WEEKDAY_IN_MONTH: with_weekday(nth),
        DAY_OF_YEAR: ages.get(DAY_OF_YEAR, 0),
        WEEK_OF_YEAR: with_weekday(week),
    }
    newest = max(rules.values())
    if not newest:  # no field is complete: a week without a weekday, or a weekday without a week
        rules |= {WEEK_OF_MONTH: month_week, WEEKDAY_IN_MONTH: max(nth, weekday), WEEK_OF_YEAR: week}
        newest = max(rules.values())
    tied = [rule for rule, age in rules.items() if age == newest]
    # Several rules tie only by the age of the weekday; then the week set last counts.
    return tied[0] if len(tied) == 1 or not newest else max(tied, key=lambda rule: ages.get(rule, 0))


def offset_of_utc(zone: dt.tzinfo, millis: int) -> int:
    """Return a zone's offset in milliseconds at a time in UTC; outside the years 1 to 9999, the offset at their ends."""
    return _offset(zone, (_at(_EPOCH, millis)).astimezone(zone).utcoffset()) if zone is not dt.timezone.utc else 0


def offset_of_local(zone: dt.tzinfo, local: int) -> int:
    """Return a zone's offset in milliseconds at a local time; standard time where the local time occurs twice."""
    if zone is dt.timezone.utc:
        return 0
    return _offset(zone, _at(_LOCAL_EPOCH, local).replace(tzinfo=zone, fold=1).utcoffset())


def _offset(zone: dt.tzinfo, offset: dt.timedelta | None) -> int:
    if offset is None:
        raise ValueError(f"The time zone {zone} has no offset from UTC")
    return offset // _MILLISECOND


def _at(epoch: dt.datetime, millis: int) -> dt.datetime:
    two_days = 2 * calendar.DAY_MS
    earliest, latest = -62_135_596_800_000 + two_days, 253_402_300_799_999 - two_days
    return epoch + min(max(millis, earliest), latest) * _MILLISECOND
