"""Source offsets between a task and the store that keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from sluiceway.api import Offset, Partition, SourceRecord
from sluiceway.storage.interfaces import OffsetBackingStore


class StoredOffsets:
    """What a source task asks for stored offsets (``OffsetStorageReader``). Used on executors."""

    def __init__(self, store: OffsetBackingStore, connector: str) -> None:
        self._store = store
        self._connector = connector

    def offset(self, partition: Partition) -> Offset | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        return self._store.get(self._connector, partitions)


class OffsetWriter:
    """Collects the newest offset of each source partition until they are written. For one thread."""

    def __init__(self, store: OffsetBackingStore, connector: str) -> None:
        self._store = store
        self.connector = connector
        self._pending: dict[bytes, tuple[Partition, Offset | None]] = {}
        self._partition: object = None
        self._key = b""

    @property
    def pending(self) -> bool:
        """Whether there are offsets that are not written yet."""
        return bool(self._pending)

    def remember_all(self, records: Sequence[SourceRecord]) -> None:
        """Take the offsets of records in order; quick where many in a row share one partition object."""
        last = None
        for record in records:
            if last is not None and record.source_partition is not last.source_partition:
                self.remember(last.source_partition, last.source_offset)
            last = record
        if last is not None:
            self.remember(last.source_partition, last.source_offset)

    def remember(self, partition: Partition | None, offset: Offset | None) -> None:
        """Take the offset of a partition's newest record; a record without a partition has none."""
        if partition is None:
            return
        if self._partition is not partition:
            self._key = orjson.dumps(dict(partition))
            self._partition = partition
        self._pending[self._key] = (partition, offset)

    def write(self) -> None:
        """Store what is pending and wait until it is acknowledged; after an error it is pending still."""
        self._store.put(self.connector, list(self._pending.values()))
        self._pending.clear()

    def take(self) -> list[tuple[Partition, Offset | None]]:
        """Return what is pending and forget it: whoever takes it writes it, or gives it up."""
        pending = list(self._pending.values())
        self._pending.clear()
        return pending
