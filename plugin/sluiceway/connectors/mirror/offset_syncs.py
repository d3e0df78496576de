"""Offset syncs: which offset of the target a record of the source has, for moving consumers from one to the other. Pure."""

from __future__ import annotations

import struct
from typing import NamedTuple

from sluiceway.api import TopicPartition


class OffsetSync(NamedTuple):
    """The record of a source's partition that was copied: its offset there, and its copy's."""

    place: TopicPartition
    upstream: int
    downstream: int

    def encoded(self) -> tuple[bytes, bytes]:
        """Return the key and value of the sync's record, as MirrorMaker 2 writes and reads them."""
        topic = self.place.topic.encode()
        key = struct.pack(f">h{len(topic)}si", len(topic), topic, self.place.partition)
        return key, struct.pack(">qq", self.upstream, self.downstream)


class OffsetSyncs:
    """Decides which of the records copied are worth a sync. For one thread.

    At once: a partition's first record, one behind a gap, one whose copy is ``most_lag`` records or more behind the last
    sync's, and one whose copy has a smaller offset than the copy before (the topic was made anew). The others wait for
    ``take_all``; only the newest of each partition is kept.
    """

    def __init__(self, most_lag: int) -> None:
        self._most_lag = most_lag
        self._last: dict[TopicPartition, OffsetSync] = {}
        self._synced: dict[TopicPartition, int] = {}
        self._due: dict[TopicPartition, OffsetSync] = {}
        self._waiting: dict[TopicPartition, OffsetSync] = {}

    def copied(self, place: TopicPartition, upstream: int, downstream: int) -> None:
        """Take note that a record was copied; a partition's records come in order."""
        sync = OffsetSync(place, upstream, downstream)
        if self._is_due(sync):
            self._synced[place] = downstream
            self._waiting.pop(place, None)
            self._due[place] = sync
        else:
            self._waiting[place] = sync
        self._last[place] = sync

    def take_due(self) -> list[OffsetSync]:
        """Return the syncs that are to be written now."""
        if not self._due:
            return []
        due, self._due = self._due, {}
        return list(due.values())

    def take_all(self) -> list[OffsetSync]:
        """Return all syncs that have not been written, with ``most_lag`` 0 or less only those that are due."""
        if self._most_lag > 0:
            self._due |= self._waiting
            self._waiting.clear()
        return self.take_due()

    def _is_due(self, sync: OffsetSync) -> bool:
        last = self._last.get(sync.place)
        if last is None or sync.upstream != last.upstream + 1 or sync.downstream < last.downstream:
            return True
        # A consumer is sent to the record behind a sync's, so that one is not behind yet.
        return sync.downstream - (self._synced[sync.place] + 1) >= self._most_lag
