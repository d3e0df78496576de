"""Runs a task of the folder source as the runtime does, without Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluiceway.api import Column, Offset, Partition, SourceColumns, SourceRecord
from sluiceway.columns.arrays import to_values
from sluiceway.connectors.folder.readers import LogReader
from sluiceway.connectors.folder.task import FolderSourceTask
from sluiceway.testing import MemoryOffsets, MemorySourceContext


class FolderTask:
    """A task, and its offsets, which outlive it. ``config`` has the keys that the test is about."""

    def __init__(self, **config: str) -> None:
        self.config = {"topic": "t", "scan.interval.ms": "10", **config}
        self.offsets: dict[str, Any] = {}
        """The stored offset of each source partition as JSON, None for one that was removed."""
        self.records: list[SourceRecord] = []
        self.columnar = 0
        """The batches that were columns."""
        self.start()

    def start(self) -> None:
        self.context = MemorySourceContext(self.config, _Stored(self.offsets))
        self.task = FolderSourceTask()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def restart(self) -> None:
        """End without a commit, and start again."""
        self.task.stop()
        self.start()

    def poll(self, *, columnar: bool = True) -> list[SourceRecord]:
        """Poll once, with all intervals over, and check that columns have the records and offsets of the row form."""
        self.task._scan_due = 0.0
        for reader in self.task._readers.values():
            if isinstance(reader, LogReader):
                reader._searched = -1.0
        polled = self.task.poll_columns() if columnar else self.task.poll()
        if not isinstance(polled, SourceColumns):
            return list(polled or [])
        self.columnar += 1
        records = list(polled.records())
        assert columns_of(polled) == [(record.key, record.value) for record in records]
        offsets = [*polled.more_offsets, (polled.source_partition, polled.source_offset)]
        newest = {json.dumps(record.source_partition): record.source_offset for record in records}
        assert {json.dumps(partition): offset for partition, offset in offsets} == newest
        assert len(offsets) == len(newest)
        return records

    def take(self, records: Iterable[SourceRecord]) -> None:
        """Keep records and their offsets, as if they were in Kafka."""
        for record in records:
            self.records.append(record)
            self.store([(record.source_partition or {}, record.source_offset)])

    def store(self, offsets: Iterable[tuple[Partition, Offset | None]]) -> None:
        self.offsets.update((json.dumps(partition), offset) for partition, offset in offsets)

    def run(self, *, columnar: bool = True) -> list[Any]:
        """Poll until there is nothing more, commit, and return the values of the new records."""
        before, idle = len(self.records), 0
        while idle < 3:
            records = self.poll(columnar=columnar)
            moved = [] if records else list(self.task.idle_offsets())
            idle = 0 if records or moved else idle + 1
            self.take(records)
            self.store(moved)
        self.task.commit()
        return [record.value for record in self.records[before:]]

    def metric(self, name: str) -> float:
        return self.task.metrics()[name]

    def stop(self) -> None:
        self.task.stop()


class _Stored(MemoryOffsets):
    """The offsets as they are now, also those that other tasks store."""

    def __init__(self, stored: Mapping[str, Any]) -> None:
        super().__init__()
        self._stored_now = stored

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        return [self._stored_now.get(json.dumps(dict(partition))) for partition in partitions]


def columns_of(polled: SourceColumns) -> list[tuple[Any, Any]]:
    """Return the keys and values of columns as those of records."""

    def values(column: Column) -> Iterable[Any]:
        if column.objects is not None:
            return column.objects
        if column.values is None:
            return [None] * polled.batch.count
        assert column.schema is not None
        return to_values(column.schema, column.values)

    return list(zip(values(polled.batch.key), values(polled.batch.value), strict=True))
