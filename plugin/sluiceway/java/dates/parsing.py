"""Parses the fields of a date by the characters of a SimpleDateFormat pattern, as leniently as Java. No I/O."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping

from sluiceway.java.dates import calendar_fields as field
from sluiceway.java.dates.calendar_fields import CalendarFields
from sluiceway.java.dates.symbols import ERAS, HALVES, MONTHS, WEEKDAYS, ZONES, indexed
from sluiceway.java.numbers import double_to_integer, wrap

Parse = Callable[[str, int, CalendarFields], int]
"""``parse(text, start, fields)`` sets fields and returns the end position. Raises ValueError if the text does not match."""

Change = Callable[[int], int]

_TOO_MANY = 4000  # digits
_NUMERIC = frozenset("yYdHkKhmsSDFwWu")


def parser(letter: str, count: int, following: tuple[str, int] | None) -> Parse:
    """Return the parser of a pattern character repeated ``count`` times.

    ``following`` is the character and count directly after it, None if text comes between: adjoining numbers (``yyyyMMdd``) are
    divided by their counts.
    """
    adjoining = following is not None and (following[0] in _NUMERIC or (following[0] in "ML" and following[1] < 3))
    digits = count if adjoining else None
    if letter in "yY":
        return _year(field.YEAR if letter == "y" else field.WEEK_YEAR, count, digits)
    if letter in "ML":
        return _number(field.MONTH, digits, _minus_one) if count < 3 else _name(field.MONTH, indexed(MONTHS, 0))
    if letter in _NAMES:
        return _name(*_NAMES[letter])
    if letter in "zZ":
        return _zone
    if letter == "X":
        return _iso_zone(count)
    name, change = _NUMBERS[letter]
    return _number(name, digits, change)


def _same(value: int) -> int:
    return value


def _minus_one(value: int) -> int:
    return value - 1


def _clock(midnight: int) -> Change:
    return lambda hour: 0 if hour == midnight else hour


def _iso_weekday(value: int) -> int:
    return value % 7 + 1 if 1 <= value <= 7 else value


_NUMBERS: dict[str, tuple[str, Change]] = {
    "d": (field.DAY_OF_MONTH, _same),
    "D": (field.DAY_OF_YEAR, _same),
    "F": (field.WEEKDAY_IN_MONTH, _same),
    "w": (field.WEEK_OF_YEAR, _same),
    "W": (field.WEEK_OF_MONTH, _same),
    "u": (field.DAY_OF_WEEK, _iso_weekday),
    "H": (field.HOUR_OF_DAY, _same),
    "k": (field.HOUR_OF_DAY, _clock(24)),
    "K": (field.HOUR, _same),
    "h": (field.HOUR, _clock(12)),
    "m": (field.MINUTE, _same),
    "s": (field.SECOND, _same),
    "S": (field.MILLISECOND, _same),
}

_NAMES: dict[str, tuple[str, Mapping[str, int]]] = {
    "G": (field.ERA, {name: number for number, name in enumerate((*ERAS, "Before Christ", "Anno Domini"))}),
    "E": (field.DAY_OF_WEEK, indexed(WEEKDAYS, 1)),
    "a": (field.AM_PM, {name: number for number, name in enumerate(HALVES)}),
}


def _number(name: str, digits: int | None, change: Change) -> Parse:
    def parse(text: str, start: int, fields: CalendarFields) -> int:
        value, end = _read_number(text, start, digits)
        fields.put(name, change(value))
        return end

    return parse


def _year(name: str, count: int, digits: int | None) -> Parse:
    def parse(text: str, start: int, fields: CalendarFields) -> int:
        begin = _skip_blanks(text, start)
        value, end = _read_number(text, start, digits)
        if count <= 2 and end - begin == 2 and text[begin:end].isdigit():
            value = _within_century(value, fields)
        fields.put(name, value)
        return end

    return parse


def _within_century(year: int, fields: CalendarFields) -> int:
    """Return the year of two digits between 80 years ago and 20 years ahead."""
    start = dt.datetime.now(dt.timezone.utc).year - 80
    return start + (year - start) % 100


def _skip_blanks(text: str, start: int) -> int:
    while start < len(text) and text[start] in " \t":
        start += 1
    if start >= len(text):
        raise ValueError("the text ends too early")
    return start


def _read_number(text: str, start: int, digits: int | None) -> tuple[int, int]:
    """Return the 32-bit integer at ``start`` after blanks, and its end position."""
    begin = _skip_blanks(text, start)
    if digits is not None:
        if start + digits > len(text):
            raise ValueError("the text ends too early")
        text = text[: start + digits]
    if text.startswith("NaN", begin):
        return 0, begin + 3
    negative = text.startswith("-", begin)
    if text.startswith("\u221e", begin + negative):
        return double_to_integer(float("-inf" if negative else "inf"), 32), begin + negative + 1
    number, end = _unsigned(text, begin + negative)
    exponent, end = _exponent(text, end)
    value = _scaled(-number if negative else number, exponent)
    return value, end


def _unsigned(text: str, start: int) -> tuple[int, int]:
    end = start
    while end < len(text) and text[end].isdecimal():
        end += 1
    if end - start > _TOO_MANY:
        raise ValueError("a number of too many digits")
    return int(text[start:end]), end


def _exponent(text: str, start: int) -> tuple[int, int]:
    if not text.startswith("E", start):
        return 0, start
    negative = text.startswith("-", start + 1)
    try:
        exponent, end = _unsigned(text, start + 1 + negative)
    except ValueError:
        return 0, start
    return (-exponent if negative else exponent), end


def _scaled(number: int, exponent: int) -> int:
    """Return ``number * 10**exponent`` as ``Number.intValue`` does: longs lose their high bits, doubles saturate."""
    if number == 0:
        return 0
    if exponent > 30:
        return double_to_integer(float("inf") if number > 0 else float("-inf"), 32)
    if exponent < 0:
        whole, rest = divmod(abs(number), 10 ** min(-exponent, 400))
        whole = whole if number > 0 else -whole
        return wrap(whole, 32) if not rest and whole.bit_length() < 64 else double_to_integer(float(whole), 32)
    value = number * 10**exponent
    return (
        wrap(value, 32) if -(1 << 63) <= value < 1 << 63 else double_to_integer(float("inf") if value > 0 else float("-inf"), 32)
    )


def _name(name: str, values: Mapping[str, int]) -> Parse:
    longest_first = sorted(values.items(), key=lambda item: -len(item[0]))

    def parse(text: str, start: int, fields: CalendarFields) -> int:
        _skip_blanks(text, start)
        for word, value in longest_first:
            if text[start : start + len(word)].lower() == word.lower():
                fields.put(name, value)
                return start + len(word)
        raise ValueError("no known name")

    return parse


def _zone(text: str, start: int, fields: CalendarFields) -> int:
    """Parse ``+hhmm``, ``GMT``, ``GMT+h:mm`` or a zone's name."""
    begin = _skip_blanks(text, start)
    if text[begin] in "+-":
        return _numeric_zone(text, begin, fields, hour_digits=2, minutes=True, separator="")
    if text[start : start + 3].upper() == "GMT":
        if text[start + 3 : start + 4] in ("+", "-"):
            return _numeric_zone(text, start + 3, fields, hour_digits=1, minutes=True, separator=":")
        fields.put(field.OFFSET, 0)
        return start + 3
    found = [zone for zone in ZONES if text[begin : begin + len(zone.name)].lower() == zone.name.lower()]
    if not found:
        raise ValueError("no known time zone")
    longest = max(found, key=lambda zone: len(zone.name))
    fields.put(field.OFFSET, longest.offset * 60_000)
    return begin + len(longest.name)


def _iso_zone(count: int) -> Parse:
    def parse(text: str, start: int, fields: CalendarFields) -> int:
        begin = _skip_blanks(text, start)
        if text[begin] == "Z":
            fields.put(field.OFFSET, 0)
            return begin + 1
        if text[begin] not in "+-":
            raise ValueError("no time zone")
        separator = ":" if count == 3 else ""
        return _numeric_zone(text, begin, fields, hour_digits=2, minutes=count > 1, separator=separator)

    return parse


def _numeric_zone(text: str, start: int, fields: CalendarFields, *, hour_digits: int, minutes: bool, separator: str) -> int:
    """Parse a sign, one or two digits of hours, and two digits of minutes if ``minutes`` is set."""
    end = start + 1
    while end < start + 3 and _is_digit(text[end : end + 1]):
        end += 1
    if end - start - 1 < hour_digits or (hours := int(text[start + 1 : end])) > 23:
        raise ValueError("no hours of a time zone")
    minute = 0
    if minutes:
        begin = end + len(separator)
        digits = text[begin : begin + 2]
        if text[end:begin] != separator or len(digits) < 2 or not all(map(_is_digit, digits)) or int(digits) > 59:
            raise ValueError("no minutes of a time zone")
        minute, end = int(digits), begin + 2
    sign = -1 if text[start] == "-" else 1
    fields.put(field.OFFSET, sign * (hours * 60 + minute) * 60_000)
    return end


def _is_digit(text: str) -> bool:
    return text.isascii() and text.isdigit()
