"""Reads values in PostgreSQL's text format: dates, times, intervals, arrays, geometry, hstore. No I/O.

The sessions use ISO dates, PostgreSQL's interval style, hexadecimal bytea and UTC, so that the log and queries have one form.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from sluiceway.connectors.cdc.temporal import DAY_MICROS, days_from_civil, iso_time

INFINITY, MINUS_INFINITY = "infinity", "-infinity"

_DATE = re.compile(r"(\d+)-(\d\d)-(\d\d)")
_OFFSET = re.compile(r"([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?$")
_INTERVAL = re.compile(
    r"(?:([+-]?\d+) years? ?)?(?:([+-]?\d+) mons? ?)?(?:([+-]?\d+) days? ?)?(?:([+-])?(\d+):(\d\d):(\d\d)(?:\.(\d+))?)?$"
)
_HSTORE = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:NULL|"((?:[^"\\]|\\.)*)")', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|Infinity|NaN)")

# Of Debezium's snapshots, which read dates through Java's Date.
_SNAPSHOT_INFINITY = {INFINITY: -622_191_234, MINUS_INFINITY: -625_821_272}
_STREAM_INFINITY = {INFINITY: 2_146_033_979, MINUS_INFINITY: -2_147_472_691}
_GAP_START, _GAP_END = -141_437, -141_428  # 5 to 14 October 1582, which Java's calendar does not have


def parse_date(text: str) -> int:
    """Return the days since the epoch."""
    match = _DATE.match(text)
    if match is None:
        return _STREAM_INFINITY[text]
    year, month, day = map(int, match.groups())
    return days_from_civil(1 - year if text.endswith(" BC") else year, month, day)


def parse_snapshot_date(text: str) -> int:
    """Return the days that a snapshot of Debezium has: years BC lose their sign, and a gap of 1582 is left out."""
    if text in _SNAPSHOT_INFINITY:
        return _SNAPSHOT_INFINITY[text]
    days = parse_date(text.removesuffix(" BC"))
    return days + 10 if _GAP_START <= days <= _GAP_END else days


def parse_time(text: str) -> int:
    """Return the microseconds since midnight, at most those of 24:00."""
    hour, minute, second = text.split(":")
    whole, _, fraction = second.partition(".")
    return (int(hour) * 3600 + int(minute) * 60 + int(whole)) * 1_000_000 + int(fraction.ljust(6, "0") or 0)


def _offset_seconds(match: re.Match[str]) -> int:
    sign, hours, minutes, seconds = match.groups()
    total = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return -total if sign == "-" else total


def zoned_time(text: str) -> str:
    """Return a time with time zone in UTC."""
    match = _OFFSET.search(text)
    if match is None:
        return text
    micros = parse_time(text[: match.start()])
    offset = _offset_seconds(match)
    if micros == DAY_MICROS and not offset:
        return "24:00:00Z"
    return f"{iso_time((micros - offset * 1_000_000) % DAY_MICROS)}Z"


def parse_timestamp(text: str) -> tuple[int, int]:
    """Return the seconds since the epoch and the microseconds of the second; a zone is applied. Not for infinity."""
    before_christ = text.endswith(" BC")
    date, _, clock = text.removesuffix(" BC").partition(" ")
    days = parse_date(f"{date} BC" if before_christ else date)
    match = _OFFSET.search(clock)
    offset = 0
    if match is not None:
        offset = _offset_seconds(match)
        clock = clock[: match.start()]
    seconds, micros = divmod(parse_time(clock), 1_000_000)
    return days * 86_400 + seconds - offset, micros


class Interval(NamedTuple):
    """The parts of an interval; all have their own sign. ``micros`` includes hours, minutes and seconds."""

    years: int
    months: int
    days: int
    micros: int

    @property
    def clock(self) -> tuple[int, int, str]:
        """Hours, minutes and seconds, with the interval's sign."""
        sign = -1 if self.micros < 0 else 1
        seconds, fraction = divmod(abs(self.micros), 1_000_000)
        minutes, second = divmod(seconds, 60)
        shown = f"{second}.{fraction:06d}".rstrip("0") if fraction else str(second)
        return sign * (minutes // 60), sign * (minutes % 60), f"-{shown}" if sign < 0 and float(shown) else shown


def parse_interval(text: str) -> Interval:
    """Return the parts of an interval in PostgreSQL's style."""
    match = _INTERVAL.match(text)
    if match is None:
        raise ValueError(f"not an interval: {text}")
    years, months, days, sign, hours, minutes, seconds, fraction = match.groups()
    micros = (int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)) * 1_000_000
    micros += int((fraction or "").ljust(6, "0"))
    return Interval(int(years or 0), int(months or 0), int(days or 0), -micros if sign == "-" else micros)


def parse_bytea(text: str) -> bytes:
    """Return the bytes of a bytea in hexadecimal form."""
    return bytes.fromhex(text[2:])


def parse_bits(text: str) -> bytes:
    """Return bits as little-endian bytes without trailing zero bytes (Java's ``BitSet.toByteArray``)."""
    number = int(text or "0", 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


ArrayValue = list["str | ArrayValue | None"]


def parse_array(text: str, delimiter: str = ",") -> ArrayValue:
    """Return the elements of an array as text, nested for several dimensions; those of an int2vector or oidvector have blanks."""
    if not text.endswith("}"):
        return list(text.split())
    start = text.index("{")  # after bounds such as [0:1]=
    elements, end = _elements(text, start + 1, delimiter)
    assert end == len(text)  # noqa: S101 (PostgreSQL writes nothing after an array)
    return elements


def _elements(text: str, at: int, delimiter: str) -> tuple[ArrayValue, int]:
    found: ArrayValue = []
    while text[at] != "}":
        char = text[at]
        if char == "{":
            inner, at = _elements(text, at + 1, delimiter)
            found.append(inner)
        elif char == '"':
            value, at = _quoted(text, at + 1)
            found.append(value)
        elif char == delimiter:
            at += 1
        else:
            end = at
            while text[end] not in (delimiter, "}"):
                end += 1
            value = text[at:end]
            found.append(None if value.upper() == "NULL" else value)
            at = end
    return found, at + 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    end = at
    while text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    return _ESCAPE.sub(r"\1", text[at:end]), end + 1


def parse_hstore(text: str) -> dict[str, str | None]:
    """Return the pairs of an hstore."""
    return {
        _ESCAPE.sub(r"\1", key): None if value is None else _ESCAPE.sub(r"\1", value)
        for key, value in ((match.group(1), match.group(2)) for match in _HSTORE.finditer(text))
    }


def numbers(text: str) -> list[float]:
    """Return the numbers in the text of a geometric value."""
    return [float(number) for number in _NUMBER.findall(text)]


def points(text: str) -> list[tuple[float, float]]:
    """Return the points in the text of a geometric value."""
    found = numbers(text)
    return list(zip(found[::2], found[1::2], strict=True))


def wkb_point(x: float, y: float) -> bytes:
    """Return a point in well-known binary form."""
    return struct.pack("<BIdd", 1, 1, x, y)


def wkb_line(vertices: list[tuple[float, float]]) -> bytes:
    """Return a line string in well-known binary form."""
    return struct.pack("<BII", 1, 2, len(vertices)) + b"".join(struct.pack("<dd", *point) for point in vertices)


def wkb_polygon(ring: list[tuple[float, float]]) -> bytes:
    """Return a polygon with one ring in well-known binary form. The ring's last point is its first."""
    return struct.pack("<BIII", 1, 3, 1, len(ring)) + b"".join(struct.pack("<dd", *point) for point in ring)


def box_ring(text: str) -> list[tuple[float, float]]:
    """Return the ring of a box."""
    (x1, y1), (x2, y2) = points(text)
    return [(x1, y1), (x1, y2), (x2, y2), (x2, y1), (x1, y1)]
