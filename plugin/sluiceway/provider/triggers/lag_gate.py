"""When a sink's lag is a reason for a run. Pure, but for the clock."""

from __future__ import annotations

import time
from collections.abc import Callable


class LagGate:
    """Opens when there is enough to do and nobody does it.

    A lag that stays opens it again only once something was committed, or after ``patience`` seconds: else a run is on its
    way, or has just failed. While the connector rests it stays shut, and for one look more: to a paused DAG, and one that
    is just being unpaused, an event would be lost.
    """

    def __init__(self, at_least: int, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._at_least = at_least
        self._patience = patience
        self._clock = clock
        self._told_at = float("-inf")
        self._told: int | None = None
        self._rested = False

    def opens(self, lag: int | None, committed: int | None, *, running: bool, resting: bool = False) -> bool:
        """Return whether to begin, given how many records are left and committed, and whether a driver is at work.

        ``resting``: the connector is to be paused or stopped.
        """
        rested, self._rested = self._rested, resting
        if resting or rested or running or lag is None or lag < self._at_least:
            return False
        if committed == self._told and self._clock() - self._told_at < self._patience:
            return False
        self._told, self._told_at = committed, self._clock()
        return True
