"""The connections to the internal topics that all tasks of a host share. Runs on executors."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from sluiceway.config.source_keys import OFFSETS_TOPIC
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.kafka.kafka_based_log import LogRecord
from sluiceway.runtime.task import TaskSpec
from sluiceway.storage.codec import TaskStatusRecord, decode_status_record, encode_task_status
from sluiceway.storage.connector_offset_backing_store import ConnectorOffsetBackingStore
from sluiceway.storage.heartbeats import Heartbeat
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore

log = logging.getLogger(__name__)

_REPEATED = (State.RUNNING, State.PAUSED)
_LATE_SECONDS = 1.0  # after which heartbeats are late
_END_SECONDS = 2.0  # that a task's end waits for heartbeats that are being written


class SharedStatuses:
    """Writes the statuses of all tasks of a host, and renews RUNNING and PAUSED with one heartbeat. Thread-safe.

    Args:
        host: the host's name.
        worker_id: identifies the driver in status records.
        store: the status topic's store.
        interval: seconds between two heartbeats.
        last: returns the value of the last record that was read of a key of the status topic.
    """

    def __init__(
        self,
        host: str,
        worker_id: str,
        store: KafkaStatusBackingStore,
        interval: float,
        last: Callable[[bytes], LogRecord | None],
    ) -> None:
        self._host = host
        self._worker_id = worker_id
        self._store = store
        self._interval = interval
        self._last = last
        self._writing = threading.Lock()  # keeps a heartbeat from following a later status of the same task
        self._repeated: dict[TaskId, Status] = {}
        self._due = time.monotonic() + interval
        self._warned = False

    def reporter(self, spec: TaskSpec) -> SharedTaskReporter:
        return SharedTaskReporter(self, spec)

    def report(self, task: TaskId, status: Status) -> None:
        with self._writing:
            self._repeated.pop(task, None)
            self._store.put_task(task, status)
            if status.state in _REPEATED:
                self._repeated[task] = status

    def topic(self, task: TaskId, topic: str) -> None:
        self._store.put_topic(task.connector, task.task, topic)

    def end(self, task: TaskId) -> None:
        """Send no more heartbeats of a task, because it must stop or has ended. Does not wait long for an unreachable cluster."""
        waited = self._writing.acquire(timeout=_END_SECONDS)
        self._repeated.pop(task, None)
        if waited:
            self._writing.release()

    def beat(self) -> None:
        """Write the heartbeat if it is due. One that cannot be written is only logged."""
        now = time.monotonic()
        if now < self._due:
            return
        late, self._due = now - self._due > _LATE_SECONDS, now + self._interval
        if late:  # a process that was suspended may have been replaced: read commands before another RUNNING is written
            self._due = now + self._interval / 2
            return
        try:
            with self._writing:
                self._store.put_tasks(
                    {task: status for task, status in self._repeated.items() if self._is_overwritten(task, status)}
                )
                if self._repeated:
                    tasks = {task: status.generation for task, status in self._repeated.items()}
                    self._store.put_heartbeat(self._host, Heartbeat(self._worker_id, tasks=tasks))
        except ConnectError as error:
            if not self._warned:
                log.warning("Cannot write the tasks' heartbeat; trying again every %g s: %s", self._interval, error)
            self._warned = True
        else:
            self._warned = False

    def _is_overwritten(self, task: TaskId, status: Status) -> bool:
        """Return whether the topic holds another status of this driver, such as that the task waited for a slot.

        One of a later generation stays: it is that of a newer driver, or of the process that replaces this one. So does one of a
        Kafka Connect worker, which runs the connector now.
        """
        key, value = encode_task_status(task, status)
        last = self._last(key)
        if last is None:
            return True
        if last.value == value:
            return False
        found = decode_status_record(key, last.value, last.timestamp, last.headers)
        other = found.status if isinstance(found, TaskStatusRecord) else None
        return other is None or not (other.of_connect or other.generation > status.generation)


class SharedTaskReporter:
    """Implements ``TaskReporter`` for one task of a host."""

    def __init__(self, statuses: SharedStatuses, spec: TaskSpec) -> None:
        self._statuses = statuses
        self._spec = spec

    def report(self, state: State, trace: str | None = None) -> None:
        spec = self._spec
        self._statuses.report(spec.id, Status(state, spec.worker_id, spec.generation, trace, spec.version))

    def topic(self, topic: str) -> None:
        self._statuses.topic(self._spec.id, topic)


class SharedOffsets:
    """The stores of source offsets, one for each offsets topic that a task of this host uses. Thread-safe."""

    def __init__(self, worker: WorkerConfig, resources: ExitStack) -> None:
        self._worker = worker
        self._resources = resources
        self._lock = threading.Lock()
        self._stores: dict[str, KafkaOffsetBackingStore] = {}

    def store(self, config: Mapping[str, str]) -> KafkaOffsetBackingStore | ConnectorOffsetBackingStore:
        """Return the started store of a connector's config. It is stopped with the host, not with the task."""
        topic = config.get(OFFSETS_TOPIC) or self._worker.offset_topic
        with self._lock:
            shared = self._started(self._worker.offset_topic)
            return shared if topic == self._worker.offset_topic else ConnectorOffsetBackingStore(self._started(topic), shared)

    def _started(self, topic: str) -> KafkaOffsetBackingStore:
        if topic not in self._stores:
            own = None if topic == self._worker.offset_topic else topic
            store = KafkaOffsetBackingStore(self._worker, own)
            store.start()
            self._resources.callback(store.stop)
            self._stores[topic] = store
        return self._stores[topic]
