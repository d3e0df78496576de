"""Watches how far a connector is behind the binary log, for metrics and warnings before the server purges it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from sluiceway.connectors.cdc.interval import Interval
from sluiceway.connectors.cdc.mysql.connection import Server
from sluiceway.connectors.cdc.mysql.log_state import danger_of

log = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0


class LogWatch:
    """The age of what a task has not read. The task's thread checks it; any thread reads ``values``."""

    def __init__(self) -> None:
        self.values: Mapping[str, float] = {}
        self._interval = Interval(_EVERY_SECONDS, at_once=True)

    def due(self) -> bool:
        """Return True at the first call, and then every minute."""
        return self._interval.due()

    def check(self, server: Server, file: str, position: int, seconds: int) -> None:
        """Update the metrics for the position of an event that was read, and log a warning if the log may be purged soon.

        Args:
            seconds: the time of the event, since the epoch.
        """
        state = server.log_state()
        behind = state.behind(file, position)
        age = max(0.0, time.time() - seconds) if behind and seconds else 0.0
        values = {
            "log-retained-bytes": float(sum(size for _, size in state.files)),
            "log-behind-bytes": float(behind),
            "log-age-seconds": age,
        }
        if state.keeps:
            values["log-expires-seconds"] = max(0.0, state.keeps - age)
        self.values = values
        danger = danger_of(age, behind, state)
        if danger is not None:
            log.warning("%s", danger)
