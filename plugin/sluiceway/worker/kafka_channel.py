"""Distributed mode's control channel: statuses and commands travel through the status topic and the config topic.

A task's status, as the driver writes it, is also its command. After UNASSIGNED or RESTARTING without a trace, a running task
drains, commits and ends. After any status of a higher generation, it ends without a commit, because the driver takes it for
lost. Pause and resume need no write, because tasks read the connector's target state from the config topic.
"""

from __future__ import annotations

from collections.abc import Iterable

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.kafka.partitioner import partition_of
from sluiceway.storage.factory import Stores
from sluiceway.storage.model import State, TargetState, TaskId
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.control_channel import StatusPublisher
from sluiceway.worker.executor import ServicesFactory
from sluiceway.worker.kafka_task_services import KafkaTaskServices
from sluiceway.worker.lease import ConnectorLease
from sluiceway.worker.task_commands import command_keys


class KafkaControlChannel(StatusPublisher):
    """See ``ControlChannel``. Each status is a transaction of the connector's lease; writes wait for an unreachable cluster."""

    tasks_send_heartbeats = True

    def __init__(self, connector: str, worker: WorkerConfig, worker_id: str, stores: Stores) -> None:
        if not isinstance(stores.status, KafkaStatusBackingStore):
            raise ConnectError(f"Connector {connector}: a Kafka control channel needs the status topic's store.")
        self._lease = ConnectorLease(connector, worker, worker_id, stores.status)
        self._store = stores.status.written_by(self._lease.write)
        super().__init__(connector, worker_id, self._store)
        self._worker = worker
        self._config_store = stores.config

    def acquire(self) -> None:
        """See ``ControlChannel``. Raises FencedError if Kafka Connect's own workers run the connectors of this group."""
        self._lease.acquire()
        self.generation = self._lease.generation

    def close(self) -> None:
        self._lease.close()

    def stop_waiting(self) -> None:
        self._lease.stop_waiting()

    def publish_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        self._lease.refuse_beside_connect()
        super().publish_connector(state, trace, version=version)

    def resume_tasks(self, tasks: Iterable[int]) -> None:
        """Do nothing: tasks read the target state from the config topic."""

    def pause_tasks(self, tasks: Iterable[int]) -> None:
        """Do nothing: tasks read the target state from the config topic."""

    def stop_tasks(self, tasks: Iterable[int]) -> None:
        """Do nothing: tasks stop at the UNASSIGNED or RESTARTING status that the runner publishes next."""

    def services(self, task: TaskId) -> ServicesFactory:
        """See ``ControlChannel``. Sends no request, because this is called for each of many tasks.

        The task reads the partitions of the keys that hold its commands, not the heartbeats of all tasks in all partitions.
        """
        state = self._config_store.snapshot()
        entry = state.entry(task.connector)
        positions = self._store.positions()
        partitions = {partition_of(key, len(positions)) for key in command_keys(task)}
        start = {place: offset for place, offset in positions.items() if place.partition in partitions}
        start[TopicPartition(self._worker.config_topic, 0)] = state.offset
        return KafkaTaskServices(tuple(start.items()), paused=entry is not None and entry.target_state is not TargetState.STARTED)
