"""Counts the attempts to read a database after errors that another connection may heal. No I/O."""

from __future__ import annotations

import logging

from sluiceway.errors import ConnectError, RetriableError

log = logging.getLogger(__name__)


class Attempts:
    """Attempts with the same wait before each.

    Args:
        most: the retries before giving up; a negative number for no limit.
        wait: seconds before each.
        key: the config's key of ``most``.
    """

    def __init__(self, most: int, wait: float, key: str) -> None:
        self.wait = wait
        self._most = most
        self._key = key
        self._attempts = 0

    def failed(self, error: Exception, where: str = "") -> RetriableError:
        """Count a failure; return the error to show until the next attempt. Raises ConnectError if there is none."""
        text = f"{where}: {error}" if where else str(error)
        self._attempts += 1
        if 0 <= self._most < self._attempts:
            raise ConnectError(f"{text} Gave up after {self._most} retries ({self._key}).") from error
        log.warning("%s Trying again in %g s.", text, self.wait)
        return RetriableError(text)

    def healed(self) -> None:
        """Note that the database was read: the next failure is the first."""
        self._attempts = 0
