"""Decides which connectors a driver hosts, and when it may start one that another driver ran before. Runs on the driver."""

from __future__ import annotations

import time
from collections.abc import Callable

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import states
from sluiceway.storage.interfaces import StatusBackingStore
from sluiceway.storage.model import ClusterState, ConnectorEntry

_RELEASE_SECONDS = 60.0  # after which a connector is taken from a driver that does not release it


class ApplicationMembers:
    """The connectors of one shared application. For the driver's thread.

    A connector that comes from another application, or had one of its own, is drained there first. Its lease would end the
    other driver's tasks at once, without a commit. A connector that has always been a member is taken over at once, because
    the driver that left its statuses was this one's predecessor.

    Args:
        application: the application's name.
        worker: the worker's config.
        worker_id: identifies this driver in status records.
        status: the status topic's store.
    """

    def __init__(
        self,
        application: str,
        worker: WorkerConfig,
        worker_id: str,
        status: StatusBackingStore,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._application = application
        self._worker_id = worker_id
        self._status = status
        self._timeout = worker.number("sluiceway.heartbeat.timeout.ms")
        self._spreads = worker.applications.max_tasks is not None
        self._clock = clock
        self._elsewhere: set[str] = set()
        self._awaited_since: dict[str, float] = {}

    def hosts(self, entry: ConnectorEntry) -> bool:
        """Return whether this application runs the connector. With a limit of tasks, only once it was placed here."""
        member = entry.application == self._application and (not self._spreads or entry.placed == self._application)
        if not member:
            self._elsewhere.add(entry.name)
        return member

    def is_free(self, entry: ConnectorEntry) -> bool:
        """Return whether the driver that ran the connector before has released it, or has ended."""
        name = entry.name
        if name not in self._elsewhere:
            return True
        since = self._awaited_since.setdefault(name, self._clock())
        if self._runs_elsewhere(name) and self._clock() - since < _RELEASE_SECONDS:
            return False
        self._elsewhere.discard(name)
        self._awaited_since.pop(name, None)
        return True

    def _runs_elsewhere(self, name: str) -> bool:
        status = self._status.connector(name)
        other = status is not None and status.worker_id != self._worker_id
        return other and states.driver_is_alive(status, states.Clock(int(self._clock() * 1000), self._timeout))


def is_empty(state: ClusterState, application: str) -> bool:
    """Return whether no connector belongs to an application."""
    return not any(entry.config is not None and entry.application == application for entry in state.connectors.values())
