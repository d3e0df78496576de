"""The config store of distributed mode: reads the config topic in the background, writes it as its only writer."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Sequence

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError, ConnectError, FencedError
from sluiceway.kafka.admin import ensure_internal_topic
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.kafka.kafka_based_log import KafkaBasedLog, LogRecord
from sluiceway.storage.codec import KeyValue
from sluiceway.storage.config_state import ConfigState
from sluiceway.storage.config_writes import ConfigWrites, Decision
from sluiceway.storage.interfaces import ConfigChange
from sluiceway.storage.model import ClusterState, RestartRequest
from sluiceway.storage.topics import config_topic

log = logging.getLogger(__name__)

_ATTEMPTS = 10
_JITTER_SECONDS = 0.1


class KafkaConfigBackingStore(ConfigWrites):
    """See ``ConfigBackingStore``. Driver or API server; thread-safe.

    Every change is one transaction under the transactional id ``connect-cluster-<group.id>``. A process that fences keeps
    its place until another one fences, and until then nobody else's change can have come in between; so only a writer
    that has just fenced needs to read to the end before it decides.
    """

    def __init__(self, worker: WorkerConfig) -> None:
        self._worker = worker
        self._topic = config_topic(worker)
        self._client_id = f"{worker.group_id}-configs"
        self._writer = FencedWriter(worker, f"connect-cluster-{worker.group_id}", self._client_id)
        self._writing = threading.Lock()
        self._state = ConfigState()
        self._reading = threading.Lock()
        self._callbacks: list[ConfigChange] = []
        self._restarts: list[RestartRequest] = []
        self._started = False
        self._log: KafkaBasedLog | None = None

    def start(self) -> None:
        """Check or create the topic, read it to its end, and go on reading. Raises InternalTopicError, KafkaClientError."""
        admin = admin_client(self._worker)
        partitions = ensure_internal_topic(admin, self._topic)
        # Fetches are short here: after a transaction's marker the end is only known once the next fetch has returned.
        self._log = KafkaBasedLog(
            self._worker, self._topic.name, partitions, self._client_id, self._record, admin=admin, fetch_wait_ms=100
        )
        self._log.start()
        self._started = True
        state = self.snapshot()
        log.info("Read %s up to offset %d: %d connectors", self._topic.name, state.offset, len(state.names()))

    def stop(self) -> None:
        if self._log is not None:
            self._log.stop()
        with self._writing:
            self._writer.close()

    def snapshot(self) -> ClusterState:
        if self._log is not None:
            self._log.check()  # nobody may go on with what a lost topic once said
        with self._reading:
            return self._state.snapshot()

    def refresh(self, timeout: float = 30.0) -> ClusterState:
        self._reader().read_to_end(timeout)
        return self.snapshot()

    def on_change(self, callback: ConfigChange) -> None:
        self._callbacks.append(callback)

    def take_restart_requests(self) -> list[RestartRequest]:
        with self._reading:
            taken, self._restarts = self._restarts, []
        return taken

    def _reader(self) -> KafkaBasedLog:
        if self._log is None:
            raise ConnectError(f"The store on topic {self._topic.name} has not been started.")
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
                log.exception("[%s] A listener failed on a change of %s", change.connector, change.kind)

    def _write(self, decide: Decision) -> None:
        reader = self._reader()
        with self._writing:
            for attempt in range(_ATTEMPTS):
                try:
                    records = self._decide(decide)
                    if not records:
                        return
                    ends = self._writer.write([(self._topic.name, key, value) for key, value in records])
                    break
                except FencedError:
                    log.debug("Another writer of %s took over (attempt %d)", self._topic.name, attempt + 1)
                    if attempt:  # the first time it may have been hours ago
                        time.sleep(random.uniform(0, _JITTER_SECONDS * attempt))  # noqa: S311 (no secret)
            else:
                raise ConflictError(
                    f"Other writers changed {self._topic.name} {_ATTEMPTS} times while this change was being made. Nothing was "
                    "written; try again."
                )
            reader.wait_for(ends)  # within the lock, or the next writer here would decide without this write

    def _decide(self, decide: Decision) -> Sequence[KeyValue]:
        """Decide on the newest state, fencing first where another writer may have been at work."""
        if self._writer.active:
            try:
                records = decide(self.snapshot())
            except ConnectError:
                records = ()
            if records:
                return records  # if the state was not the newest, writing them fails
        else:
            self._writer.fence()
        return decide(self.refresh())
