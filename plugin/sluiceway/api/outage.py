"""Limits how long a sink task waits for a target system that cannot be reached. No I/O."""

from __future__ import annotations

import time
from collections.abc import Callable

from sluiceway.errors import ConnectError

UNREACHABLE_MS = "sluiceway.unreachable.timeout.ms"
"""The connectors' key for the limit."""


class Outage:
    """Measures how long the target system has been unreachable. ``limit`` is in seconds; None is unlimited."""

    def __init__(self, limit: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._since: float | None = None

    def ended(self) -> None:
        """Record that the system has answered."""
        self._since = None

    def lasts(self, error: Exception) -> None:
        """Record a failure. Raises ConnectError, caused by ``error``, if the outage has lasted for the limit."""
        now = self._clock()
        self._since = now if self._since is None else self._since
        if self._limit is not None and now - self._since >= self._limit:
            raise ConnectError(f"{error} (for {now - self._since:.0f} s, more than {UNREACHABLE_MS} allows)") from error
