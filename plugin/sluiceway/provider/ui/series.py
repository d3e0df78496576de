"""Keeps the last hour of a connector's record counts and lags. No I/O. Times are seconds since the epoch.

A sink commits its offsets periodically, by default once a minute, so its count rises in steps. A step is spread over the time
since the previous one, at most ``spread`` seconds, so that a steady sink has a steady rate.
"""

from __future__ import annotations

import bisect
from collections import deque
from itertools import pairwise
from typing import NamedTuple

from sluiceway.api import TopicPartition
from sluiceway.kafka.lag import Offsets

HOUR = 3600.0
MINUTE = 60.0
_DENSE = 180.0  # seconds for which every sample is kept; of older ones, the last of each minute
_WINDOW = 30.0  # seconds that the current rate is averaged over
_MAX_TOPICS = 50  # per connector, of which each has a rate of its own


class Sample(NamedTuple):
    """Records moved since the first sample, and the lag."""

    at: float
    moved: int
    lag: int | None


class Series:
    """The samples of one connector: a few hundred at most, however often they are taken. Not thread-safe.

    Args:
        spread: the longest time between two steps of the count, in seconds; 0 for a count that rises continuously.
    """

    def __init__(self, spread: float = 0.0) -> None:
        self._spread = spread
        self._old: deque[Sample] = deque()
        self._new: deque[Sample] = deque()
        self._positions: Offsets | None = None
        self._moved = 0
        self._topics: dict[str, Series] = {}

    def add(self, at: float, positions: Offsets | None, lag: int | None) -> None:
        """Add a sample that is newer than all others. Does nothing if ``positions`` is None.

        A partition counts from its second sample on. An offset that decreases (reset, or the topic was created again) adds
        nothing.
        """
        if positions is None:
            return
        if self._positions is not None:
            known = positions.keys() & self._positions.keys()
            self._moved += sum(max(0, positions[each] - self._positions[each]) for each in known)
        self._positions = positions
        self._add_topics(at, positions)
        self._new.append(Sample(at, self._moved, lag))
        while self._new[0].at < at - _DENSE:
            sample = self._new.popleft()
            if self._old and _minute(self._old[-1].at) == _minute(sample.at):
                self._old.pop()
            self._old.append(sample)
        while self._old and self._old[0].at < at - HOUR - MINUTE:
            self._old.popleft()

    def __len__(self) -> int:
        return len(self._old) + len(self._new)

    def copy(self) -> Series:
        """Return a copy, without the series of topics, to read while samples are added to this one."""
        copied = Series(self._spread)
        copied._old, copied._new = self._old.copy(), self._new.copy()
        return copied

    def rate(self) -> float | None:
        """Return the current records per second; None before the second sample."""
        samples = self._samples()
        if len(samples) < 2:
            return None
        times, counts = self._line(samples)
        end = times[-1]
        if self._spread:
            # Nothing is known after the last commit; a sink whose next commit is overdue has stopped.
            step = max((sample.at for before, sample in pairwise(samples) if sample.moved > before.moved), default=None)
            if step is None or end - step > self._spread:
                return 0.0
            end = step
        start = max(times[0], end - _WINDOW)
        return 0.0 if end <= start else (_at(times, counts, end) - _at(times, counts, start)) / (end - start)

    def topic_rates(self) -> dict[str, float | None]:
        """Return the current records per second of each topic; none for a connector with too many topics to keep them apart."""
        return {topic: series.rate() for topic, series in self._topics.items()}

    def rates(self, now: float, minutes: int = 60) -> list[float | None]:
        """Return the records per second in each of the last minutes, the newest last; None for a minute without samples."""
        samples = self._samples()
        if len(samples) < 2:
            return [None] * minutes
        times, counts = self._line(samples)
        rates: list[float | None] = []
        for start, end in _minutes(now, minutes):
            since, until = max(start, times[0]), min(end, times[-1])
            # Less than half a minute does not represent the minute.
            known = until - since >= MINUTE / 2
            rates.append((_at(times, counts, until) - _at(times, counts, since)) / (until - since) if known else None)
        return rates

    def lags(self, now: float, minutes: int = 60) -> list[int | None]:
        """Return the lag at the end of each of the last minutes, the newest last; None for a minute without samples."""
        samples = self._samples()
        times = [sample.at for sample in samples]
        lags: list[int | None] = []
        for start, end in _minutes(now, minutes):
            index = bisect.bisect_right(times, end) - 1
            lags.append(samples[index].lag if index >= 0 and times[index] >= start - MINUTE else None)
        return lags

    def _add_topics(self, at: float, positions: Offsets) -> None:
        by_topic: dict[str, dict[TopicPartition, int]] = {}
        for partition, offset in positions.items():
            by_topic.setdefault(partition.topic, {})[partition] = offset
        if len(by_topic) < 2 or len(by_topic) > _MAX_TOPICS:  # the rate of a single topic is the connector's
            self._topics = {}
            return
        self._topics = {topic: self._topics[topic] if topic in self._topics else Series(self._spread) for topic in by_topic}
        for topic, found in by_topic.items():
            self._topics[topic].add(at, found, None)

    def _samples(self) -> list[Sample]:
        return [*self._old, *self._new]

    def _line(self, samples: list[Sample]) -> tuple[list[float], list[float]]:
        """Return the times and counts of points; between two points the count rises evenly."""
        first, *others = samples
        times, counts = [first.at], [float(first.moved)]
        before = first
        for sample in others:
            if sample.moved > before.moved:
                start = min(before.at, max(times[-1], sample.at - self._spread))
                if start > times[-1]:
                    times.append(start)
                    counts.append(float(before.moved))
                times.append(sample.at)
                counts.append(float(sample.moved))
            before = sample
        if before.at > times[-1]:
            times.append(before.at)
            counts.append(float(before.moved))
        return times, counts


def _minute(at: float) -> int:
    return int(at // MINUTE)


def _minutes(now: float, count: int) -> list[tuple[float, float]]:
    """Return start and end of the last clock minutes, including the current one."""
    last = _minute(now)
    return [(number * MINUTE, (number + 1) * MINUTE) for number in range(last - count + 1, last + 1)]


def _at(times: list[float], counts: list[float], at: float) -> float:
    """Return the count at a time, interpolated between two points."""
    after = bisect.bisect_left(times, at)
    if after == 0:
        return counts[0]
    if after == len(times):
        return counts[-1]
    share = (at - times[after - 1]) / (times[after] - times[after - 1])
    return counts[after - 1] + share * (counts[after] - counts[after - 1])
