"""Watches how much log a slot keeps, for metrics and warnings before the server gives the slot up."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.cdc.interval import Interval
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.replication import SlotUsage, slot_usage

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

log = logging.getLogger(__name__)

_EVERY_SECONDS = 30.0
_LARGE = 4 << 30
_FULL = 0.75


class SlotWatch:
    """The usage of a task's slot. The task's thread checks it; any thread reads ``values``."""

    def __init__(self, config: PostgresConfig) -> None:
        self.values: Mapping[str, float] = {}
        self._slot = config.slot
        self._interval = Interval(_EVERY_SECONDS, at_once=True)
        self._warned = 0

    def due(self) -> bool:
        """Return True at the first call, and then every 30 seconds."""
        return self._interval.due()

    def check(self, connection: Connection) -> None:
        """Update the metrics, and log a warning if the slot is in danger."""
        usage = slot_usage(connection, self._slot)
        if usage is None:
            return
        values = {"log-retained-bytes": float(usage.retained), "log-behind-bytes": float(usage.behind)}
        if usage.free is not None:
            values["log-free-bytes"] = float(usage.free)
        self.values = values
        danger = danger_of(usage)
        if danger is None:
            self._warned = 0
        elif usage.retained >= 2 * self._warned or usage.status == "unreserved":
            self._warned = usage.retained
            log.warning("The replication slot %s keeps %d MiB of log: %s", self._slot, usage.retained >> 20, danger)


def danger_of(usage: SlotUsage) -> str | None:
    """Return what a slot's usage leads to, and what to do, or None if nothing is wrong."""
    check = "Check that the connector runs and keeps up, and that no transaction stays open for long."
    if usage.status == "unreserved":
        return f"the server drops what the connector has not read at its next checkpoint. Raise max_slot_wal_keep_size. {check}"
    if usage.free is not None:
        if usage.retained < _FULL * (usage.retained + usage.free):
            return None
        return f"after {usage.free >> 20} MiB more, the server gives the slot up (max_slot_wal_keep_size). {check}"
    return f"without max_slot_wal_keep_size, the log can fill the server's disk. {check}" if usage.retained >= _LARGE else None
