"""Says that rows wait for open transactions, so that nobody has to guess why they do not come. Executor."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

_FIRST_SECONDS = 60.0  # until the first word; then it is told ever more seldom


class Wait:
    """What one table's rows wait for at the moment."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cause: object = None
        self._since = 0.0
        self._next = _FIRST_SECONDS

    def note(self, cause: object, message: str) -> float:
        """Return for how many seconds the same cause, None for none, has been noted; log the message where that is long."""
        now = self._clock()
        if cause is None or cause != self._cause:
            self._cause, self._since, self._next = cause, now, _FIRST_SECONDS
        seconds = now - self._since
        if seconds >= self._next:
            log.warning("%s (for %.0f s now)", message, seconds)
            self._next = 2 * seconds
        return seconds
