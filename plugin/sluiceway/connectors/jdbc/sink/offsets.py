"""Stores offsets in the database, in the transaction of the rows, and fences former owners of a partition.

A row for each connector, topic and partition holds the next offset and a generation. A task that is assigned the partition
raises the generation. A transaction of a former owner then fails when it stores its offsets, so its rows are rolled back too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sluiceway.api import TopicPartition
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.dialects.writer import Writer
from sluiceway.connectors.jdbc.sink.config import EXACTLY_ONCE, OFFSETS_TABLE
from sluiceway.errors import ConnectError, FencedError


class OffsetTable:
    """A connector's offsets. Each method runs in the transaction that is open on the writer's connection."""

    def __init__(self, writer: Writer, table: TableId, connector: str) -> None:
        self._writer = writer
        self._connector = connector
        self._name = str(table)
        self._sql = writer.dialect.offsets_sql(writer.dialect.qualified(table))

    def create(self, execute: Callable[[str], object], exists: Callable[[], bool]) -> None:
        """Create the table if it does not exist. Raises ConnectError with the statement if that is not allowed."""
        if exists():
            return
        try:
            execute(self._sql.create)
        except Exception as error:
            if exists():  # another task created it first
                return
            raise ConnectError(
                f"The offsets table {self._name} cannot be created: {error}. Have it created by {self._sql.create}; or let "
                f"{OFFSETS_TABLE} name another; or set {EXACTLY_ONCE}=false, and records may be applied twice after a failure."
            ) from error

    def claim(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int | None, int]]:
        """Raise the generations of partitions; return each one's next offset (None if none is stored) and generation.

        Waits for former owners that are storing offsets, and fences them afterwards.
        """
        claimed = {}
        for partition in sorted(partitions):  # in the same order in every task, so that two tasks cannot deadlock
            self._writer.execute(self._sql.claim, (self._connector, *partition))
            claimed[partition] = self._select(partition)
        return claimed

    def stored(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the next offsets of claimed partitions; 0 if none is stored."""
        return {partition: self._select(partition)[0] or 0 for partition in partitions}

    def _select(self, partition: TopicPartition) -> tuple[int | None, int]:
        [(offset, generation)] = self._writer.execute(self._sql.select, (self._connector, *partition))
        return None if offset is None else int(offset), int(generation)

    def store(self, offsets: Mapping[TopicPartition, int | None], generations: Mapping[TopicPartition, int]) -> None:
        """Store the next offsets of partitions. Raises FencedError if another task has claimed one of them since."""
        rows = [(offset, self._connector, *partition, generations[partition]) for partition, offset in sorted(offsets.items())]
        if self._writer.execute_many(self._sql.update, rows) != len(offsets):
            names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(offsets))
            raise FencedError(
                f"Another task has taken over partitions of connector {self._connector} ({names}, or some of them): their "
                f"generation in {self._name} is newer than this task's. Nothing of this batch was written."
            )

    def set(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set offsets on a user's request, None to delete one; tasks that still run are fenced."""
        claimed = self.claim(offsets)
        self.store(offsets, {partition: generation for partition, (_, generation) in claimed.items()})
