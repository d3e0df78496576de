"""Collects notifications of snapshots for the channels of ``notification.enabled.channels``."""

from __future__ import annotations

import logging
import uuid

from sluiceway.api import Offset, SourceRecord
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.emitter import Emitter

log = logging.getLogger(__name__)

INITIAL, INCREMENTAL = "Initial Snapshot", "Incremental Snapshot"


class Notifications:
    """Notifications that wait to become records, in order."""

    def __init__(self, config: CommonConfig, emitter: Emitter) -> None:
        self._prefix = config.prefix
        self._emitter = emitter
        self._topic = config.signals.notification_topic if "sink" in config.signals.notification_channels else None
        self._logged = "log" in config.signals.notification_channels
        self._waiting: list[tuple[str, str, str, dict[str, str]]] = []

    @property
    def enabled(self) -> bool:
        """Whether any channel receives notifications."""
        return self._topic is not None or self._logged

    @property
    def waiting(self) -> bool:
        """Whether there are notifications to take."""
        return bool(self._waiting)

    def add(self, identifier: str, kind: str, aggregate: str, **data: str) -> None:
        """Add a notification; the connector's name is added to its data."""
        if not self.enabled:
            return
        data = {"connector_name": self._prefix, **data}
        if self._logged:
            log.info("[Notification Service] %s %s: %s", aggregate, kind, data)
        if self._topic is not None:
            self._waiting.append((identifier, kind, aggregate, data))

    def snapshot(self, kind: str) -> None:
        """Add a notification of the initial snapshot: STARTED, COMPLETED or SKIPPED."""
        self.add(str(uuid.uuid4()), kind, INITIAL)

    def table_scanned(self, table: str, count: int) -> None:
        """Add the notification that the initial snapshot has read a table."""
        self.add(
            str(uuid.uuid4()),
            "TABLE_SCAN_COMPLETED",
            INITIAL,
            scanned_collection=table,
            data_collections=table,
            total_rows_scanned=str(count),
            status="SUCCEEDED",
        )

    def take(self, offset: Offset | None) -> list[SourceRecord]:
        """Return the records of the waiting notifications."""
        waiting, self._waiting = self._waiting, []
        topic = self._topic or ""
        return [self._emitter.notification(topic, name, kind, aggregate, data, offset) for name, kind, aggregate, data in waiting]
