"""Aggregates samples of StatsD by series over an interval. No I/O."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field

from sluiceway.connectors.observability.records import DELTA, Histogram, Point, Series
from sluiceway.connectors.observability.statsd_lines import COUNTER, GAUGE, SET, Sample


@dataclass(slots=True)
class _Counted:
    """The samples of a series in an interval. ``lines`` are the samples; the others are scaled by their sample rates."""

    series: Series
    lines: int = 0
    count: float = 0.0
    sum: float = 0.0
    min: float = math.inf
    max: float = -math.inf
    members: set[str] = field(default_factory=set)


class Aggregates:
    """The series of the current interval, at most ``most``, and the values of as many gauges, which last over intervals."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._live: dict[tuple[str, str], _Counted] = {}
        self._gauges: OrderedDict[str, float] = OrderedDict()
        self._members = 0

    @property
    def lines(self) -> int:
        """The samples of the current interval."""
        return sum(each.lines for each in self._live.values())

    def add(self, sample: Sample) -> bool:
        """Add a sample. Return False if there are too many series, or members of sets."""
        series = sample.series
        identity = series.type, series.key
        counted = self._live.get(identity)
        if counted is None:
            if len(self._live) >= self._most:
                return False
            counted = _Counted(series)
        if series.type == SET:
            if not self._join(counted, sample.member or ""):
                return False
        elif sample.value is not None:
            if series.type == GAUGE:
                self._set(series.key, sample.value, change=sample.change)
            else:
                weight = 1 / (sample.rate or 1.0)
                counted.count += weight
                counted.sum += sample.value * weight
                counted.min, counted.max = min(counted.min, sample.value), max(counted.max, sample.value)
        counted.lines += 1
        self._live[identity] = counted
        return True

    def flush(self, start: int, end: int) -> list[Point]:
        """Return a point for each series of the interval, and begin the next one. The times are in milliseconds."""
        points = [self._point(each, start, end) for each in self._live.values()]
        self._live = {}
        self._members = 0
        return points

    def _join(self, counted: _Counted, member: str) -> bool:
        if member not in counted.members:
            if self._members >= self._most:
                return False
            self._members += 1
            counted.members.add(member)
        return True

    def _set(self, key: str, value: float, *, change: bool) -> None:
        self._gauges[key] = self._gauges.get(key, 0.0) + value if change else value
        self._gauges.move_to_end(key)
        if len(self._gauges) > self._most:
            self._gauges.popitem(last=False)

    def _point(self, counted: _Counted, start: int, end: int) -> Point:
        series = counted.series
        if series.type == GAUGE:
            return Point(series, self._gauges[series.key], end)
        if series.type == SET:
            return Point(series, float(len(counted.members)), end, start, temporality=DELTA)
        if series.type == COUNTER:
            return Point(series, counted.sum, end, start, temporality=DELTA)
        found = Histogram([], [], counted.count, counted.sum, counted.min, counted.max)
        return Point(series, found, end, start, temporality=DELTA, mean=counted.sum / counted.count)
