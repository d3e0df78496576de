"""Decides when to write offset syncs, which translate consumer offsets from the source to the target. No I/O."""

from __future__ import annotations

import struct
from typing import NamedTuple

from sluiceway.api import TopicPartition


class OffsetSync(NamedTuple):
    """The offsets of a copied record in the source (``upstream``) and in the target (``downstream``)."""

    topic_partition: TopicPartition
    upstream: int
    downstream: int

    def encoded(self) -> tuple[bytes, bytes]:
        """Return the key and value of the record in MirrorMaker 2's format."""
        topic = self.topic_partition.topic.encode()
        key = struct.pack(f">h{len(topic)}si", len(topic), topic, self.topic_partition.partition)
        return key, struct.pack(">qq", self.upstream, self.downstream)


class OffsetSyncs:
    """Selects the copied records that get an offset sync. Not thread-safe.

    A sync is due at once for a partition's first record, for a record after a gap, for a copy that is ``max_lag`` or more
    records after the last synced one, and for a copy whose offset is smaller than the previous one (the target topic was
    deleted and created again). Otherwise only the newest sync of each partition is kept, until ``take_all``.
    """

    def __init__(self, max_lag: int) -> None:
        self._max_lag = max_lag
        self._last: dict[TopicPartition, OffsetSync] = {}
        self._synced: dict[TopicPartition, int] = {}
        self._due: dict[TopicPartition, OffsetSync] = {}
        self._waiting: dict[TopicPartition, OffsetSync] = {}

    def copied(self, topic_partition: TopicPartition, upstream: int, downstream: int) -> None:
        """Record that a record was copied. The records of a partition must come in order."""
        sync = OffsetSync(topic_partition, upstream, downstream)
        if self._is_due(sync):
            self._synced[topic_partition] = downstream
            self._waiting.pop(topic_partition, None)
            self._due[topic_partition] = sync
        else:
            self._waiting[topic_partition] = sync
        self._last[topic_partition] = sync

    def take_due(self) -> list[OffsetSync]:
        """Return the syncs that must be written now."""
        if not self._due:
            return []
        due, self._due = self._due, {}
        return list(due.values())

    def take_all(self) -> list[OffsetSync]:
        """Return all syncs that were not taken yet; with ``max_lag`` 0 or less, only those that are due."""
        if self._max_lag > 0:
            self._due |= self._waiting
            self._waiting.clear()
        return self.take_due()

    def _is_due(self, sync: OffsetSync) -> bool:
        last = self._last.get(sync.topic_partition)
        if last is None or sync.upstream != last.upstream + 1 or sync.downstream < last.downstream:
            return True
        # Translation sends a consumer to the record after a sync's, so that record has no lag.
        return sync.downstream - (self._synced[sync.topic_partition] + 1) >= self._max_lag
