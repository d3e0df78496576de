"""Builds statuses from the records of the status topic. No I/O. Not thread-safe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sluiceway.storage.codec import (
    ConnectorStatusRecord,
    KeyValue,
    StatusRecord,
    TaskStatusRecord,
    TopicStatusRecord,
    encode_connector_status,
    encode_task_status,
    topic_status_key,
)
from sluiceway.storage.heartbeats import Heartbeat
from sluiceway.storage.model import ConnectorStatuses, LeaseOwner, Status, TaskId


class _Renewal(NamedTuple):
    """The last heartbeat for a connector or task. ``timestamp`` is in milliseconds since the epoch."""

    worker_id: str
    generation: int
    timestamp: int
    owner: LeaseOwner | None = None
    ended: bool = False
    """Whether its sender has ended since."""


class StatusState:
    """``connectors`` by name, ``tasks`` by connector and number, ``topics`` by connector.

    The timestamp of a status is that of its record, or of the last heartbeat that renewed it.
    """

    def __init__(self) -> None:
        self.connectors: dict[str, Status] = {}
        self.tasks: dict[str, dict[int, Status]] = {}
        self.topics: dict[str, set[str]] = {}
        self.metrics: dict[str, tuple[str, int]] = {}
        """The URL at which each driver serves its metrics, and the timestamp of the heartbeat that said so, by worker id."""
        self._renewals: dict[str | TaskId, _Renewal] = {}
        self._snapshot: Mapping[str, ConnectorStatuses] = {}
        self._changed: set[str] = set()

    def snapshot(self) -> Mapping[str, ConnectorStatuses]:
        """Return the statuses by connector; those of a connector are the same object until one of them changes."""
        if self._changed:
            found = dict(self._snapshot)
            for name in self._changed:
                statuses = ConnectorStatuses(self.connectors.get(name), dict(sorted(self.tasks.get(name, {}).items())))
                if statuses.connector is None and not statuses.tasks:
                    found.pop(name, None)
                else:
                    found[name] = statuses
            self._changed.clear()
            self._snapshot = found
        return self._snapshot

    def put_connector(self, connector: str, status: Status | None) -> None:
        """Set the status of a connector, or remove it."""
        self._changed.add(connector)
        if status is None:
            self.connectors.pop(connector, None)
            self._renewals.pop(connector, None)
        else:
            self.connectors[connector] = self._renewed(connector, status)

    def put_task(self, task: TaskId, status: Status | None) -> None:
        """Set the status of a task, or remove it."""
        self._changed.add(task.connector)
        tasks = self.tasks.setdefault(task.connector, {})
        if status is None:
            tasks.pop(task.task, None)
            self._renewals.pop(task, None)
        else:
            tasks[task.task] = self._renewed(task, status)

    def renew(self, heartbeat: Heartbeat, timestamp: int) -> None:
        """Renew the statuses that a heartbeat names. Their records may be read later, from other partitions."""
        if heartbeat.metrics is not None:
            self.metrics[heartbeat.worker_id] = heartbeat.metrics, timestamp
        for subject, generation in heartbeat.subjects():
            self._renewals[subject] = _Renewal(heartbeat.worker_id, generation, timestamp, heartbeat.owner)
            if isinstance(subject, TaskId):
                known = self.tasks.get(subject.connector, {}).get(subject.task)
                if known is not None and self._renewed(subject, known) is not known:
                    self.put_task(subject, known)
            else:
                known = self.connectors.get(subject)
                if known is not None and self._renewed(subject, known) is not known:
                    self.put_connector(subject, known)

    def owner(self, connector: str) -> LeaseOwner | None:
        """Return the Airflow task whose driver wrote the connector's status, if a heartbeat of that driver names one."""
        last, status = self._renewals.get(connector), self.connectors.get(connector)
        if last is None or status is None or (last.worker_id, last.generation) != (status.worker_id, status.generation):
            return None
        return last.owner

    def driver(self, connector: str, since: int) -> str | None:
        """Return the id of the driver whose last heartbeat named the connector, whoever wrote its status, if it is new enough."""
        last = self._renewals.get(connector)
        return last.worker_id if last is not None and last.timestamp >= since and not last.ended else None

    def ended_driver(self, connector: str) -> str | None:
        """Return the id of the driver whose last heartbeat named the connector, if that driver has ended since."""
        last = self._renewals.get(connector)
        return last.worker_id if last is not None and last.ended else None

    def end(self, worker_id: str) -> None:
        """Note that a driver has ended."""
        for subject, last in self._renewals.items():
            if last.worker_id == worker_id and isinstance(subject, str):
                self._renewals[subject] = last._replace(ended=True)

    def _renewed(self, subject: str | TaskId, status: Status) -> Status:
        """Return the status with the timestamp of the last heartbeat for it, if that is a later one."""
        last = self._renewals.get(subject)
        if last is None or (last.worker_id, last.generation) != (status.worker_id, status.generation):
            return status
        return replace(status, timestamp=last.timestamp) if last.timestamp > status.timestamp else status

    def apply(self, record: StatusRecord | None) -> None:
        """Apply the next record. None, the result of decoding an unreadable record, changes nothing."""
        if isinstance(record, ConnectorStatusRecord):
            self.put_connector(record.connector, record.status)
        elif isinstance(record, TaskStatusRecord):
            known = self.tasks.get(record.task.connector, {}).get(record.task.task)
            if record.status is None or not _is_late(record.status, known):
                self.put_task(record.task, record.status)
        elif isinstance(record, TopicStatusRecord):
            topics = self.topics.setdefault(record.connector, set())
            if record.active:
                topics.add(record.topic)
            else:
                topics.discard(record.topic)


def _is_late(status: Status, known: Status | None) -> bool:
    """Return True for a report of a lost process that its driver has already replaced, such as one on a cut-off host."""
    return known is not None and status.worker_id == known.worker_id and status.generation < known.generation


def removal(state: StatusState, connector: str, *, only_topics: bool = False) -> Sequence[KeyValue]:
    """Return the tombstones of a connector's topics, of its status and of its tasks' statuses, in this order."""
    records: list[KeyValue] = [(topic_status_key(connector, topic), None) for topic in sorted(state.topics.get(connector, ()))]
    if only_topics:
        return records
    if connector in state.connectors:
        records.append(encode_connector_status(connector, None))
    return records + [encode_task_status(TaskId(connector, task), None) for task in sorted(state.tasks.get(connector, {}))]
