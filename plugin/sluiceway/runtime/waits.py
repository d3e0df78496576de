"""Shows in a task's status that it waits for another system: since when, why, and when it tries again."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone

from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_OWN = ""
_FINEST_SECONDS = 10  # a shorter wait is shown as this one, so that a growing back-off does not write a status at each step


class Waits:
    """What a task waits for. Thread-safe.

    The runtime reports the calls that it repeats by ``failed`` and ``succeeded``. The task reports waits of its own by
    ``waiting``; these are shown first because they began first. ``show`` is called after each change of the text.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.show: Callable[[], None] = lambda: None
        self._own: str | None = None
        self._clock = clock
        self._lock = threading.Lock()
        self._reasons: dict[str, str] = {}
        self._since = 0.0

    @property
    def text(self) -> str | None:
        """The text for the status; None if the task does not wait."""
        with self._lock:
            if not self._reasons:
                return None
            reason = self._reasons.get(_OWN) or next(reversed(self._reasons.values()))
            since = datetime.fromtimestamp(self._since, timezone.utc).isoformat(timespec="seconds")
            return f"Waiting since {since}, {reason}"

    @property
    def seconds(self) -> float:
        """The seconds since the task began to wait; 0 if it does not."""
        with self._lock:
            return max(0.0, self._clock() - self._since) if self._reasons else 0.0

    def refused(self) -> ConnectError | None:
        """Return the error of a micro-batch that ends while its task or connector waits; None if it does not wait by itself."""
        if self._own is None:
            return None
        return ConnectError(f"The micro-batch has ended, but not all that the config names exists. {self._own}")

    def failed(self, what: str, error: Exception, seconds: float) -> None:
        """Note that a call has failed and will be repeated after ``seconds``; ``what`` names it."""
        self._set(what, f"{_next_try(seconds)}. {what} failed: {error}")

    def succeeded(self, what: str) -> None:
        """Note that the call has succeeded."""
        if what in self._reasons:
            self._set(what, None)

    def waiting(self, reason: object = None, seconds: float = 0.0) -> None:
        """Note that the task itself waits and tries again after ``seconds``; without a reason, that this is over."""
        self._own = None if reason is None else " ".join(str(reason).split())
        if reason is not None:
            self._set(_OWN, f"{_next_try(seconds)}. {reason}")
        elif _OWN in self._reasons:
            self._set(_OWN, None)

    def _set(self, what: str, reason: str | None) -> None:
        before = self.text
        with self._lock:
            if reason is None:
                self._reasons.pop(what, None)
            else:
                self._since = self._since if self._reasons else self._clock()
                self._reasons[what] = " ".join(reason.split())
        if self.text != before:
            try:
                self.show()
            except Exception as error:  # noqa: BLE001 (a status must not end the task, whatever went wrong)
                log.warning("Cannot write the task's status: %s", error)


def _next_try(seconds: float) -> str:
    return f"next try within {max(_FINEST_SECONDS, math.ceil(seconds))} s"
