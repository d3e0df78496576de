"""All connectors at one time, and what is derived from them: computed once for each change of a connector. No I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.herder import states
from sluiceway.herder.model import ConnectorInfo, ConnectorStatus, ConnectorType
from sluiceway.storage.model import ClusterState, ConnectorEntry, ConnectorStatuses, State, Status, TaskId

T = TypeVar("T")

_NO_STATUSES = ConnectorStatuses()


@dataclass(frozen=True, slots=True)
class Overview:
    """The connectors at one time.

    Attributes:
        state: the snapshot of the config topic.
        recorded: the snapshot of the status topic.
        clock: that time.
        worker_id: the worker that is reported for connectors that no driver has run yet.
    """

    state: ClusterState
    recorded: Mapping[str, ConnectorStatuses]
    clock: states.Clock
    worker_id: str

    def configs(self) -> dict[str, Mapping[str, str]]:
        """Return the configs of all connectors by name, sorted."""
        entries = self.state.connectors
        return {name: config for name in sorted(entries) if (config := entries[name].config) is not None}

    def info(self, name: str) -> ConnectorInfo:
        """Return a connector's config and tasks. Raises NotFoundError."""
        entry = self.entry(name, f"Connector {name} not found")
        return ConnectorInfo(entry.name, dict(entry.config or {}), task_ids(entry), connector_type(entry))

    def status(self, name: str) -> ConnectorStatus:
        """Return the status of a connector and its tasks, ignoring stale heartbeats. Raises NotFoundError.

        A connector that no driver has run yet is UNASSIGNED, or in its target state. Connect returns 404 in this case, but
        here it lasts until Airflow has started the driver.
        """
        entry = self.entry(name, f"No status found for connector {name}")
        recorded = self.recorded.get(name, _NO_STATUSES)
        connector = recorded.connector or Status(State.UNASSIGNED, self.worker_id, 0)
        status, tasks = states.observe(entry.target_state, connector, recorded.tasks, self.clock)
        return ConnectorStatus(name, status, tasks, connector_type(entry))

    def entry(self, name: str, otherwise: str) -> ConnectorEntry:
        """Return a connector that has a config. Raises NotFoundError with the message ``otherwise``."""
        entry = self.state.entry(name)
        if entry is None:
            raise NotFoundError(otherwise)
        return entry


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    """A value, the records that it was computed from, and the times (exclusive, inclusive) between which it holds."""

    entry: ConnectorEntry
    recorded: ConnectorStatuses
    after: float
    until: float
    value: T


class PerConnector(Generic[T]):
    """Values that ``compute`` derives from the info and status of a connector, kept until these change. Thread-safe.

    There is nothing to invalidate: records are immutable, so a value holds while the connector has the same records and none
    of them has become stale. A connector whose class is not installed is computed each time, as it may be installed meanwhile.
    """

    def __init__(self, compute: Callable[[Overview, str], T]) -> None:
        self._compute = compute
        self._kept: dict[str, _Kept[T]] = {}

    def values(self, overview: Overview, names: Iterable[str]) -> dict[str, T]:
        """Return the values of those of the connectors that exist, in the order given."""
        now, entry_of, recorded_of, kept_of = overview.clock.now, overview.state.entry, overview.recorded.get, self._kept.get
        found: dict[str, T] = {}
        for name in names:
            entry = entry_of(name)
            if entry is None:
                continue
            recorded, kept = recorded_of(name, _NO_STATUSES), kept_of(name)
            if kept is not None and kept.entry is entry and kept.recorded is not recorded:
                kept = self._renewed(kept, recorded, overview.clock)
            if kept is not None and kept.entry is entry and kept.after < now <= kept.until:
                found[name] = kept.value
            else:
                found[name] = self._computed(overview, entry, recorded)
        if len(self._kept) > len(overview.state.connectors):
            self._kept = {name: kept for name, kept in self._kept.items() if name in overview.state.connectors}
        return found

    def _renewed(self, kept: _Kept[T], recorded: ConnectorStatuses, clock: states.Clock) -> _Kept[T] | None:
        """Return the value with the times until which it holds now, or None if more than the age of the records has changed."""
        if kept.recorded != recorded or kept.after > -math.inf:
            return None
        renewed = _Kept(kept.entry, recorded, *states.unchanged_between(recorded.all(), clock), kept.value)
        if renewed.after > -math.inf:
            return None
        self._kept[kept.entry.name] = renewed
        return renewed

    def _computed(self, overview: Overview, entry: ConnectorEntry, recorded: ConnectorStatuses) -> T:
        value = self._compute(overview, entry.name)
        if connector_type(entry) != "unknown":
            self._kept[entry.name] = _Kept(entry, recorded, *states.unchanged_between(recorded.all(), overview.clock), value)
        return value


def task_ids(entry: ConnectorEntry) -> tuple[TaskId, ...]:
    """Return the ids of a connector's tasks."""
    return tuple(TaskId(entry.name, number) for number in range(len(entry.task_configs)))


def connector_type(entry: ConnectorEntry) -> ConnectorType:
    """Return a connector's type; ``unknown`` if its class cannot be loaded here."""
    try:
        return "sink" if is_sink(connector_class((entry.config or {}).get(CONNECTOR_CLASS, ""))) else "source"
    except (NotFoundError, ConfigError):
        return "unknown"
