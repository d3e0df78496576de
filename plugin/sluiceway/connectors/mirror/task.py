"""Copies records of some partitions of the source, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api import Partition, SourceRecord, SourceTask, TopicPartition
from sluiceway.connectors.mirror import client_keys as keys
from sluiceway.connectors.mirror.client_properties import CONSUMER, PRODUCER, SOURCE
from sluiceway.connectors.mirror.config import MirrorConfig
from sluiceway.connectors.mirror.offset_syncs import OffsetSync, OffsetSyncs
from sluiceway.connectors.mirror.topic_partitions import (
    ASSIGNED_PARTITIONS,
    OFFSET,
    PARTITION,
    TOPIC,
    assigned,
    position_after,
    source_partition,
)
from sluiceway.data import BYTES_SCHEMA, OPTIONAL_BYTES_SCHEMA, Header, Headers
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from sluiceway.kafka.source_cluster import BestEffortWriter, PartitionReader

_MOST_SECONDS = 1.0  # how long a poll may wait, since pause and stop wait for it
_NO_TIMESTAMP = 0


class MirrorSourceTask(SourceTask):
    """Reads ``task.assigned.partitions``. An offset is ``{"offset": n}``, n being that of the last record copied."""

    _reader: PartitionReader | None = None
    _syncs: OffsetSyncs | None = None
    _writer: BestEffortWriter | None = None

    def start(self, config: Mapping[str, str]) -> None:
        from sluiceway.kafka.source_cluster import BestEffortWriter, PartitionReader

        mirror = MirrorConfig(config)
        if mirror.poll_timeout < 0:
            raise ConfigError(
                keys.CONSUMER_POLL_TIMEOUT_MS, config[keys.CONSUMER_POLL_TIMEOUT_MS], "Timeout must not be negative"
            )
        self._timeout = min(mirror.poll_timeout, _MOST_SECONDS)
        places = assigned(config.get(ASSIGNED_PARTITIONS, ""))
        # Made once: each record of a partition shares them.
        self._from: dict[tuple[str, int], Partition] = {place: source_partition(mirror.source, place) for place in places}
        self._to = {topic: mirror.remote(topic) for topic in {place.topic for place in places}}
        stored = self.context.offset_storage_reader.offsets(list(self._from.values()))
        positions = {place: position_after(offset) for place, offset in zip(places, stored, strict=True)}
        self._reader = PartitionReader(mirror.client(SOURCE, CONSUMER, "replication-consumer"), positions)
        if (syncs := mirror.offset_syncs) is not None:
            role = f"offset-syncs-{syncs.cluster}-producer"
            self._writer = BestEffortWriter(mirror.client(syncs.cluster, PRODUCER, role), syncs.topic)
            self._syncs = OffsetSyncs(syncs.most_lag)

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._reader is None:  # stopped
            return None
        if self._writer is not None:
            self._writer.poll()
        messages = self._reader.poll(self._timeout)
        return [self._copy(message) for message in messages] or None

    def _copy(self, message: Any) -> SourceRecord:
        topic, partition = message.topic(), message.partition()
        kind, timestamp = message.timestamp()
        headers = message.headers()
        return SourceRecord(
            self._from[topic, partition],
            {OFFSET: message.offset()},
            self._to[topic],
            message.value(),
            BYTES_SCHEMA,
            message.key(),
            OPTIONAL_BYTES_SCHEMA,
            partition,
            None if kind == _NO_TIMESTAMP else timestamp,
            _headers(headers) if headers else (),
        )

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        if self._syncs is None or offset < 0 or record.source_partition is None or record.source_offset is None:
            return
        place = TopicPartition(record.source_partition[TOPIC], record.source_partition[PARTITION])
        self._syncs.copied(place, record.source_offset[OFFSET], offset)
        self._write(self._syncs.take_due())

    def commit(self) -> None:
        if self._syncs is not None:
            self._write(self._syncs.take_all())

    def _write(self, syncs: Sequence[OffsetSync]) -> None:
        if self._writer is not None:
            for sync in syncs:
                self._writer.write(*sync.encoded())

    def stop(self) -> None:
        reader, self._reader = self._reader, None
        writer, self._writer = self._writer, None
        if reader is not None:
            reader.close()
        if writer is not None:
            writer.close()


def _headers(found: Sequence[tuple[str, bytes | None]]) -> Headers:
    return tuple(Header(key, value, OPTIONAL_BYTES_SCHEMA if value is None else BYTES_SCHEMA) for key, value in found)
