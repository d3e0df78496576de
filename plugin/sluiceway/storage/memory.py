"""Keeps configs and statuses in memory (standalone mode); they are lost at exit, as in Connect.

A ``multiprocessing`` manager can serve these stores to other processes, because arguments and results can be pickled.
Listeners and checks only work within the process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from sluiceway.config.application import Applications
from sluiceway.storage.config_state import ConfigState, RecordChange
from sluiceway.storage.config_writes import ConfigWrites, Decision
from sluiceway.storage.history import History, HistoryChange
from sluiceway.storage.interfaces import ConfigChange
from sluiceway.storage.model import ClusterState, ConnectorStatuses, LeaseOwner, RestartRequest, Status, TaskId
from sluiceway.storage.status_state import StatusState

log = logging.getLogger(__name__)


class MemoryConfigBackingStore(ConfigWrites):
    """Implements ``ConfigBackingStore`` with the same records as the store on Kafka, so that both behave alike. Thread-safe."""

    def __init__(self, applications: Applications | None = None) -> None:
        self._lock = threading.RLock()
        self._state = ConfigState(applications)
        self._offset = 0
        self._callbacks: list[ConfigChange] = []
        self._restarts: list[RestartRequest] = []
        self._history = History()

    def start(self) -> None:
        """Nothing to read."""

    def stop(self) -> None:
        """Nothing to close."""

    def history(self, name: str) -> list[HistoryChange]:
        with self._lock:
            return self._history.changes(name)

    def snapshot(self) -> ClusterState:
        with self._lock:
            return self._state.snapshot()

    def refresh(self, timeout: float = 30.0) -> ClusterState:
        return self.snapshot()

    def on_change(self, callback: ConfigChange) -> None:
        self._callbacks.append(callback)

    def take_restart_requests(self) -> list[RestartRequest]:
        with self._lock:
            requests, self._restarts = self._restarts, []
        return requests

    def _write(self, decide: Decision) -> None:
        with self._lock:
            changes: list[RecordChange] = []
            decided, now = decide(self._state.snapshot()), int(time.time() * 1000)
            if decided.change is not None:
                numbered = self._history.numbered(decided.name, decided.change)
                for key, value in self._history.records(decided.name, numbered):
                    self._history.apply(key, value, now)
            for key, value in decided.records:
                change = self._state.apply(self._offset, key, value, now)
                self._offset += 1
                if change is not None:
                    changes.append(change)
            self._restarts += [change.restart for change in changes if change.restart is not None]
        for change in changes:
            for callback in self._callbacks:
                try:
                    callback(change.kind, change.connector)
                except Exception:
                    log.exception("[%s] A listener for changes failed on a change of %s", change.connector, change.kind)


class MemoryStatusBackingStore:
    """Implements ``StatusBackingStore``. Thread-safe.

    Statuses of connectors have timestamps of this machine's clock. Those of tasks have none, because tasks in standalone mode
    send no heartbeats: they end with the driver.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = StatusState()

    def start(self) -> None:
        """Nothing to read."""

    def stop(self) -> None:
        """Nothing to close."""

    def refresh(self, timeout: float = 30.0) -> None:
        """Nothing to wait for."""

    def put_connector(self, connector: str, status: Status) -> None:
        with self._lock:
            self._state.put_connector(connector, _stamped(status))

    def put_task(self, task: TaskId, status: Status) -> None:
        with self._lock:
            self._state.put_task(task, status)

    def put_tasks(self, statuses: Mapping[TaskId, Status]) -> None:
        for task, status in statuses.items():
            self.put_task(task, status)

    def remove_connector(self, connector: str) -> None:
        with self._lock:
            self._state.put_connector(connector, None)
            self._state.tasks.pop(connector, None)
            self._state.topics.pop(connector, None)

    def remove_task(self, task: TaskId) -> None:
        with self._lock:
            self._state.put_task(task, None)

    def snapshot(self) -> Mapping[str, ConnectorStatuses]:
        with self._lock:
            return self._state.snapshot()

    def owner(self, connector: str) -> LeaseOwner | None:
        """Return None: in standalone mode, no Airflow task starts the driver."""
        return None

    def driver(self, connector: str, since: int) -> str | None:
        """Return None: in standalone mode, the statuses themselves are the driver's."""
        return None

    def ended_driver(self, connector: str) -> str | None:
        """Return None, as ``driver`` does."""
        return None

    def metrics_urls(self, since: int) -> list[str]:
        """Return none: standalone mode has one driver, which is in the same process as the REST API."""
        return []

    def connector(self, connector: str) -> Status | None:
        with self._lock:
            return self._state.connectors.get(connector)

    def tasks(self, connector: str) -> Mapping[int, Status]:
        with self._lock:
            return dict(sorted(self._state.tasks.get(connector, {}).items()))

    def put_topic(self, connector: str, task: int, topic: str) -> None:
        with self._lock:
            self._state.topics.setdefault(connector, set()).add(topic)

    def topics(self, connector: str) -> list[str]:
        with self._lock:
            return sorted(self._state.topics.get(connector, ()))

    def remove_topics(self, connector: str) -> None:
        with self._lock:
            self._state.topics.pop(connector, None)


def _stamped(status: Status) -> Status:
    return replace(status, timestamp=int(time.time() * 1000))
