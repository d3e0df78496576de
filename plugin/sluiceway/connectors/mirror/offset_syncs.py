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
        self._copied: dict[TopicPartition, _Copied] = {}
        self._due: dict[TopicPartition, OffsetSync] = {}

    def copied(self, topic_partition: TopicPartition, upstream: int, downstream: int) -> bool:
        """Record that a record was copied. The records of a partition must come in order. Return whether syncs are due."""
        copied = self._copied.get(topic_partition)
        if copied is None:
            copied = self._copied[topic_partition] = _Copied()
        elif (
            upstream == copied.upstream + 1
            and downstream >= copied.downstream
            # Translation sends a consumer to the record after a sync's, so that record has no lag.
            and downstream - (copied.synced + 1) < self._max_lag
        ):
            copied.upstream, copied.downstream, copied.waiting = upstream, downstream, True
            return bool(self._due)
        copied.upstream, copied.downstream, copied.synced, copied.waiting = upstream, downstream, downstream, False
        self._due[topic_partition] = OffsetSync(topic_partition, upstream, downstream)
        return True

    def take_due(self) -> list[OffsetSync]:
        """Return the syncs that must be written now."""
        due, self._due = self._due, {}
        return list(due.values())

    def take_all(self) -> list[OffsetSync]:
        """Return all syncs that were not taken yet; with ``max_lag`` 0 or less, only those that are due."""
        if self._max_lag > 0:
            for topic_partition, copied in self._copied.items():
                if copied.waiting:
                    copied.waiting = False
                    self._due[topic_partition] = OffsetSync(topic_partition, copied.upstream, copied.downstream)
        return self.take_due()


class _Copied:
    """The last record of a partition that was copied, and the offset of the last one in the target that has a sync."""

    __slots__ = ("downstream", "synced", "upstream", "waiting")
    upstream: int
    downstream: int
    synced: int
    waiting: bool
    """Whether the last record has no sync yet."""
