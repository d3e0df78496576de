"""Parses the text of dates and times in query results and defaults. No I/O."""

from __future__ import annotations

from sluiceway.connectors.cdc.mysql.binlog.temporal import DAY_MICROS, INVALID, Calendar, Days, Invalid

_EXACT = Calendar(adjust_years=False)


def parse_date(text: str, calendar: Calendar) -> Days:
    """Return the days since the epoch of ``YYYY-MM-DD``, or INVALID."""
    return calendar.days(int(text[:4]), int(text[5:7]), int(text[8:10]))


def parse_time(text: str) -> int:
    """Return the microseconds of ``[-]hhh:mm:ss[.ffffff]``."""
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    hours, minutes, seconds = text.split(":")
    whole, _, fraction = seconds.partition(".")
    micros = int(fraction.ljust(6, "0")[:6]) if fraction else 0
    return sign * ((int(hours) * 3600 + int(minutes) * 60 + int(whole)) * 1_000_000 + micros)


def parse_datetime(text: str, calendar: Calendar) -> int | Invalid:
    """Return the microseconds since the epoch of ``YYYY-MM-DD hh:mm:ss[.ffffff]``, or INVALID."""
    days = parse_date(text, calendar)
    if isinstance(days, Invalid):
        return INVALID
    return days * DAY_MICROS + (parse_time(text[11:]) if len(text) > 10 else 0)


def parse_timestamp(text: str) -> int | Invalid:
    """Return the microseconds since the epoch of a TIMESTAMP in UTC, or INVALID for the zero timestamp."""
    return parse_datetime(text, _EXACT)
