"""Decides when a connector has made no progress for too long. No I/O but the clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from sluiceway.provider.progress.connector_progress import ConnectorProgress


class NoProgressWatch:
    """Compares measurements of one connector.

    A sink makes no progress while its lag is not 0 and its committed offsets stay. A source has no lag, so it makes none while
    its topics do not grow.

    Args:
        seconds: without progress, after which ``check`` returns a reason.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._count: int | None = None
        self._since = clock()
        self._told = False

    def check(self, now: ConnectorProgress) -> str | None:
        """Return why the connector counts as one without progress: once, and again after it has moved records since."""
        if now.count is None or now.count != self._count or now.lag == 0:
            self._count, self._since, self._told = now.count, self._clock(), False
            return None
        seconds = self._clock() - self._since
        if self._told or seconds < self._seconds:
            return None
        self._told = True
        waiting = "no record written" if now.lag is None else f"no record committed, {now.lag} are waiting"
        return f"no progress for {seconds:.0f} s: {waiting}"
