"""Rates, averages, and maxima over the last windows of time, computed as Kafka's clients and Kafka Connect do. No I/O.

``metrics.num.samples`` is 2 and ``metrics.sample.window.ms`` is 30000, Kafka's defaults.
"""

from __future__ import annotations

import math

WINDOW_SECONDS = 30.0
_SAMPLES = 2
NAN = math.nan


class _Sample:
    """The values recorded in one window."""

    __slots__ = ("count", "largest", "smallest", "start", "total")

    def __init__(self, start: float) -> None:
        self.start = start
        self.count = 0
        self.total = 0.0
        self.largest = -math.inf
        self.smallest = math.inf


class Sampled:
    """Values of the last windows, and their total since the start.

    One thread records; others may read at the same time. Reading changes nothing, so a reader at worst misses the value that
    is being recorded. ``now`` is monotonic seconds throughout.
    """

    __slots__ = ("_before", "_current", "total")

    def __init__(self, now: float) -> None:
        self._current = _Sample(now)
        self._before: _Sample | None = None
        self.total = 0.0

    def record(self, value: float, now: float) -> None:
        """Record a value. Costs some tenths of a microsecond."""
        sample = self._current
        if now - sample.start >= WINDOW_SECONDS:
            self._before = sample
            sample = self._current = _Sample(now)
        sample.count += 1
        sample.total += value
        if value > sample.largest:
            sample.largest = value
        if value < sample.smallest:
            sample.smallest = value
        self.total += value

    def rate(self, now: float) -> float:
        """Return the sum of values per second. As in Kafka, the first window counts as a full one before it is over."""
        samples = self._recent(now)
        if not samples:
            return 0.0
        elapsed = now - min(sample.start for sample in samples)
        full = int(elapsed / WINDOW_SECONDS)
        if full < _SAMPLES - 1:
            elapsed += (_SAMPLES - 1 - full) * WINDOW_SECONDS
        return sum(sample.total for sample in samples) / elapsed

    def average(self, now: float) -> float:
        """Return the average value, NaN if there is none."""
        samples = self._recent(now)
        count = sum(sample.count for sample in samples)
        return sum(sample.total for sample in samples) / count if count else NAN

    def largest(self, now: float) -> float:
        """Return the largest value, NaN if there is none."""
        found = max((sample.largest for sample in self._recent(now)), default=-math.inf)
        return NAN if found == -math.inf else found

    def smallest(self, now: float) -> float:
        """Return the smallest value, NaN if there is none."""
        found = min((sample.smallest for sample in self._recent(now)), default=math.inf)
        return NAN if found == math.inf else found

    def _recent(self, now: float) -> list[_Sample]:
        samples = (self._before, self._current)
        return [sample for sample in samples if sample is not None and now - sample.start < _SAMPLES * WINDOW_SECONDS]
