"""For how long a sink's failed writes are tried again before the task fails."""

from __future__ import annotations

import time
from collections.abc import Callable

from sluiceway.connectors.jdbc.sink_keys import MAX_RETRIES, UNREACHABLE_MS
from sluiceway.connectors.jdbc.sink_session import WriteError
from sluiceway.errors import ConnectError


class SinkRetries:
    """Counts attempts that the database gave up, and the seconds that it was not to be reached; None is without end."""

    def __init__(self, most: int | None, unreachable_seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = unreachable_seconds
        self._clock = clock
        self._attempts = 0
        self._since: float | None = None

    def succeeded(self) -> None:
        self._attempts, self._since = 0, None

    def failed(self, error: WriteError) -> None:
        """Note a failure. Raises ConnectError if it was one too many."""
        if error.unreachable:
            now = self._clock()
            self._since = now if self._since is None else self._since
            if self._seconds is not None and now - self._since >= self._seconds:
                raise ConnectError(f"{error} (for {now - self._since:.0f} s, which {UNREACHABLE_MS} does not allow)") from error
            return
        self._since = None
        self._attempts += 1
        if self._most is not None and self._attempts > self._most:
            raise ConnectError(f"{error} (after {self._attempts} attempts; {MAX_RETRIES}={self._most})") from error
