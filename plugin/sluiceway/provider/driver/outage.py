"""Logs that Airflow or Kafka does not answer a task that asks again and again: once when it begins, and once when it is over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from airflow.sdk.exceptions import AirflowRuntimeError

from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_EXPECTED = (AirflowRuntimeError, ConnectError, OSError)


class Outage:
    """A question that is repeated until it is answered. Used by one thread.

    Args:
        what: what cannot be done meanwhile, for the log.
        clock: returns seconds.
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._since: float | None = None

    def failed(self, error: Exception) -> None:
        """Log the first failure; with a trace if it is no outage but a defect."""
        if self._since is None:
            self._since = self._clock()
            log.warning("%s, trying again: %s", self._what, error, exc_info=not isinstance(error, _EXPECTED))

    def answered(self) -> None:
        """Log the end of an outage."""
        if self._since is not None:
            log.info("%s: over after %.0f s", self._what, self._clock() - self._since)
            self._since = None
