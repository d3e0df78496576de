"""Decides how far a source may read, from the open transactions that the dialect's horizon finds; see ``dialects.horizon``.

Runs on the executors and, to plan snapshots, on the driver.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.dialects.horizon import Horizon, NoHorizon
from sluiceway.connectors.jdbc.source.config import SourceConfig
from sluiceway.connectors.jdbc.source.keys import AUTO, BULK, NONE
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.connectors.jdbc.connection import Database

log = logging.getLogger(__name__)

_MAX_WAITING_NUMBERS = 16
_FIRST_WARNING_SECONDS = 60.0


def horizon_for(config: SourceConfig, database: Database, raw: Any) -> Horizon:
    """Return the horizon that a config asks for; ``raw`` is a driver connection.

    Raises ConnectError if the config requires to see open transactions and the user may not.
    """
    horizon = database.dialect.horizon(lambda: _detached_connection(database))
    if config.mode == BULK or config.horizon == NONE:
        return NoHorizon(horizon)
    if horizon.may_see(raw):
        return horizon
    message = (
        f"The user {database.url.user} may not see all open transactions of {database.url.location}, so rows that are "
        f"committed late could be missed. {horizon.hint}, or set timestamp.delay.interval.ms to how long transactions take"
    )
    if config.horizon == AUTO:
        log.warning("%s.", message)
        return NoHorizon(horizon)
    raise ConnectError(f"{message}, with sluiceway.horizon=none.")


def _detached_connection(database: Database) -> Any:
    """Return a new driver connection, for the caller to close."""
    connection = database.connect()
    fairy = connection.connection
    raw = fairy.driver_connection
    fairy.detach()
    return raw


class SafeNumbers:
    """Tracks the highest number of a table below which no open transaction can add a row. No I/O."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, frozenset[str]]] = []
        self._safe: int | None = None

    def add(self, highest: int, writers: frozenset[str]) -> int | None:
        """Return the highest safe number, given the highest number and the writers that were open right after reading it."""
        waiting = [(number, left) for number, since in self._waiting if (left := since & writers)]
        done = [number for number, since in self._waiting if not since & writers]
        if not writers:
            done, waiting = [*done, highest], []
        elif len(waiting) < _MAX_WAITING_NUMBERS:
            waiting.append((highest, writers))
        self._waiting = waiting
        if done:
            self._safe = safe = max(done if self._safe is None else [*done, self._safe])
            self._waiting = [each for each in waiting if each[0] > safe]
        return self._safe

    @property
    def oldest(self) -> int | None:
        """The number that has waited longest, None if none waits."""
        return self._waiting[0][0] if self._waiting else None


def safe_time(now: dt.datetime, open_since: dt.datetime | None, *, fraction: int, coarse: bool, delay: float) -> dt.datetime:
    """Return the timestamp before which no open transaction can add a row. No I/O.

    A column that keeps ``fraction`` digits of a second rounds a row's timestamp to before its transaction; ``coarse`` databases
    report starts of transactions in whole seconds. ``delay`` is ``timestamp.delay.interval.ms`` in seconds.
    """
    margin = dt.timedelta(seconds=1 if coarse else 0 if fraction >= 6 else 10.0**-fraction)
    horizon = now if open_since is None else min(now, open_since)
    return min(horizon - margin, now - dt.timedelta(seconds=delay))


class WaitLog:
    """Warns of a table whose rows wait for open transactions: after a minute, then at doubled intervals."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cause: object = None
        self._since = 0.0
        self._next = _FIRST_WARNING_SECONDS

    def note(self, cause: object, message: str) -> float:
        """Return the seconds for which the same cause (None: nothing waits) has been noted; log ``message`` if that is long."""
        now = self._clock()
        if cause is None or cause != self._cause:
            self._cause, self._since, self._next = cause, now, _FIRST_WARNING_SECONDS
        seconds = now - self._since
        if seconds >= self._next:
            log.warning("%s (for %.0f s now)", message, seconds)
            self._next = 2 * seconds
        return seconds
