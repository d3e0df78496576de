"""Reads the history topic when it is asked for, and makes the records of further changes.

There is no thread that follows the topic: processes that make no changes and show none pay nothing for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.kafka.admin import await_leaders, create_topic, end_offsets, partition_count
from sluiceway.kafka.clients import AdminClient, admin_client
from sluiceway.kafka.kafka_based_log import KafkaBasedLog, LogRecord
from sluiceway.storage.codec import KeyValue
from sluiceway.storage.history import History, HistoryChange
from sluiceway.storage.topics import config_topic, history_topic_name

log = logging.getLogger(__name__)

_SETTINGS = {"cleanup.policy": "compact,delete", "retention.ms": str(366 * 24 * 3600 * 1000)}
_REFUSED = {"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "INVALID_REPLICATION_FACTOR", "POLICY_VIOLATION"}


class HistoryTopic:
    """The changes of all connectors. Thread-safe.

    A cluster that refuses the topic does not refuse the changes: they are made, and a warning says that they are not recorded.
    """

    def __init__(self, worker: WorkerConfig) -> None:
        self._worker = worker
        self._name = history_topic_name(worker)
        self._admin: AdminClient | None = None
        self._exists = False
        self._refused = False
        self._history = History()
        self._end = 0
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """The topic's name; empty if changes are not recorded."""
        return "" if self._refused else self._name

    def changes(self, connector: str) -> list[HistoryChange]:
        """Return a connector's changes, oldest first. Raises KafkaClientError, ConnectError."""
        with self._lock:
            if not self.name or not (self._exists or partition_count(self._client(), self._name)):
                return []
            self._refresh()
            return self._history.changes(connector)

    def next_records(self, connector: str, change: HistoryChange, *, newest: bool) -> tuple[list[HistoryChange], list[KeyValue]]:
        """Return a change with its version, and its records. Both are empty if the cluster refuses the topic.

        ``newest``: no other process has written since this one read the topic or wrote to it.
        """
        with self._lock:
            if not self.name or not self._usable(newest=newest):
                return [], []
            numbered = self._history.numbered(connector, change)
            return numbered, self._history.records(connector, numbered)

    def written(self, records: Sequence[KeyValue], ends: Mapping[TopicPartition, int], timestamp: int) -> None:
        """Add records that this process has written in a transaction, which ``ends`` returned."""
        with self._lock:
            for key, value in records:
                self._history.apply(key, value, timestamp)
            self._end = ends.get(self._partition, self._end) + 1  # the transaction's marker follows

    @property
    def _partition(self) -> TopicPartition:
        return TopicPartition(self._name, 0)

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = admin_client(self._worker)
        return self._admin

    def _usable(self, *, newest: bool) -> bool:
        """Create the topic if it is missing, and read it if others may have written. Return False if it is refused."""
        try:
            if not self._exists or not newest:
                if not partition_count(self._client(), self._name):
                    self._create()
                self._refresh()
        except KafkaClientError as error:
            if error.code not in _REFUSED:
                raise
            self._refused = True
            log.warning(
                "Changes of connectors are not recorded, because topic %s cannot be used: %s Create it, or set "
                "sluiceway.history.topic to an empty value.",
                self._name,
                error,
            )
        return not self._refused

    def _create(self) -> None:
        configs = config_topic(self._worker)
        create_topic(self._client(), self._name, 1, configs.replication_factor, {**configs.settings, **_SETTINGS})

    def _refresh(self) -> None:
        if not self._exists:
            await_leaders(self._client(), self._name)
            self._exists = True
        # The end with open transactions: that of the own last transaction may still be without its marker.
        end = end_offsets(self._client(), [self._partition], read_committed=False)[self._partition]
        if self._end - 1 <= end <= self._end:
            return
        self._history = history = History()

        def apply(record: LogRecord) -> None:
            history.apply(record.key, record.value, record.timestamp)

        reader = KafkaBasedLog(
            self._worker, self._name, 1, f"{self._worker.group_id}-history", apply, admin=self._client(), brief=True
        )
        try:
            reader.start()
        finally:
            reader.stop()
        self._end = end
