"""Distributed mode's port: the lease is a transactional id, and the topics carry statuses, heartbeats and orders.

The driver's word on a task's status is the task's order: once it writes UNASSIGNED or RESTARTING for a task that runs, the
loop drains, commits and ends. Pause and resume reach the loops by the config topic itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.admin import end_offsets, partition_count
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.log import LogRecord, TopicTail
from sluiceway.kafka.transactions import TransactionalWriter
from sluiceway.runtime.task import Order, TaskServices, TaskSpec
from sluiceway.spark.executor import ServicesFactory
from sluiceway.spark.port import StatusPublisher
from sluiceway.storage.codec import (
    ConnectorRecord,
    ConnectorStatusRecord,
    TargetStateRecord,
    TaskStatusRecord,
    decode_config_record,
    decode_status_record,
    encode_connector_status,
)
from sluiceway.storage.factory import Stores
from sluiceway.storage.model import State, Status, TargetState, TaskId
from sluiceway.storage.offset_store import KafkaOffsetStore
from sluiceway.storage.status_store import KafkaStatusStore

log = logging.getLogger(__name__)

_POLL = 0.05  # seconds between two looks at the topics


class KafkaPort(StatusPublisher):
    """A connector's port on the three topics. Lives on the driver."""

    def __init__(self, connector: str, worker: WorkerConfig, worker_id: str, stores: Stores) -> None:
        super().__init__(connector, worker_id, stores.status)
        self._worker = worker
        self._stores = stores
        self._admin = admin_client(worker)
        self._lease = TransactionalWriter(worker, f"{worker.group_id}-{connector}-driver", f"{worker.group_id}-statuses")

    def acquire(self) -> None:
        """Fence the driver before, then count one generation further than the status topic knows."""
        self._lease.fence()
        self._stores.status.refresh()
        last = self._status.connector(self._connector)
        self.generation = 1 + max(
            [last.generation if last else 0, *(status.generation for status in self._status.tasks(self._connector).values())]
        )

    def close(self) -> None:
        self._lease.close()

    def publish_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        key, value = encode_connector_status(self._connector, self._record(state, trace, version))
        self._lease.write([(self._worker.status_topic, key, value)])

    def order_run(self, tasks: Iterable[int]) -> None:
        """The loops read the target state themselves."""

    def order_pause(self, tasks: Iterable[int]) -> None:
        """The loops read the target state themselves."""

    def order_stop(self, tasks: Iterable[int]) -> None:
        for task in tasks:
            self.publish_task(task, State.UNASSIGNED)

    def services(self, task: TaskId) -> ServicesFactory:
        state = self._stores.config.snapshot()
        entry = state.entry(task.connector)
        count = partition_count(self._admin, self._worker.status_topic) or 1
        places = [TopicPartition(self._worker.status_topic, partition) for partition in range(count)]
        positions = end_offsets(self._admin, places)
        positions[TopicPartition(self._worker.config_topic, 0)] = state.offset
        return KafkaServices(tuple(positions.items()), paused=entry is not None and entry.target_state is not TargetState.STARTED)


@dataclass(frozen=True, slots=True)
class KafkaServices:
    """Opens a task's connections to the topics. Runs on an executor; orders from ``positions`` on are heard."""

    positions: tuple[tuple[TopicPartition, int], ...]
    paused: bool

    def open(self, spec: TaskSpec) -> TaskServices:
        status = KafkaStatusStore(spec.worker, reading=False)
        status.start()
        offsets = None
        if not spec.sink:
            offsets = KafkaOffsetStore(spec.worker)
            offsets.start()
        return TaskServices(
            control=KafkaControl(spec, dict(self.positions), Order.PAUSE if self.paused else Order.RUN),
            reporter=KafkaReporter(spec, status),
            offsets=offsets,
        )


class KafkaControl:
    """Reads a task's orders from the config and status topics; looks at most every 50 ms. Runs on an executor."""

    def __init__(self, spec: TaskSpec, positions: dict[TopicPartition, int], order: Order) -> None:
        self._spec = spec
        self._order = order
        self._tail = TopicTail(spec.worker, f"{spec.worker.group_id}-orders", positions)
        self._looked = float("-inf")

    def order(self) -> Order:
        if time.monotonic() - self._looked >= _POLL:
            self._look(0.0)
        return self._order

    def wait(self, seconds: float) -> None:
        """Wait until the order changes; returns early, because records of other connectors come by too, only on a change."""
        before = self._order
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and self._order is before:
            self._look(left)

    def close(self) -> None:
        self._tail.close()

    def _look(self, timeout: float) -> None:
        self._looked = time.monotonic()
        for record in self._tail.poll(timeout):
            order = order_in(record, self._spec)
            # STOP and ABANDON are final; only the later may follow the former.
            if order is Order.ABANDON or (order is not None and self._order in (Order.RUN, Order.PAUSE)):
                log.info("[%s|task-%d] is told to %s", self._spec.id.connector, self._spec.id.task, order.value)
                self._order = order


def order_in(record: LogRecord, spec: TaskSpec) -> Order | None:
    """Return what a record of the config or status topic tells a task to do, or None if it is of no concern. Pure."""
    if record.topic == spec.worker.config_topic:
        config = decode_config_record(record.key, record.value)
        if isinstance(config, ConnectorRecord) and config.name == spec.id.connector and config.config is None:
            return Order.STOP
        if isinstance(config, TargetStateRecord) and config.name == spec.id.connector and config.state is not None:
            return {TargetState.STARTED: Order.RUN, TargetState.PAUSED: Order.PAUSE, TargetState.STOPPED: Order.STOP}[
                config.state
            ]
        return None
    said = decode_status_record(record.key, record.value, record.timestamp)
    if isinstance(said, ConnectorStatusRecord) and said.connector == spec.id.connector and said.status is not None:
        return Order.ABANDON if _newer(said.status, spec) else None
    if isinstance(said, TaskStatusRecord) and said.task == spec.id and said.status is not None:
        if _newer(said.status, spec):
            return Order.ABANDON
        told = said.status.worker_id == spec.worker_id and said.status.state in (State.UNASSIGNED, State.RESTARTING)
        return Order.STOP if told else None
    return None


def _newer(status: Status, spec: TaskSpec) -> bool:
    return status.generation > spec.generation and status.worker_id != spec.worker_id


class KafkaReporter:
    """Writes a task's state to the status topic. Runs on an executor."""

    def __init__(self, spec: TaskSpec, store: KafkaStatusStore) -> None:
        self._spec = spec
        self._store = store

    def report(self, state: State, trace: str | None = None) -> None:
        spec = self._spec
        self._store.put_task(spec.id, Status(state, spec.worker_id, spec.generation, trace, spec.version))

    def topic(self, topic: str) -> None:
        self._store.put_topic(self._spec.id.connector, self._spec.id.task, topic)
