"""Reads the rows of a snapshot's tables by the ranges of their keys, and makes their records. The same for each database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic

from sluiceway.api import EncodedRecords, Offset, SourceRecord
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.emitter import FEWEST_ROWS, Emitter
from sluiceway.connectors.cdc.parallel import ParallelReader, RangeReader, Session
from sluiceway.connectors.cdc.ranges import Progress, RangePlanner, TableToRead
from sluiceway.connectors.cdc.snapshot_rows import SnapshotRows
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.data import Struct


class TablesReader(Generic[Session]):
    """Reads tables, several ranges at a time.

    Args:
        schemas: returns the schema of a table of the plan, by its number.
        plan: the tables.
        ranges: reads them, by ``threads`` threads.
        first_wins: whether the only row of a snapshot is marked as the first one, not as the last one.
        encodes: whether many rows become EncodedRecords.
    """

    def __init__(
        self,
        config: CommonConfig,
        emitter: Emitter,
        schemas: Callable[[int], TableSchema],
        plan: Sequence[TableToRead],
        ranges: RangeReader[Session],
        threads: int,
        *,
        first_wins: bool,
        encodes: bool,
    ) -> None:
        self.progress = Progress(plan)
        self._emitter = emitter
        self._schemas = schemas
        planner: RangePlanner[Session] = RangePlanner(plan, config.snapshots.range_rows, ranges.bounds, ranges.boundary)
        self._reader = ParallelReader(planner, ranges, threads)
        self._rows = SnapshotRows(self.progress, len(plan), first_wins=first_wins)
        self._encodes = encodes

    def parts(
        self,
        source: Callable[[TableSchema, str], Struct],
        offset: Callable[[], Offset],
        ended: Callable[[TableSchema, int], None],
    ) -> Iterator[list[SourceRecord] | EncodedRecords]:
        """Yield the records of all rows.

        Args:
            source: returns the source block of rows of a table with a marker.
            offset: returns the source offset of the rows, whose progress covers what was yielded before.
            ended: called behind a table's last row, with the number of its rows.
        """
        for number, marker, rows, is_end in self._rows.marked(self._reader.batches()):
            schema = self._schemas(number)
            if rows:
                block, at = source(schema, marker), offset()
                encodes = self._encodes and len(rows) >= FEWEST_ROWS
                encoded = self._emitter.reads(schema, rows, block, at) if encodes else None
                yield encoded or [self._emitter.read(schema, row, block, at) for row in rows]
            if is_end:
                ended(schema, self._rows.rows.get(number, 0))

    @property
    def count(self) -> int:
        """The number of rows that were read."""
        return sum(self._rows.rows.values())

    def close(self) -> None:
        """End the threads and their sessions. Thread-safe."""
        self._reader.close()
