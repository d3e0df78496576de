"""Stores statuses on the status topic (distributed mode)."""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, DataError
from sluiceway.kafka.admin import ensure_internal_topic
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.kafka_based_log import KafkaBasedLog, LogRecord
from sluiceway.kafka.topic_writer import Headers, ProducerRecord, TopicWriter
from sluiceway.storage.codec import (
    HOST_PREFIX,
    OURS,
    KeyValue,
    decode_status_record,
    encode_connector_status,
    encode_task_status,
    encode_topic_status,
)
from sluiceway.storage.heartbeats import Heartbeat, decode_heartbeat, encode_heartbeat, is_heartbeat
from sluiceway.storage.model import ConnectorStatuses, LeaseOwner, Status, TaskId
from sluiceway.storage.status_state import StatusState, removal
from sluiceway.storage.topics import status_topic

log = logging.getLogger(__name__)

Write = Callable[[Sequence[ProducerRecord], Headers], Mapping[TopicPartition, int]]
"""Writes records with these headers and returns the offset after the last one, by partition."""

_MESSAGE = HOST_PREFIX.encode()

# A segment is compacted after it is closed, by default after a week or 1 GB. Until then every reader reads each heartbeat
# in it, and a million take 8 s. ``status.storage.segment.ms`` overrides this setting.
_EARLY_COMPACTION = {"segment.ms": "600000"}


class KafkaStatusBackingStore:
    """Implements ``StatusBackingStore`` on Kafka. Runs in any process. Thread-safe.

    With ``reading`` False it only writes, without a consumer, which is all that a task needs. Otherwise its own writes are
    visible as soon as the call returns. ``brief``: the store is open for one reading.
    """

    def __init__(self, worker: WorkerConfig, *, reading: bool = True, brief: bool = False) -> None:
        self._worker = worker
        self._brief = brief
        # Uses the worker's principal, as Connect's workers do for the group and the internal topics. All connectors share it.
        self.admin = admin_client(worker)
        topic = status_topic(worker)
        self._topic = replace(topic, settings={**_EARLY_COMPACTION, **topic.settings})
        self._client_id = f"{worker.group_id}-statuses"
        self._reading = reading
        self._state = StatusState()
        self._drivers: dict[bytes | None, str] = {}  # the worker ids of drivers by the keys of their heartbeats
        self._lock = threading.Lock()
        self._backlog: dict[bytes | None, LogRecord] | None = {}
        self._log: KafkaBasedLog | None = None
        self._producer: TopicWriter | None = None
        self._writer: Write | None = None
        self._listeners: list[Callable[[bytes, bytes | None], None]] = []
        self._messages: dict[bytes, bytes] = {}
        self._delivering = threading.RLock()

    def start(self) -> None:
        """Check or create the topic and, with ``reading``, read it to its end.

        Raises InternalTopicError, KafkaClientError.
        """
        partitions = ensure_internal_topic(self.admin, self._topic)
        self._producer = TopicWriter(self._worker, self._client_id)
        self._writer = self._producer.write
        if not self._reading:
            return
        self._log = KafkaBasedLog(
            self._worker,
            self._topic.name,
            partitions,
            self._client_id,
            self._record,
            admin=self.admin,
            brief=self._brief,
        )
        self._log.start()
        with self._lock:
            # Heartbeats make the topic long until it is compacted, so only the last record of each key is decoded.
            for record in (self._backlog or {}).values():
                self._apply(record)
            self._backlog = None

    def stop(self) -> None:
        if self._log is not None:
            self._log.stop()
        if self._producer is not None:
            self._producer.close()

    def written_by(self, write: Write) -> KafkaStatusBackingStore:
        """Return a view of this store that writes with ``write``, such as through a driver's lease.

        It starts and stops with this store.
        """
        view = copy.copy(self)
        view._writer = write
        return view

    def refresh(self, timeout: float = 30.0) -> None:
        self._reader().read_to_end(timeout)

    def positions(self) -> dict[TopicPartition, int]:
        """Return the offset up to which each partition has been read, which includes this store's own writes."""
        return self._reader().positions

    def put_connector(self, connector: str, status: Status) -> None:
        self._put([encode_connector_status(connector, status)])

    def put_task(self, task: TaskId, status: Status) -> None:
        self._put([encode_task_status(task, status)])

    def put_tasks(self, statuses: Mapping[TaskId, Status]) -> None:
        self._put([encode_task_status(task, status) for task, status in statuses.items()])

    def remove_connector(self, connector: str) -> None:
        self.refresh()
        with self._lock:
            records = removal(self._state, connector)
        self._put(records)

    def remove_task(self, task: TaskId) -> None:
        self._put([encode_task_status(task, None)])

    def snapshot(self) -> Mapping[str, ConnectorStatuses]:
        self._reader()
        with self._lock:
            return self._state.snapshot()

    def connector(self, connector: str) -> Status | None:
        self._reader()
        with self._lock:
            return self._state.connectors.get(connector)

    def tasks(self, connector: str) -> Mapping[int, Status]:
        self._reader()
        with self._lock:
            return dict(sorted(self._state.tasks.get(connector, {}).items()))

    def owner(self, connector: str) -> LeaseOwner | None:
        self._reader()
        with self._lock:
            return self._state.owner(connector)

    def driver(self, connector: str, since: int) -> str | None:
        self._reader()
        with self._lock:
            return self._state.driver(connector, since)

    def ended_driver(self, connector: str) -> str | None:
        self._reader()
        with self._lock:
            return self._state.ended_driver(connector)

    def metrics_urls(self, since: int) -> list[str]:
        self._reader()
        with self._lock:
            return [url for url, timestamp in self._state.metrics.values() if timestamp >= since]

    def put_topic(self, connector: str, task: int, topic: str) -> None:
        self._put([encode_topic_status(connector, topic, task, int(time.time() * 1000))])

    def topics(self, connector: str) -> list[str]:
        self._reader()
        with self._lock:
            return sorted(self._state.topics.get(connector, ()))

    def remove_topics(self, connector: str) -> None:
        self.refresh()
        with self._lock:
            records = removal(self._state, connector, only_topics=True)
        self._put(records)

    def put_message(self, key: bytes, value: bytes | None) -> None:
        """Write a record that is no status: a message between a driver and its task hosts (``HOST_PREFIX``)."""
        self._put([(key, value)])

    def put_heartbeat(self, sender: str, heartbeat: Heartbeat | None) -> None:
        """Renew statuses in every reader of the topic. None removes the sender's last heartbeat from the topic."""
        self._put([encode_heartbeat(sender, heartbeat)])

    def on_message(self, listener: Callable[[bytes, bytes | None], None]) -> None:
        """Call ``listener`` with key and value of each message: the last one of each key, then those that follow.

        It runs on this thread, then on the reader's. It must not wait for another message.
        """
        with self._delivering:
            self._listeners.append(listener)
            for key, value in self._messages.items():
                listener(key, value)

    def _put(self, records: Sequence[KeyValue]) -> None:
        if not records:
            return
        if self._writer is None:
            raise ConnectError(f"The store on topic {self._topic.name} is not started. Call start() first.")
        ends = self._writer([(self._topic.name, key, value) for key, value in records], OURS)
        if self._log is not None:
            self._log.wait_for(ends)

    def _reader(self) -> KafkaBasedLog:
        if self._log is None:
            raise ConnectError(f"The store on topic {self._topic.name} is not started for reading. Call start() first.")
        return self._log

    def _record(self, record: LogRecord) -> None:
        if record.key is not None and record.key.startswith(_MESSAGE) and not is_heartbeat(record.key):
            self._deliver(record.key, record.value)
            return
        with self._lock:
            if self._backlog is not None:
                self._backlog[record.key] = record
            else:
                self._apply(record)

    def _apply(self, record: LogRecord) -> None:
        if not is_heartbeat(record.key):
            self._state.apply(decode_status_record(record.key, record.value, record.timestamp, record.headers))
        elif record.value is None:
            if (worker_id := self._drivers.pop(record.key, None)) is not None:
                self._state.end(worker_id)
        else:
            try:
                heartbeat = decode_heartbeat(record.value)
            except DataError as error:
                log.warning("Ignoring the record %s of the status topic: %s", record.key, error)
                return
            if heartbeat.connectors:
                self._drivers[record.key] = heartbeat.worker_id
            self._state.renew(heartbeat, record.timestamp)

    def _deliver(self, key: bytes, value: bytes | None) -> None:
        with self._delivering:
            if value is None:
                self._messages.pop(key, None)
            else:
                self._messages[key] = value
            for listener in self._listeners:
                listener(key, value)
