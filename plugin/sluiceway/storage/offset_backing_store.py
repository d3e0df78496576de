"""Stores source offsets on the offsets topic (distributed mode)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from sluiceway import discovery
from sluiceway.api.records import Offset, Partition
from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, DataError, InternalTopicError, KafkaClientError
from sluiceway.kafka.admin import ensure_internal_topic, partition_count
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.kafka_based_log import SHORT_FETCH_MS, KafkaBasedLog, LogRecord
from sluiceway.kafka.topic_writer import TopicWriter
from sluiceway.storage.codec import decode_offset, decode_offset_key, encode_offset, encode_offset_key
from sluiceway.storage.config_state import ConfigState
from sluiceway.storage.model import ClusterState
from sluiceway.storage.topics import offset_topic

log = logging.getLogger(__name__)

# The open transaction of a dead task of any connector keeps readers from the topic's end until it times out, after its
# transaction.timeout.ms (60 s unless overridden).
_READ_SECONDS = 90.0


class KafkaOffsetBackingStore:
    """Implements ``OffsetBackingStore`` and ``TransactionalOffsets`` on Kafka. Runs in any process. Thread-safe.

    ``put`` writes at least once. Exactly-once tasks write the records of ``for_transaction`` in their own transactions and
    read them here. ``topic`` is a connector's own ``offsets.storage.topic``, None the worker's topic.
    ``brief``: the store is open for one reading.
    """

    def __init__(self, worker: WorkerConfig, topic: str | None = None, *, brief: bool = False) -> None:
        self._worker = worker
        self._brief = brief
        self._topic = offset_topic(worker, topic)
        self._client_id = f"{worker.group_id}-offsets"
        self._stored: dict[bytes, bytes] = {}
        self._lock = threading.Lock()
        self._log: KafkaBasedLog | None = None
        self._writer: TopicWriter | None = None

    def start(self) -> None:
        """Check or create the topic and read it to its end. Raises InternalTopicError, KafkaClientError."""
        admin = admin_client(self._worker)
        partitions = ensure_internal_topic(admin, self._topic, may_create=self._refuse_if_lost)
        self._writer = TopicWriter(self._worker, self._client_id)
        # A task that missed an offset that it has committed would repeat records, also in exactly-once (KIP-618).
        self._log = KafkaBasedLog(
            self._worker,
            self._topic.name,
            partitions,
            self._client_id,
            self._record,
            admin=admin,
            fetch_wait_ms=SHORT_FETCH_MS,
            waits_for_transactions=True,
            brief=self._brief,
        )
        self._log.start(_READ_SECONDS)
        with self._lock:  # a dictionary stays as large as it was before the tombstones
            self._stored = dict(self._stored)

    def ensure_topic(self) -> None:
        """Check or create the topic as ``start`` does, without reading it."""
        ensure_internal_topic(admin_client(self._worker), self._topic, may_create=self._refuse_if_lost)

    def stop(self) -> None:
        if self._log is not None:
            self._log.stop()
        if self._writer is not None:
            self._writer.close()

    def get(self, connector: str, partitions: Sequence[Partition]) -> list[Offset | None]:
        """Return the stored offsets in the order of ``partitions``. Raises DataError for one that cannot be read."""
        keys = [encode_offset_key(connector, partition) for partition in partitions]
        self._reader().read_to_end(_READ_SECONDS)
        with self._lock:
            values = [self._stored.get(key) for key in keys]
        return [stored_offset(key, value, f"topic {self._topic.name}") for key, value in zip(keys, values, strict=True)]

    def put(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        """Store offsets and wait until they are acknowledged. Raises KafkaClientError after 30 s, InternalTopicError."""
        records = [encode_offset(connector, partition, offset) for partition, offset in offsets]
        reader = self._reader()
        reader.check()
        if self._writer is None:
            raise self._not_started()
        if not records:
            return
        try:
            self._writer.write([(self._topic.name, key, value) for key, value in records])
        except KafkaClientError:
            reader.verify()
            raise

    def for_transaction(
        self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> list[tuple[str, bytes, bytes | None]]:
        """Return the records as ``TransactionalOffsets`` does. Raises InternalTopicError if the topic was lost."""
        self._reader().check()
        return [(self._topic.name, *encode_offset(connector, partition, offset)) for partition, offset in offsets]

    def committed(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        """Do nothing: the reader reads them from the topic."""

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        """Read to the topic's end and return every stored partition of a connector with its offset."""
        self._reader().read_to_end(_READ_SECONDS)
        with self._lock:
            stored = dict(self._stored)
        return offsets_of(connector, stored, f"topic {self._topic.name}")

    def _reader(self) -> KafkaBasedLog:
        if self._log is None:
            raise self._not_started()
        return self._log

    def _not_started(self) -> ConnectError:
        return ConnectError(f"The store on topic {self._topic.name} is not started. Call start() first.")

    def _refuse_if_lost(self) -> None:
        """Refuse to create a lost topic. A connector's own topic may be created: the worker's topic has its backups."""
        if self._topic.name == self._worker.offset_topic:
            refuse_if_sources_have_run(self._worker)

    def _record(self, record: LogRecord) -> None:
        with self._lock:
            if record.key is not None and record.value is not None:
                self._stored[record.key] = record.value
            elif record.key is not None:
                self._stored.pop(record.key, None)


def stored_offset(key: bytes, value: bytes | None, where: str) -> Offset | None:
    """Decode a stored value. Raises DataError, which names the key and ``where`` the value is stored."""
    try:
        return decode_offset(value)
    except DataError as error:
        raise DataError(
            f"The offset of {key.decode(errors='replace')} in {where} cannot be read: {error} "
            "Set or delete it. It is not ignored, because the source would then start from the beginning."
        ) from error


def offsets_of(connector: str, stored: dict[bytes, bytes], where: str) -> list[tuple[Partition, Offset]]:
    """Return the partitions and offsets of one connector from all that are stored."""
    found: list[tuple[Partition, Offset]] = []
    for key, value in stored.items():
        parsed = decode_offset_key(key)
        if parsed is not None and parsed[0] == connector:
            offset = stored_offset(key, value, where)
            if offset is not None:
                found.append((parsed[1], offset))
    return found


def refuse_if_sources_have_run(worker: WorkerConfig) -> None:
    """Raise InternalTopicError if source connectors of this cluster had tasks, so that the offsets topic must have existed.

    Kafka Connect and Sluiceway both create the offsets topic before they commit task configs. Reads the config topic.
    """
    if names := sources_that_ran(_config_topic(worker)):
        partitions = worker.number("offset.storage.partitions")
        raise InternalTopicError(
            f"Topic '{worker.offset_topic}' supplied via the 'offset.storage.topic' property does not exist, but "
            f"'{worker.config_topic}' shows that source connectors of this cluster have run ({', '.join(sorted(names))}). It was "
            "deleted, or renamed in the worker's properties. With a new one they would all start from the beginning. Restore "
            f"it. To start from the beginning on purpose, or to set the offsets afterwards, create an empty one: "
            f"kafka-topics.sh --create --topic {worker.offset_topic} --partitions {partitions if partitions > 0 else 25} "
            "--config cleanup.policy=compact"
        )


def sources_that_ran(state: ClusterState) -> list[str]:
    """Return the names of the source connectors that have had task configs. No I/O."""
    return [
        name
        for name, entry in state.connectors.items()
        if entry.config is not None and entry.applied_config is not None and _is_source(entry.config)
    ]


def _is_source(config: Mapping[str, str]) -> bool:
    try:
        return not discovery.is_sink(discovery.connector_class(config.get(CONNECTOR_CLASS, "")))
    except ConnectError:  # the class may be installed elsewhere; only sinks must set topics
        return "topics" not in config and "topics.regex" not in config


def _config_topic(worker: WorkerConfig) -> ClusterState:
    admin = admin_client(worker)
    state = ConfigState()
    partitions = partition_count(admin, worker.config_topic)
    if partitions is None:
        return state.snapshot()

    def apply(record: LogRecord) -> None:
        state.apply(record.offset, record.key, record.value)

    reader = KafkaBasedLog(worker, worker.config_topic, partitions, f"{worker.group_id}-configs", apply, admin=admin)
    try:
        reader.start()
        return state.snapshot()
    finally:
        reader.stop()
