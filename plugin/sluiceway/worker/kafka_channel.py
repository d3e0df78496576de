"""Distributed mode's control channel: statuses and commands travel through the status topic and the config topic.

A task's status, as the driver writes it, is also its command. After UNASSIGNED or RESTARTING without a trace, a running task
drains, commits and ends. After any status of a higher generation, it ends without a commit, because the driver takes it for
lost. Pause and resume need no write, because tasks read the connector's target state from the config topic. After a release,
tasks drain, commit and end although nothing else says so: the statuses are Kafka Connect's then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.kafka.native_memory import release_free_memory
from sluiceway.kafka.partitioner import partition_of
from sluiceway.storage.factory import Stores, open_source_offsets
from sluiceway.storage.interfaces import OffsetBackingStore
from sluiceway.storage.model import LeaseOwner, State, TargetState, TaskId
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.connect_workers import ConnectWorkers
from sluiceway.worker.connector_offsets import started
from sluiceway.worker.control_channel import StatusPublisher
from sluiceway.worker.driver_heartbeat import DriverHeartbeat
from sluiceway.worker.executor import ServicesFactory
from sluiceway.worker.kafka_task_services import KafkaTaskServices
from sluiceway.worker.lease import ConnectorLease
from sluiceway.worker.task_commands import command_keys, release_key

_CONNECT_LEAVE_SECONDS = 12.0  # a killed Kafka Connect worker stays a group member until its session times out (10 s)


class KafkaChannels:
    """Makes the control channels of a driver's connectors, with what they share. Thread-safe.

    Args:
        worker: the worker's config.
        worker_id: identifies the driver in status records.
        stores: those on Kafka.
        sender: names the driver's heartbeats; see ``DriverHeartbeat``.
        metrics: the URL at which the driver serves its metrics.
        owner: the Airflow task that started the driver; see ``DriverHeartbeat``.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        worker_id: str,
        stores: Stores,
        sender: str,
        metrics: str | None = None,
        *,
        owner: LeaseOwner | None = None,
    ) -> None:
        if not isinstance(stores.status, KafkaStatusBackingStore):
            raise ConnectError("A Kafka control channel needs the status topic's store.")
        interval = worker.duration("sluiceway.heartbeat.interval.ms").total_seconds()
        self.worker = worker
        self.worker_id = worker_id
        self.config_store = stores.config
        self.status_store = stores.status
        self.heartbeat = DriverHeartbeat(stores.status, sender, worker_id, interval, metrics=metrics, owner=owner)
        self.connect_workers = ConnectWorkers(stores.status, worker.group_id)
        self._freed = False

    def channel(self, connector: str) -> KafkaControlChannel:
        return KafkaControlChannel(connector, self)

    def beat(self, *, freed: bool) -> None:
        """Send the driver's heartbeat if it is due. ``freed``: a channel has just closed a producer."""
        self._freed = self._freed or freed
        if self.heartbeat.beat() and self._freed:
            self._freed = False
            release_free_memory()

    def close(self, *, taken_over: bool = False) -> None:
        """Remove the heartbeat, because the driver ends. ``taken_over``: another driver writes the same record now."""
        if not taken_over:
            self.heartbeat.close()


class KafkaControlChannel(StatusPublisher):
    """See ``ControlChannel``. Each status is a transaction of the connector's lease; writes wait for an unreachable cluster."""

    tasks_send_heartbeats = True

    def __init__(self, connector: str, driver: KafkaChannels) -> None:
        self._driver = driver
        self._lease = ConnectorLease(connector, driver.worker, driver.worker_id, driver.status_store)
        self._store = driver.status_store.written_by(self._lease.write)
        super().__init__(connector, driver.worker_id, self._store)

    def acquire(self) -> None:
        """See ``ControlChannel``. Raises RunByConnectError if Kafka Connect's own workers run the connectors of this group."""
        self._driver.connect_workers.refuse(self._connector, patience=_CONNECT_LEAVE_SECONDS, wait=self._lease.wait)
        self._lease.acquire()
        self.generation = self._lease.generation

    def close(self) -> None:
        self._driver.heartbeat.drop(self._connector)
        self._lease.close()

    def stop_waiting(self) -> None:
        self._lease.stop_waiting()

    def verify(self) -> None:
        """See ``ControlChannel``. Also sends the driver's heartbeat if it is due, and closes an idle producer."""
        self._lease.verify()
        self._yield_to_connect()
        self._driver.beat(freed=self._lease.close_if_idle())

    @property
    def seconds_left(self) -> float:
        return self._lease.seconds_left

    def publish_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        self._yield_to_connect()
        super().publish_connector(state, trace, version=version)
        self._driver.heartbeat.renew(self._connector, self.generation)

    def renew_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        """See ``ControlChannel``. Writes the status only if the topic holds another one, such as of an API server."""
        if self._store.connector(self._connector) != self._status_of(state, trace, version):
            self.publish_connector(state, trace, version=version)
        self._driver.heartbeat.renew(self._connector, self.generation)
        self.verify()

    def resume_tasks(self, tasks: Iterable[int]) -> None:
        """Do nothing: tasks read the target state from the config topic."""

    def pause_tasks(self, tasks: Iterable[int]) -> None:
        """Do nothing: tasks read the target state from the config topic."""

    def stop_tasks(self, tasks: Iterable[int]) -> None:
        """Do nothing: tasks stop at the UNASSIGNED or RESTARTING status that the runner publishes next."""

    def _yield_to_connect(self) -> None:
        """Raise RunByConnectError if Kafka Connect's own workers are up."""
        self._driver.connect_workers.refuse(self._connector, seen=self._lease.has_statuses_of_connect)

    def release_tasks(self) -> None:
        """See ``ControlChannel``. The record has a key that Kafka Connect's workers ignore."""
        self._driver.status_store.put_message(release_key(self._connector), self._driver.worker_id.encode())

    def forget_release(self) -> None:
        self._driver.status_store.put_message(release_key(self._connector), None)

    def source_offsets(self, config: Mapping[str, str]) -> AbstractContextManager[OffsetBackingStore]:
        return started(open_source_offsets(self._driver.worker, config))

    def services(self, task: TaskId) -> ServicesFactory:
        """See ``ControlChannel``. Sends no request, because this is called for each of many tasks.

        The task reads the partitions of the keys that hold its commands, not the heartbeats of all tasks in all partitions.
        """
        state = self._driver.config_store.snapshot()
        entry = state.entry(task.connector)
        positions = self._store.positions()
        partitions = {partition_of(key, len(positions)) for key in command_keys(task)}
        start = {place: offset for place, offset in positions.items() if place.partition in partitions}
        start[TopicPartition(self._driver.worker.config_topic, 0)] = state.offset
        return KafkaTaskServices(tuple(start.items()), paused=entry is not None and entry.target_state is not TargetState.STARTED)
