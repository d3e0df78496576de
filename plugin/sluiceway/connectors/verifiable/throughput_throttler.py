"""Limits records per second, like Kafka's ThroughputThrottler. The caller waits, and tests pass a clock."""

from __future__ import annotations

import time
from collections.abc import Callable

_MAX_CATCH_UP_SECONDS = 1.0
_SLICE_SECONDS = 0.05


class ThroughputThrottler:
    """Computes how many records may be sent now at ``rate`` records per second; negative: no limit, 0: no records.

    After an interruption (a paused task, an unreachable Kafka), at most one second's records are caught up.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._due = clock()  # when the next record may be sent

    def take(self, limit: int) -> int:
        """Return how many of ``limit`` records may be sent now, and count them as sent."""
        if self._rate <= 0:
            return limit if self._rate else 0
        now = self._clock()
        self._due = max(self._due, now - _MAX_CATCH_UP_SECONDS)
        count = max(0, min(limit, int((now - self._due) * self._rate) + 1)) if now >= self._due else 0
        self._due += count / self._rate
        return count

    def wait_seconds(self, limit: int) -> float:
        """Return the seconds until the records of 50 ms, at most ``limit``, may be sent: few polls with small batches."""
        if self._rate <= 0:
            return 0.0 if self._rate else _SLICE_SECONDS
        wanted = min(limit, max(1, int(self._rate * _SLICE_SECONDS)))
        return max(0.0, self._due + (wanted - 1) / self._rate - self._clock())
