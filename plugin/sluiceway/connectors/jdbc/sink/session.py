"""Writes batches over one task's connection: one transaction each, with its offsets; finds records that cannot be written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sluiceway.api import ColumnBatch, NotColumnar, RowFormReason, SinkRecord, TopicPartition
from sluiceway.connectors.jdbc.connection import Database, reason_of
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind
from sluiceway.connectors.jdbc.dialects.writer import Writer
from sluiceway.connectors.jdbc.sink.batch import Planner, not_writable
from sluiceway.connectors.jdbc.sink.config import InsertMode, SinkOptions
from sluiceway.connectors.jdbc.sink.offsets import OffsetTable
from sluiceway.connectors.jdbc.sink.steps import Item, in_order, last_of_each_key, step_of, write_step
from sluiceway.connectors.jdbc.sink.tables import Tables
from sluiceway.connectors.replacement import IntervalReplacement
from sluiceway.errors import ConnectError, RetriableError

if TYPE_CHECKING:
    import sqlalchemy as sa

log = logging.getLogger(__name__)

Refuse = Callable[[SinkRecord, Exception], None]
"""Reports a record that cannot be written; raises if the task must not skip it."""

T = TypeVar("T")


class WriteError(RetriableError):
    """A transaction was rolled back or, if ``unreachable``, the database cannot be reached."""

    def __init__(self, message: str, unreachable: bool = False) -> None:
        super().__init__(message, unreachable)
        self.unreachable = unreachable

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection and what belongs to it. ``offsets`` is None without exactly-once delivery."""

    connection: sa.Connection
    writer: Writer
    planner: Planner
    offsets: OffsetTable | None

    def close(self) -> None:
        """Close the connection, which rolls back its transaction. Raises the driver's errors."""
        self.connection.invalidate()
        self.connection.close()


class Session:
    """Writes batches, each in one transaction with its offsets. Used by one thread, on an executor.

    Connects at the first use and at the next use after an error.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        # The runtime repeats failed calls and waits in between with the consumer still in its group.
        self._database = Database(replace(options.connection, attempts=1))
        self._dialect = self._database.dialect
        self._connected: Connected | None = None
        self._in_doubt = False  # whether the result of the last commit was lost with the connection

    @property
    def location(self) -> str:
        return self._database.url.location

    def open(self) -> None:
        """Connect with ``connection.attempts`` attempts. Raises ConnectError."""
        self._connected = self._connect(Database(self._options.connection))

    def claim(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int | None, int]]:
        """Run ``OffsetTable.claim`` in a transaction. Raises WriteError and ConnectError."""
        return self._guarded("claim partitions", lambda connected: _claim(connected, partitions))

    def set_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Run ``OffsetTable.set`` in a transaction. Raises WriteError and ConnectError."""
        self._guarded("store offsets", lambda connected: _set_offsets(connected, offsets))

    def write(
        self,
        records: Sequence[SinkRecord],
        offsets: Mapping[TopicPartition, int],
        generations: Mapping[TopicPartition, int],
        refuse: Refuse,
    ) -> None:
        """Write records and, in the same transaction, the next offsets of their partitions.

        Raises WriteError if the same call may succeed later, FencedError if another task owns a partition, and ConnectError
        otherwise.
        """
        self._guarded("write a batch", lambda connected: self._write(connected, records, offsets, generations, refuse))

    def replace(
        self,
        replacement: IntervalReplacement,
        batches: Callable[[], Iterable[Sequence[SinkRecord]]],
        generations: Mapping[TopicPartition, int],
        refuse: Refuse,
    ) -> None:
        """Write the records of an interval instead of its rows, in one transaction with the next offsets. Raises as ``write``."""
        self._guarded(
            "replace an interval's rows", lambda connected: self._replace(connected, replacement, batches, generations, refuse)
        )

    def write_columns(
        self, batch: ColumnBatch, offsets: Mapping[TopicPartition, int], generations: Mapping[TopicPartition, int]
    ) -> None:
        """Write a batch of columns like ``write``. Raises NotColumnar, with nothing written, if ``write`` must write its records.

        That is so for records that cannot be written, and while it is not known whether the last commit was applied.
        """
        self._guarded("write a batch", lambda connected: self._write_columns(connected, batch, offsets, generations))

    def close(self) -> None:
        """Close the connection; uncommitted writes are rolled back. Never raises."""
        connected, self._connected = self._connected, None
        if connected is not None:
            with suppress(Exception):
                connected.close()

    def _connect(self, database: Database) -> Connected:
        connection = database.connect()
        try:
            return self._prepared(connection)
        except BaseException:
            with suppress(Exception):
                connection.invalidate()
                connection.close()
            raise

    def _prepared(self, connection: sa.Connection) -> Connected:
        """Return the connection with its session set up and the offsets table created."""
        driver: Any = connection.connection.driver_connection
        writer = self._dialect.writer(driver, self._options.zone)
        driver.commit()

        def execute_alone(sql: str) -> None:
            try:
                writer.execute(sql)
                writer.commit()
            except Exception:
                driver.rollback()
                raise

        tables = Tables(self._options, self._dialect, connection, execute_alone, driver.rollback)
        planner = Planner(self._options, self._dialect, tables)
        if not self._options.exactly_once:
            return Connected(connection, writer, planner, None)
        table = self._dialect.parse_table(self._options.offsets_table)
        offsets = OffsetTable(writer, table, self._options.name)

        def exists() -> bool:
            found = bool(self._dialect.columns(connection, table))
            driver.rollback()
            return found

        offsets.create(execute_alone, exists)
        return Connected(connection, writer, planner, offsets)

    def _write(
        self,
        connected: Connected,
        records: Sequence[SinkRecord],
        offsets: Mapping[TopicPartition, int],
        generations: Mapping[TopicPartition, int],
        refuse: Refuse,
    ) -> None:
        if self._in_doubt:
            records = _not_applied(connected, records, offsets)
        plan = connected.planner.plan(records)
        connected.writer.begin()
        bad = plan.refused + self._apply(connected.writer, plan.items)
        if bad:
            order = {id(record): number for number, record in enumerate(records)}
            bad.sort(key=lambda each: order[id(each[0])])
        for record, error in bad:
            refuse(record, error)
        self._commit(connected, offsets, generations)

    def _replace(
        self,
        connected: Connected,
        replacement: IntervalReplacement,
        batches: Callable[[], Iterable[Sequence[SinkRecord]]],
        generations: Mapping[TopicPartition, int],
        refuse: Refuse,
    ) -> None:
        writer, planner = connected.writer, connected.planner
        names = {item.target.table for batch in batches() for item in planner.plan(batch).items}
        names |= {planner.table_of(partition.topic) for partition in replacement.ends}  # whose records may all be left out now
        tables = [table for name in names if (table := planner.by_column(name, replacement.column)) is not None]
        # From here on all tables are as they must be: to change one would end the transaction.
        writer.begin()
        for table in tables:
            writer.delete(table, [(replacement.value,)])
        writer.uses_savepoints = True
        try:
            for batch in batches():
                plan = planner.plan(batch)
                size = self._options.batch_size
                parts = (plan.items[first : first + size] for first in range(0, len(plan.items), size))
                for record, error in [*plan.refused, *(bad for part in parts for bad in self._search(writer, part))]:
                    refuse(record, error)
        finally:
            writer.uses_savepoints = False
        self._commit(connected, {each: end for each, end in replacement.ends.items() if each in generations}, generations)

    def _write_columns(
        self,
        connected: Connected,
        batch: ColumnBatch,
        offsets: Mapping[TopicPartition, int],
        generations: Mapping[TopicPartition, int],
    ) -> None:
        if self._in_doubt:
            raise NotColumnar("the last commit may have failed", RowFormReason.TASK)
        target, rows = connected.planner.plan_columns(batch)
        writer, size, mode = connected.writer, self._options.batch_size, self._options.insert_mode
        writer.begin()
        try:
            for first in range(0, len(rows), size):
                write_step(writer, step_of(target, rows[first : first + size], mode), mode)
        except Exception as error:
            if self._dialect.error_kind(error) is not ErrorKind.RECORD:
                raise
            writer.roll_back()
            raise NotColumnar(reason_of(error), RowFormReason.ERROR) from error
        self._commit(connected, offsets, generations)

    def _commit(
        self, connected: Connected, offsets: Mapping[TopicPartition, int], generations: Mapping[TopicPartition, int]
    ) -> None:
        if connected.offsets is not None:
            connected.offsets.store(offsets, generations)
        self._in_doubt = True
        connected.writer.commit()
        self._in_doubt = False

    def _apply(self, writer: Writer, items: Sequence[Item]) -> list[tuple[SinkRecord, Exception]]:
        """Write items; return the records that cannot be written. Searches for those only after a write has failed."""
        parts = [items[first : first + self._options.batch_size] for first in range(0, len(items), self._options.batch_size)]
        try:
            for part in parts:
                self._write_part(writer, part)
        except Exception as error:
            if self._dialect.error_kind(error) is not ErrorKind.RECORD:
                raise
            writer.roll_back()
            writer.begin()
            writer.uses_savepoints = True
            try:
                return [each for part in parts for each in self._search(writer, part)]
            finally:
                writer.uses_savepoints = False
        return []

    def _write_part(self, writer: Writer, items: Sequence[Item]) -> None:
        arrange = last_of_each_key if self._options.insert_mode is InsertMode.UPSERT else in_order
        for step in arrange(items):
            write_step(writer, step, self._options.insert_mode)

    def _search(self, writer: Writer, items: Sequence[Item]) -> list[tuple[SinkRecord, Exception]]:
        """Write items in their order; return the records that cannot be written, found by halving."""
        writer.savepoint()
        try:
            self._write_part(writer, items)
        except Exception as error:
            if self._dialect.error_kind(error) is not ErrorKind.RECORD:
                raise
            writer.roll_back_to_savepoint()
            if len(items) == 1:
                [item] = items
                return [(item.record, not_writable(item.record, error, reason_of(error), item.target.table))]
            half = len(items) // 2
            return self._search(writer, items[:half]) + self._search(writer, items[half:])
        writer.release_savepoint()
        return []

    def _guarded(self, action: str, operation: Callable[[Connected], T]) -> T:
        """Run an operation on the connection; after an error close it, and raise the error as Connect's."""
        try:
            if self._connected is None:
                self._connected = self._connect(self._database)
            return operation(self._connected)
        except NotColumnar:
            raise
        except Exception as error:
            self.close()
            if isinstance(error, ConnectError) and not isinstance(error, RetriableError):
                raise
            kind = self._dialect.error_kind(error)
            message = f"Couldn't {action} in {self.location}: {reason_of(error)}"
            if kind in (ErrorKind.AGAIN, ErrorKind.UNREACHABLE, ErrorKind.CHANGED):
                raise WriteError(message, kind is ErrorKind.UNREACHABLE) from error
            raise ConnectError(f"{message} ({type(error).__name__})") from error
        except BaseException:  # the task is stopped while it reports a record: leave no transaction open
            self.close()
            raise


def _claim(connected: Connected, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int | None, int]]:
    if connected.offsets is None:
        return {}
    connected.writer.begin()
    claimed = connected.offsets.claim(partitions)
    connected.writer.commit()
    return claimed


def _set_offsets(connected: Connected, offsets: Mapping[TopicPartition, int | None]) -> None:
    if connected.offsets is not None:
        connected.writer.begin()
        connected.offsets.set(offsets)
        connected.writer.commit()


def _not_applied(
    connected: Connected, records: Sequence[SinkRecord], partitions: Collection[TopicPartition]
) -> Sequence[SinkRecord]:
    """Return the records that the commit in doubt did not apply, by the stored offsets."""
    if connected.offsets is None:
        return records
    connected.writer.begin()
    stored = connected.offsets.stored(partitions)
    connected.writer.commit()
    return [record for record in records if record.original_kafka_offset >= stored[record.original_topic_partition]]
