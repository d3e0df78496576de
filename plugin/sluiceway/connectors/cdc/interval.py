"""Decides when a task's heartbeat records, idle offsets and checks of the log are due. No I/O but the clock."""

from __future__ import annotations

import time


class Interval:
    """An interval in seconds; 0 means never. With ``at_once``, the first call of ``due`` returns True."""

    def __init__(self, seconds: float, *, at_once: bool = False) -> None:
        self._seconds = seconds
        self._due = time.monotonic() + (0.0 if at_once else seconds)

    def due(self) -> bool:
        """Return True if the interval is over, and start the next one."""
        now = time.monotonic()
        if not self._seconds or now < self._due:
            return False
        self._due = now + self._seconds
        return True
