"""Spreads records over time. The clock and the waiting are the caller's, so that it can be tested without either."""

from __future__ import annotations

import time
from collections.abc import Callable

_FORGIVEN_SECONDS = 1.0
_SLICE_SECONDS = 0.05


class ThroughputThrottler:
    """Says how many records may go now at ``rate`` records per second; a negative rate is no limit, 0 is none at all.

    What could not go for more than a second (the task was paused, Kafka was away) is not made up for.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._due = clock()  # when the next record may go

    def take(self, most: int) -> int:
        """Return how many of ``most`` records may go now, and count them as gone."""
        if self._rate <= 0:
            return most if self._rate else 0
        now = self._clock()
        self._due = max(self._due, now - _FORGIVEN_SECONDS)
        count = max(0, min(most, int((now - self._due) * self._rate) + 1)) if now >= self._due else 0
        self._due += count / self._rate
        return count

    def wait_seconds(self, most: int) -> float:
        """Return the seconds until about a 20th of a second's records, at most ``most``, may go: few polls, small bursts."""
        if self._rate <= 0:
            return 0.0 if self._rate else _SLICE_SECONDS
        wanted = min(most, max(1, int(self._rate * _SLICE_SECONDS)))
        return max(0.0, self._due + (wanted - 1) / self._rate - self._clock())
