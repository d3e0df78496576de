"""Reads and writes a source connector's offsets in its offset store."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from sluiceway.api import Offset, Partition, SourceRecord
from sluiceway.storage.interfaces import OffsetBackingStore


class OffsetStorageReaderImpl:
    """Implements ``OffsetStorageReader`` for one connector. Runs on executors."""

    def __init__(self, store: OffsetBackingStore, connector: str) -> None:
        self._store = store
        self._connector = connector

    def offset(self, partition: Partition) -> Offset | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        return self._store.get(self._connector, partitions)


class OffsetStorageWriter:
    """Collects the newest offset of each source partition until they are written. Not thread-safe."""

    def __init__(self, store: OffsetBackingStore, connector: str) -> None:
        self._store = store
        self.connector = connector
        self._pending: dict[str, tuple[Partition, Offset | None]] = {}
        self._partition: object = None
        self._key = ""

    @property
    def pending(self) -> bool:
        """True if there are offsets that have not been written."""
        return bool(self._pending)

    def add_all(self, records: Sequence[SourceRecord]) -> None:
        """Add the offsets of records in order. Fast if many successive records share one partition object."""
        last = None
        for record in records:
            if last is not None and record.source_partition is not last.source_partition:
                self.add(last.source_partition, last.source_offset)
            last = record
        if last is not None:
            self.add(last.source_partition, last.source_offset)

    def add(self, partition: Partition | None, offset: Offset | None) -> None:
        """Add the offset of a partition's newest record. A record without a source partition has no offset."""
        if partition is None:
            return
        if self._partition is not partition:
            self._key = orjson.dumps(dict(partition)).decode()  # a copy: orjson's own result holds 4 KB, however short it is
            self._partition = partition
        self._pending[self._key] = (partition, offset)

    def write(self) -> None:
        """Store the pending offsets and wait until they are acknowledged. After an error they remain pending."""
        self._store.put(self.connector, list(self._pending.values()))
        self._pending.clear()

    def take(self) -> list[tuple[Partition, Offset | None]]:
        """Return the pending offsets and clear them. The caller writes or drops them."""
        pending = list(self._pending.values())
        self._pending.clear()
        return pending
