"""Stores configs on the config topic (distributed mode): reads it in the background and writes it as its only writer."""

from __future__ import annotations

import logging
import random
import threading
import time

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError, ConnectError, FencedError
from sluiceway.kafka.admin import ensure_internal_topic
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.kafka.kafka_based_log import SHORT_FETCH_MS, KafkaBasedLog, LogRecord
from sluiceway.storage.codec import KeyValue
from sluiceway.storage.config_state import ConfigState
from sluiceway.storage.config_writes import ConfigWrites, Decided, Decision
from sluiceway.storage.history import HistoryChange, headers_of
from sluiceway.storage.history_topic import HistoryTopic
from sluiceway.storage.interfaces import ConfigChange
from sluiceway.storage.model import ClusterState, RestartRequest
from sluiceway.storage.topics import config_topic

log = logging.getLogger(__name__)

_ATTEMPTS = 10
_JITTER_SECONDS = 0.1


class KafkaConfigBackingStore(ConfigWrites):
    """Implements ``ConfigBackingStore`` on Kafka. Runs on the driver and in the API server. Thread-safe.

    Every change is one transaction with the transactional id ``connect-cluster-<group.id>``. A process that has fenced is
    the only writer until another process fences, so no other change can precede its own. Therefore only a writer that has
    just fenced must read to the end of the topic before it decides. ``brief``: the store is open for one reading.
    """

    def __init__(self, worker: WorkerConfig, *, brief: bool = False) -> None:
        self._worker = worker
        self._brief = brief
        self._topic = config_topic(worker)
        self._client_id = f"{worker.group_id}-configs"
        self._writer = FencedWriter(worker, f"connect-cluster-{worker.group_id}", self._client_id)
        self._writing = threading.Lock()
        self._history = HistoryTopic(worker)
        self._state = ConfigState(worker.applications)
        self._reading = threading.Lock()
        self._callbacks: list[ConfigChange] = []
        self._restarts: list[RestartRequest] = []
        self._started = False
        self._log: KafkaBasedLog | None = None

    def start(self) -> None:
        """Check or create the topic, read it to its end, then keep reading. Raises InternalTopicError, KafkaClientError."""
        admin = admin_client(self._worker)
        partitions = ensure_internal_topic(admin, self._topic)
        self._log = KafkaBasedLog(
            self._worker,
            self._topic.name,
            partitions,
            self._client_id,
            self._record,
            admin=admin,
            fetch_wait_ms=SHORT_FETCH_MS,
            brief=self._brief,
        )
        self._log.start()
        self._started = True
        state = self.snapshot()
        log.debug("Read %s up to offset %d: %d connectors", self._topic.name, state.offset, len(state.names()))

    def stop(self) -> None:
        if self._log is not None:
            self._log.stop()
        with self._writing:
            self._writer.close()

    def snapshot(self) -> ClusterState:
        if self._log is not None:
            self._log.check()  # the records of a lost topic must not be used any more
        with self._reading:
            return self._state.snapshot()

    def refresh(self, timeout: float = 30.0) -> ClusterState:
        self._reader().read_to_end(timeout)
        return self.snapshot()

    def on_change(self, callback: ConfigChange) -> None:
        self._callbacks.append(callback)

    def history(self, name: str) -> list[HistoryChange]:
        return self._history.changes(name)

    def take_restart_requests(self) -> list[RestartRequest]:
        with self._reading:
            requests, self._restarts = self._restarts, []
        return requests

    def _reader(self) -> KafkaBasedLog:
        if self._log is None:
            raise ConnectError(f"The store on topic {self._topic.name} is not started. Call start() first.")
        return self._log

    def _record(self, record: LogRecord) -> None:
        with self._reading:
            change = self._state.apply(record.offset, record.key, record.value, record.timestamp)
            if change is not None and change.restart is not None and self._started:
                self._restarts.append(change.restart)
        if change is None or not self._started:
            return
        for callback in self._callbacks:
            try:
                callback(change.kind, change.connector)
            except Exception:
                log.exception("[%s] A listener for changes failed on a change of %s", change.connector, change.kind)

    def _write(self, decide: Decision) -> None:
        with self._writing:
            for attempt in range(_ATTEMPTS):
                try:
                    self._attempt(decide)
                    return
                except FencedError:
                    log.debug("Another writer of %s took over (attempt %d)", self._topic.name, attempt + 1)
                    if attempt:  # the first takeover may have happened hours ago
                        time.sleep(random.uniform(0, _JITTER_SECONDS * attempt))  # noqa: S311 (not a secret)
            raise ConflictError(
                f"Other writers changed {self._topic.name} {_ATTEMPTS} times while this change was being made. Nothing was "
                "written. Try again."
            )

    def _attempt(self, decide: Decision) -> None:
        """Decide on a change and write it, and return once it has been read. Raises FencedError."""
        reader = self._reader()
        is_newest = self._writer.active
        decided = self._decide(decide)
        changes: list[HistoryChange] = []
        history: list[KeyValue] = []
        if decided.change is not None:
            changes, history = self._history.next_records(decided.name, decided.change, newest=is_newest)
        if not decided.records and not history:
            return
        records = [(self._topic.name, key, value) for key, value in decided.records]
        records += [(self._history.name, key, value) for key, value in history]
        ends = self._writer.write(records, headers_of(changes[-1]) if changes else ())
        if history:
            self._history.written(history, ends, int(time.time() * 1000))
        # Inside the lock: the next change must be decided on a state with this one.
        reader.wait_for({partition: end for partition, end in ends.items() if partition.topic == self._topic.name})

    def _decide(self, decide: Decision) -> Decided:
        """Return a change of the newest state, after fencing if another process may have written."""
        if self._writer.active:
            try:
                decided = decide(self.snapshot())
            except ConnectError:
                decided = Decided(())
            if decided.records or decided.change is not None:
                return decided  # if another process has written since, writing it fails
        else:
            self._writer.fence()
        return decide(self.refresh())
