"""A connector's last hour: how many records it has moved, and its lag, at times. Pure; times are seconds since the epoch.

Sinks commit now and then, by default once a minute, so their count stands still and then leaps. A leap is spread over
the time since the last one, at most ``spread`` seconds, so that a steady sink shows a steady rate.
"""

from __future__ import annotations

import bisect
from collections import deque
from itertools import pairwise
from typing import NamedTuple

from sluiceway.kafka.lag import Offsets

HOUR = 3600.0
MINUTE = 60.0
_DENSE = 180.0  # seconds for which every sample is kept; of older ones the last in each minute
_WINDOW = 30.0


class Sample(NamedTuple):
    at: float
    moved: int
    lag: int | None


class Series:
    """What was seen of one connector. Bounded: some hundred samples, however often it is looked at."""

    def __init__(self, spread: float = 0.0) -> None:
        self._spread = spread
        self._old: deque[Sample] = deque()
        self._new: deque[Sample] = deque()
        self._positions: Offsets | None = None
        self._moved = 0

    def add(self, at: float, positions: Offsets | None, lag: int | None) -> None:
        """Take note of what was seen at a time later than those before.

        Partitions count once they were seen twice, and what goes back (offsets that were reset, topics made anew) not at all.
        """
        if positions is None:
            return
        if self._positions is not None:
            known = positions.keys() & self._positions.keys()
            self._moved += sum(max(0, positions[place] - self._positions[place]) for place in known)
        self._positions = positions
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
        """Return the series as it is now, to be read while this one goes on."""
        copied = Series(self._spread)
        copied._old, copied._new = self._old.copy(), self._new.copy()
        return copied

    def rate(self) -> float | None:
        """Return the records per second of late; None before there are two looks at it."""
        samples = self._samples()
        if len(samples) < 2:
            return None
        times, counts = self._line(samples)
        end = times[-1]
        if self._spread:
            # The last commit ends what is known; a sink that should have committed again since then stands still.
            leap = max((sample.at for before, sample in pairwise(samples) if sample.moved > before.moved), default=None)
            if leap is None or end - leap > self._spread:
                return 0.0
            end = leap
        start = max(times[0], end - _WINDOW)
        return 0.0 if end <= start else (_at(times, counts, end) - _at(times, counts, start)) / (end - start)

    def rates(self, now: float, minutes: int = 60) -> list[float | None]:
        """Return the records per second in each of the last minutes, the newest last; None where nobody looked."""
        samples = self._samples()
        if len(samples) < 2:
            return [None] * minutes
        times, counts = self._line(samples)
        rates: list[float | None] = []
        for start, end in _minutes(now, minutes):
            since, until = max(start, times[0]), min(end, times[-1])
            # Less than half a minute says nothing of a minute.
            known = until - since >= MINUTE / 2
            rates.append((_at(times, counts, until) - _at(times, counts, since)) / (until - since) if known else None)
        return rates

    def lags(self, now: float, minutes: int = 60) -> list[int | None]:
        """Return the lag at the end of each of the last minutes, the newest last; None where nobody looked."""
        samples = self._samples()
        times = [sample.at for sample in samples]
        lags: list[int | None] = []
        for start, end in _minutes(now, minutes):
            index = bisect.bisect_right(times, end) - 1
            lags.append(samples[index].lag if index >= 0 and times[index] >= start - MINUTE else None)
        return lags

    def _samples(self) -> list[Sample]:
        return [*self._old, *self._new]

    def _line(self, samples: list[Sample]) -> tuple[list[float], list[float]]:
        """Return the count of records over time as a line through points that rises evenly between them."""
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
    """Return beginning and end of the last minutes by the clock, the one under way included."""
    last = _minute(now)
    return [(number * MINUTE, (number + 1) * MINUTE) for number in range(last - count + 1, last + 1)]


def _at(times: list[float], counts: list[float], at: float) -> float:
    after = bisect.bisect_left(times, at)
    if after == 0:
        return counts[0]
    if after == len(times):
        return counts[-1]
    share = (at - times[after - 1]) / (times[after] - times[after - 1])
    return counts[after - 1] + share * (counts[after] - counts[after - 1])
