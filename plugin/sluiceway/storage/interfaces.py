"""The stores that runtime, herder and driver work with. Kafka ones serve distributed mode, memory and file ones standalone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from sluiceway.api.records import Offset, Partition
from sluiceway.storage.model import ClusterState, RestartRequest, Status, TargetState, TaskId

ConfigChange = Callable[[str, str], None]
"""Called with the kind of record ("connector", "tasks", "target-state", "restart") and the connector's name.

"logger-level" comes with the logger's name.
"""


class ConfigBackingStore(Protocol):
    """Connector configs, target states, task configs and restart requests (the config topic).

    Every ``put`` is seen by ``snapshot`` when it returns. A writer that another one overtook raises ConflictError after
    its retries; nothing half-written is left.
    """

    def start(self) -> None:
        """Check or create the topic, read it to its end, and go on reading in a background thread."""

    def stop(self) -> None: ...

    def snapshot(self) -> ClusterState:
        """Return what is known now, without waiting. Raises InternalTopicError once the topic is known to be lost."""

    def refresh(self, timeout: float = 30.0) -> ClusterState:
        """Read to the topic's present end, then return what is known. ``timeout`` in seconds; raises ConnectError past it."""

    def on_change(self, callback: ConfigChange) -> None:
        """Call back after each record read after ``start``; on the store's reader thread, so it must be quick."""

    def put_connector(
        self,
        name: str,
        config: Mapping[str, str],
        target_state: TargetState | None = None,
        *,
        check: Callable[[ClusterState], None] | None = None,
    ) -> None:
        """Store a config, and before it a target state if given. ``check`` sees the newest state and may raise to refuse."""

    def remove_connector(self, name: str) -> None:
        """Write the tombstones of the config and the target state."""

    def put_target_state(self, name: str, state: TargetState) -> None:
        """Store a target state; STOPPED commits an empty set of tasks first, as Connect does."""

    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Store task configs and then their commit record; configs equal to the stored ones are not written again."""

    def put_task_count(self, name: str, tasks: int) -> None:
        """Store that the transactional ids of all earlier tasks were fenced, and that ``tasks`` tasks may start.

        Raises NotFoundError, and ConflictError if the connector has another number of task configs by now.
        """

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Store a log level for every process of the cluster; those that start later ignore it."""

    def put_restart_request(self, request: RestartRequest) -> None: ...

    def take_restart_requests(self) -> list[RestartRequest]:
        """Return the restart requests read since the last call (those from before ``start`` are ignored)."""


class StatusBackingStore(Protocol):
    """States of connectors and tasks, and the topics they use (the status topic)."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def refresh(self, timeout: float = 30.0) -> None:
        """Read to the topic's present end."""

    def put_connector(self, connector: str, status: Status) -> None:
        """Write a connector's status and wait until it is acknowledged."""

    def put_task(self, task: TaskId, status: Status) -> None: ...

    def put_tasks(self, statuses: Mapping[TaskId, Status]) -> None:
        """Write the statuses of several tasks at once."""

    def remove_connector(self, connector: str) -> None:
        """Write tombstones for the connector's status, its tasks' and its topics' records."""

    def remove_task(self, task: TaskId) -> None: ...

    def connector(self, connector: str) -> Status | None: ...

    def tasks(self, connector: str) -> Mapping[int, Status]:
        """Return the statuses of a connector's tasks by task number."""

    def put_topic(self, connector: str, task: int, topic: str) -> None:
        """Record that a connector uses a topic."""

    def topics(self, connector: str) -> list[str]: ...

    def remove_topics(self, connector: str) -> None: ...


class OffsetBackingStore(Protocol):
    """Source offsets (the offsets topic, or standalone mode's file).

    Keys are ``[connector, partition]`` as compact JSON, compared byte by byte, so a partition is written the same way
    each time.
    """

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def get(self, connector: str, partitions: Sequence[Partition]) -> list[Offset | None]:
        """Return the stored offsets, in the order asked for; reads to the topic's end first."""

    def put(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        """Store offsets (None: a tombstone) and wait until they are acknowledged."""

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        """Return every stored partition of a connector with its offset."""


@runtime_checkable
class TransactionalOffsets(Protocol):
    """What an offset store offers to a task that writes its offsets itself, in the transactions of its own producer."""

    def for_transaction(
        self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> list[tuple[str, bytes, bytes | None]]:
        """Return topic, key and value of the records that the transaction has to hold.

        Raises DataError for offsets that cannot be stored.
        """

    def committed(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        """Take note of offsets whose transaction was committed. Never raises."""
