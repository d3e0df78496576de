"""Formats and parses timestamps as Java's ``SimpleDateFormat`` does in English: ``yyyy-MM-dd'T'HH:mm:ss.SSSX``."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sluiceway.java.dates.calendar_fields import CalendarFields, offset_of_utc
from sluiceway.java.dates.hybrid_calendar import DAY_MS, gregorian_day
from sluiceway.java.dates.parsing import Parse, parser
from sluiceway.java.dates.printing import LETTERS, Moment, Print, printer

_UNITS = {"S": 1, "s": 1000, "m": 60_000, "H": 3_600_000, "k": 3_600_000, "K": 3_600_000, "h": 3_600_000, "a": 3_600_000}
_DIGITS = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 3}
_FIRST_YEAR = 1583  # the first full year of the Gregorian calendar

StrictParse = Callable[[str], "int | None"]


class _Part(NamedTuple):
    """A part of a pattern: a character repeated ``times`` times, or literal text (``times`` 0)."""

    text: str
    times: int


class SimpleDateFormat:
    """A compiled pattern. Raises ValueError for a malformed one (``Illegal pattern character 'x'``).

    Unlike Java's class it keeps no state: the time zone of one text does not affect the next. Thread-safe.
    """

    def __init__(self, pattern: str, zone: dt.tzinfo = dt.timezone.utc) -> None:
        self.pattern = pattern
        self.zone = zone
        parts = list(_parts(pattern))
        self._printers = [printer(part.text, part.times) if part.times else _literal(part.text) for part in parts]
        self._parsers = [_parser(part, follower) for part, follower in zip(parts, [*parts, None][1:], strict=True)]
        self._strict = strict_parser(parts, utc=zone is dt.timezone.utc)
        # Timestamps within this many milliseconds have the same text, and consecutive records are often that close.
        self._unit = min((_UNITS.get(part.text, DAY_MS) for part in parts if part.times), default=DAY_MS)
        if zone is not dt.timezone.utc:
            self._unit = min(self._unit, 1000)
        self._last: tuple[int, str] | None = None

    def format(self, millis: int) -> str:
        """Format a timestamp in milliseconds since the epoch."""
        unit = millis // self._unit
        last = self._last
        if last is not None and last[0] == unit:
            return last[1]
        moment = self._moment(millis)
        text = "".join([write(moment) for write in self._printers])
        self._last = unit, text
        return text

    def parse(self, text: str) -> int:
        """Parse a text to milliseconds since the epoch; ignores what follows the date.

        Raises ValueError (``Unparseable date: "..."``) if the start of the text does not match the pattern.
        """
        exact = self._strict(text) if self._strict is not None else None
        return self._parse_leniently(text) if exact is None else exact

    def _parse_leniently(self, text: str) -> int:
        fields = CalendarFields()
        end = 0
        try:
            for read in self._parsers:
                end = read(text, end, fields)
        except ValueError:
            end = 0
        if not end:
            raise ValueError(f'Unparseable date: "{text}"')
        return fields.millis(self.zone)

    def __reduce__(self) -> tuple[type[SimpleDateFormat], tuple[str, dt.tzinfo]]:
        return SimpleDateFormat, (self.pattern, self.zone)

    def _moment(self, millis: int) -> Moment:
        offset = offset_of_utc(self.zone, millis)
        if self.zone is dt.timezone.utc:
            return Moment(millis)
        clamped = min(max(millis, -62_000_000_000_000), 253_000_000_000_000)
        name = dt.datetime.fromtimestamp(clamped // 1000, self.zone).tzname()
        return Moment(millis + offset, offset, name or "UTC")


def _parts(pattern: str) -> Iterator[_Part]:
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "'":
            text, position = _quoted(pattern, position + 1)
            yield _Part(text, 0)
        elif char.isascii() and char.isalpha():
            end = position
            while end < len(pattern) and pattern[end] == char:
                end += 1
            yield _symbol(char, end - position)
            position = end
        else:
            yield _Part(char, 0)
            position += 1


def _quoted(pattern: str, start: int) -> tuple[str, int]:
    """Return the quoted text from ``start`` and its end position; two quotes stand for one."""
    if pattern.startswith("'", start):
        return "'", start + 1
    text, position = "", start
    while (end := pattern.find("'", position)) >= 0:
        text += pattern[position:end]
        if not pattern.startswith("''", end):
            return text, end + 1
        text, position = text + "'", end + 2
    raise ValueError("Unterminated quote")


def _symbol(character: str, count: int) -> _Part:
    if character not in LETTERS:
        raise ValueError(f"Illegal pattern character '{character}'")
    return _Part(character, count)


def _literal(text: str) -> Print:
    return lambda _moment: text


def _parser(part: _Part, follower: _Part | None) -> Parse:
    if part.times:
        following = (follower.text, follower.times) if follower is not None and follower.times else None
        return parser(part.text, part.times, following)

    def read(text: str, start: int, _fields: CalendarFields) -> int:
        if not text.startswith(part.text, start):
            raise ValueError(f"{part.text!r} was expected at {start}")
        return start + len(part.text)

    return read


def strict_parser(parts: Sequence[tuple[str, int]], *, utc: bool) -> StrictParse | None:
    """Return the strict parser of a pattern, or None for a pattern that one regular expression cannot parse.

    ``parts`` are characters with their counts, and literal texts with 0. The parser returns milliseconds since the epoch, or None
    for a text that does not match.
    """
    expression = _expression(parts)
    letters = "".join(letter for letter, count in parts if count)
    if expression is None or not {"y", "M", "d"} <= set(letters) or len(set(letters)) != len(letters):
        return None
    if not utc and "X" not in letters:
        return None
    match = re.compile(expression, re.ASCII | re.DOTALL).match

    def parse(text: str) -> int | None:
        found = match(text)
        if found is None:
            return None
        values = found.groupdict("0")
        year, month = int(values["y"]), int(values["M"])
        if year < _FIRST_YEAR or not 1 <= month <= 12:
            return None
        minutes = int(values.get("H", 0)) * 60 + int(values.get("m", 0))
        millis = (minutes * 60 + int(values.get("s", 0))) * 1000 + int(values.get("S", 0))
        day = gregorian_day(year, month, int(values["d"]))
        return day * DAY_MS + millis

    return parse


def _expression(parts: Sequence[tuple[str, int]]) -> str | None:
    expression = ""
    for index, (text, count) in enumerate(parts):
        adjoining = index + 1 < len(parts) and parts[index + 1][1] > 0
        if not count:
            expression += re.escape(text)
        elif text == "X" and count <= 3 and not adjoining:
            expression += "Z"
        elif text not in _DIGITS or (count != _DIGITS[text] and (adjoining or text in "yM")):
            return None
        else:
            # A number extends over all digits unless another number follows directly.
            expression += rf"(?P<{text}>\d{{{_DIGITS[text]}}})" + ("" if adjoining else r"(?![\dE])")
    return expression if expression.isascii() else None
