"""Distributed mode's port: the lease is a transactional id, and the topics carry statuses, heartbeats and orders.

The driver's word on a task's status is the task's order: once it writes UNASSIGNED or RESTARTING for a task that runs, the
loop drains, commits and ends. Pause and resume reach the loops by the config topic itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, FencedError, InternalTopicError
from sluiceway.herder.loggers import Loggers
from sluiceway.kafka.admin import end_offsets, partition_count
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.kafka.kafka_based_log import LogRecord, TopicTail
from sluiceway.kafka.topic_writer import ProducerRecord
from sluiceway.kafka.worker_group import connect_workers
from sluiceway.runtime.task import Order, TaskServices, TaskSpec
from sluiceway.storage.codec import (
    ConnectorRecord,
    ConnectorStatusRecord,
    LoggerRecord,
    TargetStateRecord,
    TaskStatusRecord,
    decode_config_record,
    decode_status_record,
)
from sluiceway.storage.factory import Stores, open_source_offsets
from sluiceway.storage.model import State, Status, TargetState, TaskId
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.control_channel import StatusPublisher
from sluiceway.worker.executor import ServicesFactory

log = logging.getLogger(__name__)

_POLL = 0.05  # seconds between two looks at the topics
_CONNECT_LEAVES = 12.0  # seconds that a Kafka Connect worker which was killed stays a member (its session timeout is 10 s)
_CLUSTER_AWAY = 1800.0  # seconds that a driver waits for the cluster before it ends, to be started again by Airflow
_RETRY = (1.0, 10.0)


class KafkaPort(StatusPublisher):
    """A connector's port on the three topics. Lives on the driver.

    Whatever the driver writes into the status topic is a transaction of the lease, so that nothing can be written once a
    newer driver has taken over. While the cluster is away, writing waits for it.
    """

    def __init__(self, connector: str, worker: WorkerConfig, worker_id: str, stores: Stores) -> None:
        assert isinstance(stores.status, KafkaStatusBackingStore)  # noqa: S101 (distributed mode's is)
        super().__init__(connector, worker_id, stores.status.written_by(self._write))
        self._worker = worker
        self._stores = stores
        # With the worker's own rights: it asks about the group and its topics only, as Connect's workers do.
        self._admin = admin_client(worker)
        self._lease = FencedWriter(worker, f"{worker.group_id}-{connector}-driver", f"{worker.group_id}-statuses")
        self._hurry = threading.Event()

    def acquire(self) -> None:
        """Fence the driver before, then count one generation further than the status topic knows.

        Raises FencedError if Kafka Connect's own workers run this group's connectors.
        """
        self._refuse_beside_connect(patience=_CONNECT_LEAVES)
        self._lease.fence()
        self._status.refresh()
        self.generation = 1 + max((status.generation for status in self._statuses()), default=0)

    def close(self) -> None:
        self._lease.close()

    def hurry(self) -> None:
        self._hurry.set()

    def publish_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        self._refuse_beside_connect()
        super().publish_connector(state, trace, version=version)

    def _write(self, records: Sequence[ProducerRecord]) -> Mapping[TopicPartition, int]:
        """Write through the lease, waiting for a cluster that is away; see ``FencedWriter.write``."""
        deadline = time.monotonic() + _CLUSTER_AWAY
        delay = _RETRY[0]
        while True:
            try:
                if not self._lease.active:
                    self._take_back()
                return self._lease.write(records)
            except (FencedError, InternalTopicError):
                raise
            except ConnectError as error:
                if self._hurry.is_set() or time.monotonic() >= deadline:
                    raise
                log.warning("[%s|worker] Its state cannot be written, trying again in %g s: %s", self._connector, delay, error)
            self._hurry.wait(delay)
            delay = min(delay * 2, _RETRY[1])

    def _take_back(self) -> None:
        """Become the lease's writer again after an error, unless somebody else took the connector over in the meantime."""
        self._status.refresh()
        newer = [status for status in self._statuses() if _is_newer(status, self.generation, self._worker_id)]
        if newer:
            raise FencedError(f"{newer[0].worker_id} has taken connector {self._connector} over.")
        self._lease.fence()

    def _refuse_beside_connect(self, patience: float = 0.0) -> None:
        """Raise FencedError while Kafka Connect workers of this group are up; they know nothing of the lease.

        One that has just left may still be a member for ``patience`` seconds.
        """
        deadline = time.monotonic() + patience
        while workers := connect_workers(self._admin, self._worker.group_id):
            if time.monotonic() >= deadline or self._hurry.wait(_RETRY[0]):
                raise FencedError(
                    f"Kafka Connect runs connector {self._connector}: {len(workers)} worker(s) with group.id="
                    f"{self._worker.group_id} are up, on {', '.join(sorted(set(workers)))}. Stop them, or give this one "
                    "another group.id and topics of its own."
                )

    def _statuses(self) -> list[Status]:
        own = self._status.connector(self._connector)
        return [*([own] if own is not None else []), *self._status.tasks(self._connector).values()]

    def order_run(self, tasks: Iterable[int]) -> None:
        """The loops read the target state themselves."""

    def order_pause(self, tasks: Iterable[int]) -> None:
        """The loops read the target state themselves."""

    def order_stop(self, tasks: Iterable[int]) -> None:
        """The loops read what is published of them next."""

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
        status = KafkaStatusBackingStore(spec.worker, reading=False)
        status.start()
        offsets = None
        if not spec.sink:
            offsets = open_source_offsets(spec.worker, spec.config)
            offsets.start()
        return TaskServices(
            control=KafkaControl(spec, dict(self.positions), Order.PAUSE if self.paused else Order.RUN),
            reporter=KafkaReporter(spec, status),
            offsets=offsets,
        )


class KafkaControl:
    """Reads a task's orders, and log levels, from the config and status topics; looks at most every 50 ms. On an executor."""

    def __init__(self, spec: TaskSpec, positions: dict[TopicPartition, int], order: Order) -> None:
        self._spec = spec
        self._order = order
        self._loggers = Loggers(spec.id.connector)
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
            if (level := _level_in(record, self._spec)) is not None:
                self._loggers.apply_cluster_level(level.namespace, level.level)


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


def _level_in(record: LogRecord, spec: TaskSpec) -> LoggerRecord | None:
    config = decode_config_record(record.key, record.value) if record.topic == spec.worker.config_topic else None
    return config if isinstance(config, LoggerRecord) else None


def _newer(status: Status, spec: TaskSpec) -> bool:
    return _is_newer(status, spec.generation, spec.worker_id)


def _is_newer(status: Status, generation: int, worker_id: str) -> bool:
    return status.generation > generation and status.worker_id != worker_id


class KafkaReporter:
    """Writes a task's state to the status topic. Runs on an executor."""

    def __init__(self, spec: TaskSpec, store: KafkaStatusBackingStore) -> None:
        self._spec = spec
        self._store = store

    def report(self, state: State, trace: str | None = None) -> None:
        spec = self._spec
        self._store.put_task(spec.id, Status(state, spec.worker_id, spec.generation, trace, spec.version))

    def topic(self, topic: str) -> None:
        self._store.put_topic(self._spec.id.connector, self._spec.id.task, topic)
