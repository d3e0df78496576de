"""Decides when a change in a source's system requires a run. No I/O, except for the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sluiceway.provider.progress.cluster_view import DriverSeen

_UNSEEN_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class _Fired:
    """The last run that was required."""

    mark: object
    generation: int
    at: float


class ChangeGate:
    """Opens while no driver runs: at the first mark, and when the mark differs from that of the last opening.

    What changes while a run is under way opens it after the run. It stays closed until the run that it required has ended, so
    that a source that changes all the time has one run after the other, and not a queue of them. If that run has failed, or has
    not begun, it opens again after ``patience`` seconds, also without a change. Closed while the connector is paused and for one
    poll after it resumes, because Airflow drops asset events for paused DAGs.
    """

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._fired: _Fired | None = None
        self._was_paused = False
        self._was_running = False
        self._ended: tuple[int, float] | None = None  # a generation whose run was not seen RUNNING, and since when it is at rest

    def forget(self) -> None:
        """Open at the next mark: what the marks say is not comparable any more."""
        self._fired = None

    def opens(self, mark: object, driver: DriverSeen, *, paused: bool = False) -> bool:
        """Return whether a run must start now. Call once for each poll.

        Args:
            mark: what the watch has seen; None if it could not say.
            driver: the connector's driver.
            paused: whether the connector's target state is PAUSED or STOPPED.
        """
        was_paused, self._was_paused = self._was_paused, paused
        self._was_running = self._was_running or driver.lives
        if paused or was_paused or driver.lives or mark is None or not self._is_due(mark, driver):
            return False
        self._fired = _Fired(mark, driver.generation, self._clock())
        self._was_running, self._ended = False, None
        return True

    def _is_due(self, mark: object, driver: DriverSeen) -> bool:
        fired = self._fired
        if fired is None:
            return True
        if driver.generation > fired.generation and driver.clean and self._has_ended(driver.generation):
            return mark != fired.mark
        return self._clock() - fired.at >= self._patience

    def _has_ended(self, generation: int) -> bool:
        """Return whether a driver that does not live has run. A new one is at rest, too, until its tasks run."""
        now = self._clock()
        if self._ended is None or self._ended[0] != generation:
            self._ended = generation, now
        return self._was_running or now - self._ended[1] >= _UNSEEN_SECONDS
