"""Tries again what failed with a RetriableError, ever later, for as long as ``errors.retry.timeout`` says."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from sluiceway.errors import RetriableError

log = logging.getLogger(__name__)

_FIRST_DELAY_SECONDS = 0.3
_MOST_DOUBLINGS = 40

T = TypeVar("T")
Wait = Callable[[float], None]
"""Waits for some seconds; raises to give up because the task has another order."""


def delay(attempt: int, longest: float, chance: float) -> float:
    """Return the seconds to wait after an attempt, the first being 1: 0.3 and twice as long each time.

    Beyond ``longest`` it is a part of that, by ``chance`` (0 to 1), so that tasks that failed together do not return together.
    """
    seconds = _FIRST_DELAY_SECONDS * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS)
    return seconds if seconds <= longest else longest * chance


class Retries:
    """For one task. ``retried`` is called before each further attempt, ``failed`` after each that failed."""

    def __init__(
        self,
        seconds: float,
        longest_delay: float,
        wait: Wait,
        *,
        retried: Callable[[], None],
        failed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._longest_delay = longest_delay
        self._wait = wait
        self._retried = retried
        self._failed = failed
        self._clock = clock

    def again(self, operation: Callable[[], T], what: str, error: Exception) -> T:
        """Return what ``operation``, which has failed with ``error`` once, returns in the end; else raise its last error."""
        deadline = self._clock() + self._seconds
        attempt = 1
        while isinstance(error, RetriableError) and (now := self._clock()) < deadline:
            seconds = min(delay(attempt, self._longest_delay, random.random()), deadline - now)  # noqa: S311
            log.warning("%s (attempt %d); trying again in %.1f s: %s", what, attempt, seconds, error)
            self._wait(seconds)
            self._retried()
            attempt += 1
            try:
                return operation()
            except Exception as next_error:  # noqa: BLE001 (the caller's to judge)
                self._failed()
                error = next_error
        raise error
