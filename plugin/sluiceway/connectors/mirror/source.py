"""Copies topics of another Kafka cluster byte for byte: MirrorMaker 2's MirrorSourceConnector and its task."""

from __future__ import annotations

import functools
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api import (
    ExactlyOnceSupport,
    Offset,
    Partition,
    SourceConnector,
    SourceRecord,
    SourceTask,
    SourceTaskContext,
    TopicPartition,
)
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.mirror import config as mirror_config
from sluiceway.connectors.mirror import keys
from sluiceway.connectors.mirror.client_properties import CONSUMER, PRODUCER, SOURCE, reads_committed
from sluiceway.connectors.mirror.config import CONFIG, MirrorConfig
from sluiceway.connectors.mirror.offset_syncs import OffsetSync, OffsetSyncs
from sluiceway.connectors.mirror.topic_partitions import (
    ASSIGNED_PARTITIONS,
    OFFSET,
    PARTITION,
    TASK_INDEX,
    TOPIC,
    assign_round_robin,
    assignment_text,
    check_offset,
    next_position,
    parse_assignment,
    source_partition,
)
from sluiceway.connectors.periodic import Job, Periodic
from sluiceway.data import BYTES_SCHEMA, OPTIONAL_BYTES_SCHEMA, Header, Headers
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from sluiceway.connectors.mirror.replicator import Replicator
    from sluiceway.kafka.source_cluster import BestEffortWriter, SourcePartitionReader

log = logging.getLogger(__name__)

_MAX_POLL_SECONDS = 1.0  # pause and stop take effect only after a poll has returned
_NO_TIMESTAMP = 0
_PREVIEW_POLLS = 4


class _OffsetSyncWriter:
    """Writes the offset syncs that are due, for the records that one task has copied."""

    def __init__(self, writer: BestEffortWriter, max_lag: int) -> None:
        self._writer = writer
        self._syncs = OffsetSyncs(max_lag)

    def poll(self) -> None:
        """Run the producer's callbacks."""
        self._writer.poll()

    def copied(self, topic_partition: TopicPartition, upstream: int, downstream: int) -> None:
        """Record the offsets of a copied record in both clusters."""
        if self._syncs.copied(topic_partition, upstream, downstream):
            self._write(self._syncs.take_due())

    def commit(self) -> None:
        """Write the syncs that were held back until now."""
        self._write(self._syncs.take_all())

    def close(self) -> None:
        self._writer.close()

    def _write(self, syncs: Sequence[OffsetSync]) -> None:
        for sync in syncs:
            self._writer.write(*sync.encoded())


class MirrorSourceTask(SourceTask):
    """Copies the partitions in ``task.assigned.partitions``. The offset ``{"offset": n}`` is that of the last copied record."""

    _reader: SourcePartitionReader | None = None
    _syncs: _OffsetSyncWriter | None = None

    def start(self, config: Mapping[str, str]) -> None:
        from sluiceway.kafka.source_cluster import BestEffortWriter, SourcePartitionReader

        mirror = MirrorConfig(config)
        if mirror.poll_timeout < 0:
            raise ConfigError(
                keys.CONSUMER_POLL_TIMEOUT_MS, config[keys.CONSUMER_POLL_TIMEOUT_MS], "Timeout must not be negative"
            )
        self._timeout = min(mirror.poll_timeout, _MAX_POLL_SECONDS)
        partitions = parse_assignment(config.get(ASSIGNED_PARTITIONS, ""))
        # One object for all records of a partition saves time and memory.
        self._source_partitions: dict[TopicPartition, Partition] = {
            partition: source_partition(mirror.source, partition) for partition in partitions
        }
        # By identity, because a dict has no hash. The dicts live as long as the task.
        self._copied_from = {id(each): partition for partition, each in self._source_partitions.items()}
        self._remote_topics = {topic: mirror.remote(topic) for topic in {partition.topic for partition in partitions}}
        stored = self.context.offset_storage_reader.offsets(list(self._source_partitions.values()))
        positions = {partition: next_position(offset) for partition, offset in zip(partitions, stored, strict=True)}
        self._reader = SourcePartitionReader(
            mirror.client(SOURCE, CONSUMER, "replication-consumer"), positions, self.context.waiting
        )
        if (syncs := mirror.offset_syncs) is not None:
            role = f"offset-syncs-{syncs.cluster}-producer"
            writer = BestEffortWriter(mirror.client(syncs.cluster, PRODUCER, role), syncs.topic)
            self._syncs = _OffsetSyncWriter(writer, syncs.max_lag)

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._reader is None:  # stopped
            return None
        if self._syncs is not None:
            self._syncs.poll()
        messages = self._reader.poll(self._timeout)
        return [self._copy(message) for message in messages] or None

    def _copy(self, message: Any) -> SourceRecord:
        topic, partition = message.topic(), message.partition()
        kind, timestamp = message.timestamp()
        headers = message.headers()
        return SourceRecord(
            self._source_partitions[topic, partition],  # type: ignore[index]  # equal to a TopicPartition
            {OFFSET: message.offset()},
            self._remote_topics[topic],
            message.value(),
            BYTES_SCHEMA,
            message.key(),
            OPTIONAL_BYTES_SCHEMA,
            partition,
            None if kind == _NO_TIMESTAMP else timestamp,
            _headers(headers) if headers else (),
        )

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        # Negative: a transform filtered the record out.
        if self._syncs is None or offset < 0 or record.source_partition is None or record.source_offset is None:
            return
        copied = self._copied_from.get(id(record.source_partition))
        if copied is None:  # a transform made a partition of its own
            copied = TopicPartition(record.source_partition[TOPIC], record.source_partition[PARTITION])
        self._syncs.copied(copied, record.source_offset[OFFSET], offset)

    def commit(self) -> None:
        if self._syncs is not None:
            self._syncs.commit()

    def stop(self) -> None:
        reader, self._reader = self._reader, None
        syncs, self._syncs = self._syncs, None
        if reader is not None:
            reader.close()
        if syncs is not None:
            syncs.close()


class MirrorSourceConnector(SourceConnector):
    """Copies topics of another Kafka cluster byte for byte, as MirrorMaker 2 does: keys, values, headers and timestamps.
    Records keep their partition. The connector creates the remote topics and copies settings and read ACLs to them. It writes
    offset syncs, looks for new topics and partitions at intervals, and does not copy back topics that came from the target.
    ``key.converter``, ``value.converter`` and ``header.converter`` must be
    ``org.apache.kafka.connect.converters.ByteArrayConverter``. ``source.cluster.bootstrap.servers`` and
    ``target.cluster.bootstrap.servers`` are required. Security settings have the prefix ``source.cluster.`` or
    ``target.cluster.``; other client settings have a prefix such as ``source.consumer.`` or ``target.admin.``. Where
    librdkafka's property names differ from Java's, use librdkafka's. The target must be the cluster that the worker writes
    to. ``forwarding.admin.class``, ``metric.reporters`` and ``metric.names.formats`` have no effect.

    Periodic jobs run on a thread of their own. A stored offset is that of the last copied record.
    """

    task_class = MirrorSourceTask
    java_class = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
    java_task_class = "org.apache.kafka.connect.mirror.MirrorSourceTask"

    _config: MirrorConfig
    _jobs: Periodic | None = None
    _partitions: frozenset[TopicPartition] = frozenset()

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "it creates topics in the target cluster, changes their settings and ACLs, and writes offset syncs"

    @classmethod
    def preview(cls, context: SourceTaskContext, most: int) -> Sequence[SourceRecord]:
        """Read with a task that writes no offset syncs, and create no topics."""
        from sluiceway.connectors.mirror.replicator import Replicator

        config = {**context.configs, keys.EMIT_OFFSET_SYNCS_ENABLED: "false"}
        mirror = MirrorConfig(config)
        partitions = Replicator(mirror).partitions() if mirror.enabled else frozenset()
        task = MirrorSourceTask()
        task.initialize(context)
        records: list[SourceRecord] = []
        try:
            task.start({**config, ASSIGNED_PARTITIONS: assignment_text(sorted(partitions)), TASK_INDEX: "0"})
            for _ in range(_PREVIEW_POLLS if partitions else 0):
                records += task.poll() or ()
                if len(records) >= most:
                    break
        finally:
            task.stop()
        return records

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        return mirror_config.check(config)

    def start(self, config: Mapping[str, str]) -> None:
        from sluiceway.connectors.mirror.replicator import Replicator

        self._config = mirror = MirrorConfig(config)
        if not mirror.enabled:
            log.info("%s copies nothing, because %s=false", mirror.name, keys.ENABLED)
            return
        replicator = Replicator(mirror)
        replicator.create_offset_syncs_topic()
        self._partitions = replicator.refresh()
        log.info("%s copies %s from %s to %s", mirror.name, _summary(self._partitions), mirror.source, mirror.target)
        refresh = functools.partial(self._refresh, replicator)
        self._jobs = Periodic(
            f"mirror-{mirror.name}",
            [
                Job("to copy ACLs of topics", replicator.sync_acls, mirror.acls_interval, at_once=True),
                Job("to copy settings of topics", replicator.sync_settings, mirror.configs_interval, at_once=True),
                Job("to look for new topics", refresh, mirror.refresh_interval),
            ],
        )
        self._jobs.start()

    def _refresh(self, replicator: Replicator) -> None:
        """Request new task configs if the partitions to copy have changed. Runs on the jobs' thread."""
        found = replicator.refresh(tolerant=True)
        if found != self._partitions:
            log.info("%s copies %s from now on", self._config.name, _summary(found))
            self._partitions = found
            self.context.request_task_reconfiguration()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign the partitions round-robin; return no task config while there is nothing to copy."""
        return [
            {**self._config.properties, ASSIGNED_PARTITIONS: assignment_text(partitions), TASK_INDEX: str(index)}
            for index, partitions in enumerate(assign_round_robin(self._partitions, max_tasks))
        ]

    def stop(self) -> None:
        if self._jobs is not None:
            self._jobs.stop()

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED if reads_committed(config) else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for partition, offset in offsets:
            check_offset(partition, offset)
        return True


def _summary(partitions: Collection[TopicPartition]) -> str:
    return f"{len(partitions)} partitions of {len({partition.topic for partition in partitions})} topics"


def _headers(headers: Sequence[tuple[str, bytes | None]]) -> Headers:
    return tuple(Header(key, value, OPTIONAL_BYTES_SCHEMA if value is None else BYTES_SCHEMA) for key, value in headers)
