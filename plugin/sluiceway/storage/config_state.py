"""Builds the state of the cluster from the records of the config topic. No I/O.

Task configs take effect when their commit record is read. If compaction or an interrupted write left fewer task configs than
the commit record announces, the connector is inconsistent until its task configs are written again. Records of a deleted
connector that compaction has left are ignored, except its task-count record: its tasks may still run, and the next connector
of that name must fence them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sluiceway.config.application import Applications
from sluiceway.storage.codec import (
    CommitRecord,
    ConnectorRecord,
    LoggerRecord,
    PlacedRecord,
    TargetStateRecord,
    TaskCountRecord,
    TaskRecord,
    decode_config_record,
)
from sluiceway.storage.model import ClusterState, ConnectorEntry, RestartRequest, TargetState


class RecordChange(NamedTuple):
    """A change made by a record.

    ``kind`` is "connector", "tasks", "target-state", "restart" or "logger-level". For the latter ``connector`` is the name of
    the logger.
    """

    kind: str
    connector: str
    restart: RestartRequest | None = None


@dataclass(slots=True)
class _Connector:
    config: Mapping[str, str] | None = None
    target_state: TargetState | None = None
    committed: tuple[Mapping[str, str], ...] = ()
    deferred: dict[int, Mapping[str, str]] = field(default_factory=dict)
    inconsistent: bool = False
    revision: int = -1
    applied_config: Mapping[str, str] | None = None
    task_count: int | None = None
    pending_fencing: bool = False
    configured_at: int = 0
    target_state_at: int | None = None
    placed: str | None = None


class ConfigState:
    """The state after the records applied so far. Not thread-safe.

    ``applications`` are the worker's settings, which choose the application of connectors that do not.
    """

    def __init__(self, applications: Applications | None = None) -> None:
        self._applications = applications or Applications()
        self._connectors: dict[str, _Connector] = {}
        self._logger_levels: dict[str, str] = {}
        self._offset = 0
        self._entries: dict[str, ConnectorEntry] = {}
        self._changed: dict[str, None] = {}  # a set in order of insertion
        self._snapshot: ClusterState | None = ClusterState()

    def apply(self, offset: int, key: bytes | None, value: bytes | None, timestamp: int = 0) -> RecordChange | None:
        """Apply the next record and return the change that listeners are told about, if any.

        ``timestamp`` is in milliseconds since the epoch.
        """
        self._offset = offset + 1
        self._snapshot = None
        record = decode_config_record(key, value)
        if isinstance(record, ConnectorRecord):
            return self._connector(record, offset, timestamp)
        if isinstance(record, TaskRecord):
            self._of(record.task.connector).deferred[record.task.task] = record.config
        elif isinstance(record, CommitRecord):
            return self._commit(record, offset)
        elif isinstance(record, TaskCountRecord):
            connector = self._of(record.name)
            connector.task_count, connector.pending_fencing = record.tasks, False
        elif isinstance(record, TargetStateRecord):
            return self._target_state(record, timestamp)
        elif isinstance(record, PlacedRecord):
            return self._place(record)
        elif isinstance(record, LoggerRecord):
            self._logger_levels[record.namespace] = record.level
            return RecordChange("logger-level", record.namespace)
        elif isinstance(record, RestartRequest):
            return RecordChange("restart", record.connector, record)
        return None

    def snapshot(self) -> ClusterState:
        """Return the current state; the same object until the next record is applied.

        Its cost depends on the connectors that have changed: the others keep their entries.
        """
        if self._snapshot is None:
            for name in self._changed:
                connector = self._connectors.get(name)
                if connector is None or not _is_known(connector):
                    self._entries.pop(name, None)
                else:
                    self._entries[name] = _entry(name, connector, self._applications)
            self._changed.clear()
            self._snapshot = ClusterState(dict(self._entries), self._offset, dict(self._logger_levels))
        return self._snapshot

    def _of(self, name: str) -> _Connector:
        """Return a connector, whose entry the next snapshot makes again."""
        self._changed[name] = None
        return self._connectors.setdefault(name, _Connector())

    def _connector(self, record: ConnectorRecord, offset: int, timestamp: int) -> RecordChange:
        if record.config is None:
            self._forget(record.name)
        else:
            connector = self._of(record.name)
            connector.config = record.config
            connector.configured_at = timestamp
            connector.revision = offset
        return RecordChange("connector", record.name)

    def _forget(self, name: str) -> None:
        """Remove a connector, except its target state, which has its own tombstone, and its task count, which has none."""
        self._changed[name] = None
        removed = self._connectors.pop(name, None)
        if removed is not None and (removed.target_state is not None or removed.task_count is not None):
            self._connectors[name] = _Connector(
                target_state=removed.target_state, task_count=removed.task_count, target_state_at=removed.target_state_at
            )

    def _commit(self, record: CommitRecord, offset: int) -> RecordChange | None:
        connector = self._of(record.name)
        if connector.config is None:
            self._forget(record.name)
            return None
        tasks = [connector.deferred[task] for task in range(record.tasks) if task in connector.deferred]
        connector.inconsistent = len(tasks) < record.tasks
        if not connector.inconsistent:
            connector.applied_config = connector.config
        connector.committed = () if connector.inconsistent else tuple(tasks)
        connector.deferred.clear()
        connector.pending_fencing = True
        connector.revision = offset
        return RecordChange("tasks", record.name)

    def _place(self, record: PlacedRecord) -> RecordChange:
        self._of(record.name).placed = record.application  # of a config that was written again, compaction leaves the later one
        return RecordChange("connector", record.name)

    def _target_state(self, record: TargetStateRecord, timestamp: int) -> RecordChange:
        connector = self._of(record.name)
        connector.target_state = record.state
        connector.target_state_at = None if record.state is None else timestamp
        if not _is_known(connector) and not connector.deferred and connector.task_count is None:
            del self._connectors[record.name]
        return RecordChange("target-state", record.name)


def _is_known(connector: _Connector) -> bool:
    return connector.config is not None or connector.target_state is not None


def _entry(name: str, connector: _Connector, applications: Applications) -> ConnectorEntry:
    config = connector.config
    return ConnectorEntry(
        name=name,
        config=config,
        target_state=connector.target_state or TargetState.STARTED,
        task_configs=connector.committed,
        inconsistent=connector.inconsistent,
        revision=connector.revision,
        applied_config=connector.applied_config,
        task_count=connector.task_count,
        pending_fencing=connector.pending_fencing,
        target_state_at=connector.configured_at if connector.target_state_at is None else connector.target_state_at,
        placed=connector.placed,
        application=None if config is None else applications.application(config, connector.placed),
    )
