"""Parses dates that are written exactly as their pattern by one regular expression, which is fast. No I/O.

Most dates are. Others are parsed field by field; both ways give the same result for dates that match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sluiceway.java.dates.hybrid_calendar import DAY_MS, gregorian_day

_DIGITS = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 3}
_FIRST_YEAR = 1583  # the first full year of the Gregorian calendar

StrictParse = Callable[[str], "int | None"]


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
