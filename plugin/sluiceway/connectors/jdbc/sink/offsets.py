"""Offsets in the database itself: written with the rows, and fenced, so that each record is applied once.

A row for each connector, topic and partition holds the next offset to read, and a generation. Whoever is given the partition
raises the generation; a transaction of an earlier owner then fails when it wants to store its offsets, rows and all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sluiceway.api import TopicPartition
from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.sink.config import EXACTLY_ONCE, OFFSETS_TABLE
from sluiceway.connectors.jdbc.sink.writers import Writer
from sluiceway.connectors.jdbc.url import MYSQL, POSTGRESQL
from sluiceway.errors import ConnectError, FencedError


class OffsetTable:
    """A connector's offsets. Each method works in the transaction that is open on the writer's connection."""

    def __init__(self, writer: Writer, table: TableId, connector: str) -> None:
        self._writer = writer
        self._connector = connector
        self._name = str(table)
        dialect = writer.statements.dialect
        self._kind = dialect.name
        self._table = dialect.qualified(table)
        self._mark = dialect.marker
        self._partition = "`partition`" if self._kind == MYSQL else '"partition"'
        self._where = f"connector = {self._mark} AND topic = {self._mark} AND {self._partition} = {self._mark}"

    @property
    def creation(self) -> str:
        """The statement that creates the table if it is not there."""
        # Names of topics and connectors that differ by letters' case alone are different names.
        exact, engine = (" CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", " ENGINE=InnoDB") if self._kind == MYSQL else ("", "")
        return (
            f"CREATE TABLE IF NOT EXISTS {self._table} (connector VARCHAR(255){exact} NOT NULL, "
            f"topic VARCHAR(255){exact} NOT NULL, {self._partition} INTEGER NOT NULL, next_offset BIGINT, "
            f"generation BIGINT NOT NULL, PRIMARY KEY (connector, topic, {self._partition})){engine}"
        )

    def create(self, execute: Callable[[str], object], exists: Callable[[], bool]) -> None:
        """Create the table unless it is there. Raises ConnectError, with what to do, if that is not allowed."""
        if exists():
            return
        try:
            execute(self.creation)
        except Exception as error:
            if exists():  # another task was quicker
                return
            raise ConnectError(
                f"The offsets table {self._name} cannot be created: {error}. Have it created by {self.creation}; or let "
                f"{OFFSETS_TABLE} name another; or set {EXACTLY_ONCE}=false, and records may be applied twice after a failure."
            ) from error

    def claim(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int | None, int]]:
        """Raise the partitions' generations; return the next offset, if one is stored, and the generation of each.

        Earlier owners that are in the middle of storing offsets are waited for; later they are fenced.
        """
        raised = f"{self._table}.generation + 1" if self._kind == POSTGRESQL else "generation + 1"
        conflict = (
            f"ON DUPLICATE KEY UPDATE generation = {raised}"
            if self._kind == MYSQL
            else f"ON CONFLICT (connector, topic, {self._partition}) DO UPDATE SET generation = {raised}"
        )
        marks = ", ".join([self._mark] * 3)
        upsert = (
            f"INSERT INTO {self._table} (connector, topic, {self._partition}, next_offset, generation) "  # noqa: S608
            f"VALUES ({marks}, NULL, 1) {conflict}"
        )
        claimed = {}
        for partition in sorted(partitions):  # in one order, so that two tasks cannot wait for each other
            place = (self._connector, *partition)
            self._writer.execute(upsert, place)
            claimed[partition] = self._stored(partition)
        return claimed

    def stored(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the next offsets of partitions that were claimed; 0 where none is stored."""
        return {partition: self._stored(partition)[0] or 0 for partition in partitions}

    def _stored(self, partition: TopicPartition) -> tuple[int | None, int]:
        sql = f"SELECT next_offset, generation FROM {self._table} WHERE {self._where}"  # noqa: S608
        [(offset, generation)] = self._writer.execute(sql, (self._connector, *partition))
        return None if offset is None else int(offset), int(generation)

    def store(self, offsets: Mapping[TopicPartition, int | None], generations: Mapping[TopicPartition, int]) -> None:
        """Write the next offsets of partitions that are ours still. Raises FencedError if one is not."""
        sql = (
            f"UPDATE {self._table} SET next_offset = {self._mark} "  # noqa: S608
            f"WHERE {self._where} AND generation = {self._mark}"
        )
        cursor = self._writer.connection.cursor()
        try:
            cursor.executemany(
                sql,
                [(offset, self._connector, *partition, generations[partition]) for partition, offset in sorted(offsets.items())],
            )
            ours = cursor.rowcount == len(offsets)
        finally:
            cursor.close()
        if not ours:
            names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(offsets))
            raise FencedError(
                f"Another task has taken over partitions of connector {self._connector} ({names}, or some of them): they are of "
                f"a newer generation in {self._name} than this task's. Nothing of this batch was written."
            )

    def set(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set offsets as a user wants them, None to forget one; tasks that still run are fenced."""
        claimed = self.claim(offsets)
        self.store(offsets, {partition: generation for partition, (_, generation) in claimed.items()})
