"""Shows in a task's status that it is trying a call again, and why, until the call succeeds."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sluiceway.errors import RetriableError
from sluiceway.runtime.task import TaskReporter
from sluiceway.storage.model import State

log = logging.getLogger(__name__)

_SHOWN_EVERY = 60.0


class RetryStatus:
    """Reports RUNNING with the reason of a retry: at the first failure, for another reason, and every minute.

    A status that cannot be written is only logged. Runs on the task's thread.
    """

    def __init__(self, reporter: TaskReporter, clock: Callable[[], float] = time.monotonic) -> None:
        self._reporter = reporter
        self._clock = clock
        self._failures = 0
        self._since = self._shown_at = 0.0
        self._reason = ""

    def failed(self, what: str, error: RetriableError) -> None:
        """Note that a call has failed and will be repeated; ``what`` names it."""
        now = self._clock()
        if not self._failures:
            self._since = now
        self._failures += 1
        reason = f"{what} failed: {error}"
        if self._failures == 1 or reason != self._reason or now - self._shown_at >= _SHOWN_EVERY:
            self._reason, self._shown_at = reason, now
            since = f" (attempt {self._failures}, for {now - self._since:.0f} s)" if self._failures > 1 else ""
            self._report(f"The task tries again{since}. {reason}")

    def succeeded(self) -> None:
        """Note that the call has succeeded."""
        if self._failures:
            self._failures, self._reason = 0, ""
            self._report(None)

    def _report(self, trace: str | None) -> None:
        try:
            self._reporter.report(State.RUNNING, trace)
        except Exception as error:  # noqa: BLE001 (a status must not end the task, whatever went wrong)
            log.warning("Cannot write the task's status: %s", error)
