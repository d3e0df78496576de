"""Tells how far a task of change data capture is behind its database: Debezium's MilliSecondsBehindSource, kept up to date."""

from __future__ import annotations

import time
from collections.abc import Callable


class SourceDelay:
    """The delay of the newest event, and the time since then. One thread calls ``polled`` and ``caught_up``; any thread reads.

    Debezium reports the delay of the newest event only, which stays small while a connector cannot read. It includes the
    difference between the clocks of the database and of this machine, as in Debezium.
    """

    def __init__(self, wall: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._clock = clock
        self._newest = 0.0
        self._behind: tuple[float, float] | None = None  # the delay, and when it was found

    def polled(self, event_seconds: float) -> None:
        """Note the time of the newest event that ``poll`` returns, in seconds since the epoch; 0 is not known."""
        if not event_seconds:
            return
        if event_seconds != self._newest:  # else only a heartbeat, or the same transaction
            self._newest = event_seconds
            self._behind = max(0.0, self._wall() - event_seconds), self._clock()

    def caught_up(self) -> None:
        """Note that the database had no other event."""
        self._behind = 0.0, self._clock()

    @property
    def seconds(self) -> float | None:
        """The seconds by which the task is behind at most, None before the first event."""
        if self._behind is None:
            return None
        delay, at = self._behind
        return delay + self._clock() - at
