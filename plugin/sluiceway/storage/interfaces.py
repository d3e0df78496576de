"""Declares the stores of configs, statuses and offsets, after Connect's interfaces of the same names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

from sluiceway.api.records import Offset, Partition
from sluiceway.storage.history import HistoryChange, OffsetChange, Origin
from sluiceway.storage.model import ClusterState, ConnectorStatuses, LeaseOwner, RestartRequest, Status, TargetState, TaskId

ConfigChange = Callable[[str, str], None]
"""Called with the kind of change ("connector", "tasks", "target-state", "restart") and the connector's name.

The kind "logger-level" comes with the logger's name.
"""


class ConfigBackingStore(Protocol):
    """Connector configs, target states, task configs and restart requests (the config topic).

    When a ``put`` returns, ``snapshot`` shows its change. Changes are atomic. A writer that other writers keep overtaking
    raises ConflictError after its retries. Changes with an ``origin`` are recorded in the connector's history.
    """

    def start(self) -> None:
        """Check or create the topic, read it to its end, then keep reading in a background thread."""

    def stop(self) -> None: ...

    def snapshot(self) -> ClusterState:
        """Return the current state without waiting. Raises InternalTopicError once the topic is known to be lost.

        A connector has the same entry object in all snapshots until one of its records changes it.
        """

    def refresh(self, timeout: float = 30.0) -> ClusterState:
        """Read to the topic's end and return the state. Raises ConnectError after ``timeout`` seconds."""

    def on_change(self, callback: ConfigChange) -> None:
        """Register a callback for each record read after ``start``. It runs on the reader thread and must not block."""

    def put_connector(
        self,
        name: str,
        config: Mapping[str, str],
        target_state: TargetState | None = None,
        *,
        check: Callable[[ClusterState], None] | None = None,
        origin: Origin | None = None,
        secrets: Collection[str] = (),
    ) -> None:
        """Store a config, preceded by a target state if given.

        ``check`` is called with the newest state and raises an exception to refuse the change. ``secrets`` are the config's
        keys of type password, which the history masks along with those whose names say that they are secret.
        """

    def remove_connector(self, name: str, origin: Origin | None = None) -> None:
        """Write the tombstones of the config and the target state."""

    def put_target_state(self, name: str, state: TargetState, origin: Origin | None = None) -> None:
        """Store a target state. As in Connect, STOPPED is preceded by the commit of an empty set of tasks."""

    def record_offsets(self, name: str, changes: Sequence[OffsetChange], origin: Origin) -> None:
        """Record in the connector's history that its offsets were changed."""

    def history(self, name: str) -> list[HistoryChange]:
        """Return the recorded changes of a connector, oldest first; also those of a deleted one."""

    def put_placed(self, decide: Callable[[ClusterState], Mapping[str, str]]) -> None:
        """Store which of the numbered applications of its name runs each of some connectors, as ``decide`` returns it.

        ``decide`` is called with the newest state.
        """

    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Store task configs and their commit record. Configs equal to the stored ones are not written again."""

    def put_task_count(self, name: str, tasks: int) -> None:
        """Store that the transactional ids of all earlier tasks were fenced and that ``tasks`` tasks may start (KIP-618).

        Raises NotFoundError, and ConflictError if the connector now has another number of task configs.
        """

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Store a log level for every running process of the cluster. Processes that start later ignore it."""

    def put_restart_request(self, request: RestartRequest) -> None: ...

    def take_restart_requests(self) -> list[RestartRequest]:
        """Return the restart requests read since the last call, ignoring those written before ``start``."""


class StatusBackingStore(Protocol):
    """States of connectors and tasks, and the topics they use (the status topic)."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def refresh(self, timeout: float = 30.0) -> None:
        """Read to the topic's end. Raises ConnectError after ``timeout`` seconds."""

    def put_connector(self, connector: str, status: Status) -> None:
        """Write a connector's status and wait until it is acknowledged."""

    def put_task(self, task: TaskId, status: Status) -> None: ...

    def put_tasks(self, statuses: Mapping[TaskId, Status]) -> None:
        """Write the statuses of several tasks at once."""

    def remove_connector(self, connector: str) -> None:
        """Write tombstones of the connector's status, its tasks' statuses and its topics."""

    def remove_task(self, task: TaskId) -> None: ...

    def snapshot(self) -> Mapping[str, ConnectorStatuses]:
        """Return the statuses of every connector by name: immutable, and the same object for as long as none has changed."""

    def connector(self, connector: str) -> Status | None: ...

    def tasks(self, connector: str) -> Mapping[int, Status]:
        """Return the statuses of a connector's tasks by task number."""

    def owner(self, connector: str) -> LeaseOwner | None:
        """Return the Airflow task whose driver runs the connector; None if no heartbeat of the driver names one."""

    def driver(self, connector: str, since: int) -> str | None:
        """Return the id of the driver whose last heartbeat named the connector, if it is not older than ``since`` (ms)."""

    def ended_driver(self, connector: str) -> str | None:
        """Return the id of the driver whose last heartbeat named the connector, if that driver has ended since."""

    def metrics_urls(self, since: int) -> list[str]:
        """Return where drivers serve their metrics whose last heartbeat is not older than ``since`` (ms since the epoch)."""

    def put_topic(self, connector: str, task: int, topic: str) -> None:
        """Record that a connector uses a topic."""

    def topics(self, connector: str) -> list[str]: ...

    def remove_topics(self, connector: str) -> None: ...


class OffsetBackingStore(Protocol):
    """Source offsets (the offsets topic, or standalone mode's file).

    Keys are ``[connector, partition]`` as compact JSON and are compared byte by byte, so a partition must always be
    written the same way.
    """

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def get(self, connector: str, partitions: Sequence[Partition]) -> list[Offset | None]:
        """Read to the topic's end and return the stored offsets in the order of ``partitions``."""

    def put(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        """Store offsets, or tombstones for None, and wait until they are acknowledged."""

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        """Return every stored partition of a connector with its offset."""


@runtime_checkable
class TransactionalOffsets(Protocol):
    """Offset stores for exactly-once tasks, which write their offsets in the transactions of their own producer."""

    def for_transaction(
        self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> list[tuple[str, bytes, bytes | None]]:
        """Return topic, key and value of the records to write in the transaction.

        Raises DataError for offsets that cannot be stored.
        """

    def committed(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        """Record offsets whose transaction was committed. Never raises."""
