"""Stored source offsets in memory, for unit tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluiceway.api import Offset, Partition, SourceRecord


class MemoryOffsets:
    """The stored offsets of one source connector, which tasks read (an ``OffsetStorageReader``).

    Offsets are converted to JSON, like in Kafka: a tuple is read back as a list, and a value without a JSON form raises
    TypeError.
    """

    def __init__(self, stored: Iterable[tuple[Partition, Offset]] = ()) -> None:
        self._stored: dict[str, str] = {}
        for partition, offset in stored:
            self.store(partition, offset)

    def store(self, partition: Partition, offset: Offset | None) -> None:
        """Store the offset of a source partition; None deletes it."""
        key = json.dumps(partition, sort_keys=True)
        if offset is None:
            self._stored.pop(key, None)
        else:
            self._stored[key] = json.dumps(offset)

    def store_all(self, records: Iterable[SourceRecord]) -> None:
        """Store the offsets of records, in order, as if Kafka had acknowledged the records."""
        for record in records:
            if record.source_partition is not None:
                self.store(record.source_partition, record.source_offset)

    def offset(self, partition: Partition) -> Offset | None:
        """Return the stored offset of a source partition, or None if there is none."""
        found = self._stored.get(json.dumps(partition, sort_keys=True))
        return None if found is None else json.loads(found)

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        """Return the stored offsets of several partitions, in the same order."""
        return [self.offset(partition) for partition in partitions]

    def all(self) -> list[tuple[dict[str, Any], Mapping[str, Any]]]:
        """Return all source partitions with their offsets."""
        return [(json.loads(key), json.loads(value)) for key, value in self._stored.items()]

    def __len__(self) -> int:
        return len(self._stored)
