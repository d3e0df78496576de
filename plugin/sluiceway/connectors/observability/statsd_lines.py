"""Reads lines of StatsD, with the tags of DogStatsD. No I/O."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from sluiceway.connectors.observability.records import DELTA, Point, Series
from sluiceway.errors import DataError

COUNTER, GAUGE, SET = "counter", "gauge", "set"
TIMER, HISTOGRAM, DISTRIBUTION = "timer", "histogram", "distribution"
_TYPES = {"c": COUNTER, "g": GAUGE, "s": SET, "ms": TIMER, "h": HISTOGRAM, "d": DISTRIBUTION}
_MILLISECONDS = "ms"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NO_METRICS = {"_e{": "an event", "_sc|": "a service check"}
_LEFT_OUT = ("c:", "e:", "card:")  # DogStatsD's container, external data, and cardinality
_MOST_TIME = 2**63 // 1000


@dataclass(slots=True)
class Sample:
    """A value of a line.

    Attributes:
        value: the number; None for a set.
        member: what is added to a set.
        change: True if the number is added to a gauge instead of replacing its value.
        rate: the share of events that the client sends, above 0 and at most 1; None if the line has none.
        timestamp: of the line, in milliseconds; None if it has none.
    """

    series: Series
    value: float | None = None
    member: str | None = None
    change: bool = False
    rate: float | None = None
    timestamp: int | None = None

    def point(self) -> Point:
        """Return the point of the value alone."""
        temporality = DELTA if self.change or self.series.type == COUNTER else None
        return Point(
            self.series,
            self.value,
            self.timestamp,
            temporality=temporality,
            sample_rate=self.rate,
            member=self.member,
        )


def samples_of(line: bytes) -> list[Sample]:
    """Return the samples of a line without its end: one, or several of the same series. Raises DataError."""
    try:
        text = line.decode().strip()
    except UnicodeDecodeError as error:
        raise DataError(f"it is not UTF-8: {error}") from error
    for start, what in _NO_METRICS.items():
        if text.startswith(start):
            raise DataError(f"it is {what} of DogStatsD, which is no metric")
    head, *sections = text.split("|")
    name, colon, content = head.partition(":")
    if not name or not colon or not sections:
        raise DataError("it is not of the form name:value|type")
    kind = _TYPES.get(sections[0])
    if kind is None:
        raise DataError(f"its type {sections[0][:20]!r} is none of {', '.join(_TYPES)}")
    rate, tags, timestamp = _sections(sections[1:])
    series = Series.of(name, kind, tags, _MILLISECONDS if kind == TIMER else None)
    if kind == SET:
        if not content:
            raise DataError("it has no member of the set")
        return [Sample(series, member=content, rate=rate, timestamp=timestamp)]
    return [
        Sample(series, _number(each), change=kind == GAUGE and each[:1] in ("+", "-"), rate=rate, timestamp=timestamp)
        for each in content.split(":")
    ]


def _sections(sections: list[str]) -> tuple[float | None, dict[str, str], int | None]:
    rate = timestamp = None
    tags: dict[str, str] = {}
    seen: set[str] = set()
    for section in sections:
        kind = section[:1]
        if kind in ("@", "#", "T"):
            if kind in seen:
                raise DataError(f"it has the section {kind} twice")
            seen.add(kind)
        if kind == "@":
            rate = _number(section[1:])
            if not 0 < rate <= 1:
                raise DataError("its sample rate is not above 0 and at most 1")
        elif kind == "#":
            tags = _tags(section[1:])
        elif kind == "T":
            if not (section[1:].isascii() and section[1:].isdigit()) or len(section) > 20 or int(section[1:]) >= _MOST_TIME:
                raise DataError("its time is no number of seconds")
            timestamp = int(section[1:]) * 1000
        elif not section.startswith(_LEFT_OUT):
            raise DataError(f"its section {section[:20]!r} is not known")
    return rate, tags, timestamp


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise DataError(f"{text[:20]!r} is not a number")
    value = float(text)
    if not math.isfinite(value):
        raise DataError(f"{text[:20]!r} is too large")
    return value


def _tags(text: str) -> dict[str, str]:
    """Return tags as labels. A tag without a value has an empty one; the values of a tag that comes twice are joined."""
    tags: dict[str, str] = {}
    for tag in text.split(","):
        name, _, value = tag.partition(":")
        if name:
            tags[name] = f"{tags[name]},{value}" if name in tags else value
    return tags
