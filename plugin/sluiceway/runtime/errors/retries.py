"""Retries operations that failed with a RetriableError, with exponential back-off, until ``errors.retry.timeout``."""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable
from typing import TypeVar

from sluiceway.backoff import pause_after
from sluiceway.errors import RetriableError
from sluiceway.runtime.waits import Waits

log = logging.getLogger(__name__)

_FIRST_DELAY_SECONDS = 0.3
_WHAT = "Handling a record"

T = TypeVar("T")
Wait = Callable[[float], None]
"""Waits for some seconds. Raises Interrupted or Abandoned if the task gets another command."""


def retry_delay(attempt: int, longest: float, jitter: float) -> float:
    """Return the seconds to wait after attempt number ``attempt`` (from 1): 0.3, doubled after each further attempt.

    A delay above ``longest`` becomes ``longest * jitter`` (``jitter`` between 0 and 1), so that tasks that failed at the
    same time do not retry at the same time.
    """
    seconds = pause_after(attempt, _FIRST_DELAY_SECONDS, math.inf)
    return seconds if seconds <= longest else longest * jitter


class Retries:
    """Retries the operations of one task for up to ``seconds``. Not thread-safe.

    ``on_retry`` is called before each further attempt, ``on_failure`` after each of them that failed. ``waits`` shows them.
    """

    def __init__(
        self,
        seconds: float,
        longest_delay: float,
        wait: Wait,
        *,
        on_retry: Callable[[], None],
        on_failure: Callable[[], None],
        waits: Waits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._longest_delay = longest_delay
        self._wait = wait
        self._on_retry = on_retry
        self._on_failure = on_failure
        self._waits = waits or Waits()
        self._clock = clock

    def retry(self, operation: Callable[[], T], description: str, error: Exception) -> T:
        """Return the result of an operation whose first attempt failed with ``error``.

        Raises the last attempt's error once it is not a RetriableError or the time is up, and what ``wait`` raises.
        """
        deadline = self._clock() + self._seconds
        attempt = 1
        while isinstance(error, RetriableError) and (now := self._clock()) < deadline:
            seconds = min(retry_delay(attempt, self._longest_delay, random.random()), deadline - now)  # noqa: S311
            log.warning("%s (attempt %d); retrying in %.1f s: %s", description, attempt, seconds, error)
            self._waits.failed(_WHAT, error, seconds)
            self._wait(seconds)
            self._on_retry()
            attempt += 1
            try:
                result = operation()
            except Exception as next_error:  # noqa: BLE001 (judged by the loop's condition)
                self._on_failure()
                error = next_error
            else:
                self._waits.succeeded(_WHAT)
                return result
        self._waits.succeeded(_WHAT)
        raise error
