"""Decides when heartbeat records are due. No I/O but the clock."""

from __future__ import annotations

import time


class Heartbeats:
    """The interval of ``heartbeat.interval.ms``. ``interval`` is in seconds; 0 means no heartbeats."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._due = time.monotonic() + interval

    def due(self) -> bool:
        """Return True if a heartbeat is due, and start the next interval."""
        now = time.monotonic()
        if not self._interval or now < self._due:
            return False
        self._due = now + self._interval
        return True
