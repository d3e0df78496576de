"""One task's connection to the database: transactions, tables made fit, bad records found, errors sorted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.jdbc.connection import Database, reason_of
from sluiceway.connectors.jdbc.sink.batch import BatchPlan, Planner
from sluiceway.connectors.jdbc.sink.config import InsertMode, SinkOptions
from sluiceway.connectors.jdbc.sink.errors import Kind, kind_of
from sluiceway.connectors.jdbc.sink.offsets import OffsetTable
from sluiceway.connectors.jdbc.sink.statements import Statements
from sluiceway.connectors.jdbc.sink.steps import Item, in_order, last_of_each_key
from sluiceway.connectors.jdbc.sink.tables import Tables
from sluiceway.connectors.jdbc.sink.writers import Writer, writer_of
from sluiceway.errors import ConnectError, DataError, RetriableError

if TYPE_CHECKING:
    import sqlalchemy as sa

log = logging.getLogger(__name__)

Refuse = Callable[[SinkRecord, Exception], None]
"""Called with each record that cannot be written; raises if there is no place for such records."""

_SAVEPOINT = "sluiceway_batch"


class WriteError(RetriableError):
    """A transaction was rolled back, or the database cannot be reached; ``unreachable`` tells which."""

    def __init__(self, message: str, unreachable: bool = False) -> None:
        super().__init__(message, unreachable)
        self.unreachable = unreachable

    def __str__(self) -> str:
        return str(self.args[0])


class Session:
    """Writes batches, each in one transaction with its offsets. For one thread, on an executor.

    Connects when it is used; after an error the next use connects anew.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        # Attempts are the task's, with the runtime's waits between them: the consumer stays in its group meanwhile.
        self._database = Database(replace(options.connection, attempts=1))
        self._statements = Statements(self._database.dialect)
        self._connection: sa.Connection | None = None
        self._writer: Writer | None = None
        self._offsets: OffsetTable | None = None
        self._planner: Planner | None = None
        self._in_doubt = False  # whether the last commit was carried out: its answer was lost

    @property
    def place(self) -> str:
        return self._database.url.place

    def open(self) -> None:
        """Connect, trying as often as ``connection.attempts`` says. Raises ConnectError."""
        self._connect(Database(self._options.connection))

    def claim(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int | None, int]]:
        """See ``OffsetTable.claim``. Raises WriteError and ConnectError."""
        return self._guarded("claim partitions", lambda: self._claim(partitions))

    def set_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """See ``OffsetTable.set``. Raises WriteError and ConnectError."""
        self._guarded("store offsets", lambda: self._set_offsets(offsets))

    def write(
        self,
        records: Sequence[SinkRecord],
        offsets: Mapping[TopicPartition, int],
        generations: Mapping[TopicPartition, int],
        refuse: Refuse,
    ) -> None:
        """Write records and, in the same transaction, the next offsets of their partitions.

        Raises WriteError if the same is to be tried later, FencedError, and ConnectError for what trying does not mend.
        """
        self._guarded("write a batch", lambda: self._write(records, offsets, generations, refuse))

    def close(self) -> None:
        """Hang up; what was not committed is rolled back. Never raises."""
        with suppress(Exception):
            if self._connection is not None:
                self._connection.invalidate()
                self._connection.close()
        self._connection = self._writer = self._offsets = self._planner = None

    def _connect(self, database: Database) -> None:
        self._connection = connection = database.connect()
        driver: Any = connection.connection.driver_connection
        self._writer = writer = writer_of(driver, self._statements)
        tables = Tables(self._options, self._statements, connection, self._execute_alone, driver.rollback)
        self._planner = Planner(self._options, self._statements, tables)
        writer.prepare(self._options.zone)
        driver.commit()
        if self._options.exactly_once:
            table = self._statements.dialect.parse_table(self._options.offsets_table)
            self._offsets = offsets = OffsetTable(writer, table, self._options.name)

            def exists() -> bool:
                found = bool(self._statements.dialect.columns(connection, table))
                driver.rollback()
                return found

            offsets.create(self._execute_alone, exists)

    def _execute_alone(self, sql: str) -> None:
        """Carry out a statement in a transaction of its own."""
        assert self._writer is not None  # noqa: S101 (connected)
        try:
            self._writer.execute(sql)
            self._writer.connection.commit()
        except Exception:
            self._writer.connection.rollback()
            raise

    def _begin(self) -> Writer:
        assert self._writer is not None  # noqa: S101 (connected)
        if self._writer.begin_sql is not None:
            self._writer.execute(self._writer.begin_sql)
        return self._writer

    def _claim(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int | None, int]]:
        if self._offsets is None:
            return {}
        writer = self._begin()
        claimed = self._offsets.claim(partitions)
        writer.connection.commit()
        return claimed

    def _set_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        if self._offsets is not None:
            writer = self._begin()
            self._offsets.set(offsets)
            writer.connection.commit()

    def _write(
        self,
        records: Sequence[SinkRecord],
        offsets: Mapping[TopicPartition, int],
        generations: Mapping[TopicPartition, int],
        refuse: Refuse,
    ) -> None:
        assert self._planner is not None  # noqa: S101 (connected)
        if self._in_doubt:
            records = self._not_applied(records, offsets)
        plan: BatchPlan = self._planner.plan(records)
        writer = self._begin()
        bad = plan.refused + self._apply(writer, plan.items)
        if bad:
            places = {id(record): number for number, record in enumerate(records)}
            bad.sort(key=lambda each: places[id(each[0])])
        for record, error in bad:
            refuse(record, error)
        if self._offsets is not None:
            self._offsets.store(offsets, generations)
        self._in_doubt = True
        writer.connection.commit()
        self._in_doubt = False

    def _not_applied(self, records: Sequence[SinkRecord], partitions: Collection[TopicPartition]) -> Sequence[SinkRecord]:
        """Leave out what the commit in doubt has applied after all, which its offsets tell."""
        if self._offsets is None:
            return records
        writer = self._begin()
        stored = self._offsets.stored(partitions)
        writer.connection.commit()
        return [
            record
            for record in records
            if record.original_kafka_offset >= stored[TopicPartition(record.original_topic, record.original_kafka_partition)]
        ]

    def _apply(self, writer: Writer, items: Sequence[Item]) -> list[tuple[SinkRecord, Exception]]:
        """Write items; return the records that cannot be written, none mostly: only if there are some, they are looked for."""
        parts = [items[first : first + self._options.batch_size] for first in range(0, len(items), self._options.batch_size)]
        try:
            for part in parts:
                self._write_part(writer, part)
        except Exception as error:
            if kind_of(error) is not Kind.RECORD:
                raise
            writer.roll_back()
            self._begin()
            writer.careful = True
            try:
                return [each for part in parts for each in self._search(writer, part)]
            finally:
                writer.careful = False
        return []

    def _write_part(self, writer: Writer, items: Sequence[Item]) -> None:
        arrange = last_of_each_key if self._options.insert_mode is InsertMode.UPSERT else in_order
        for step in arrange(items):
            writer.write(step, self._options.insert_mode)

    def _search(self, writer: Writer, items: Sequence[Item]) -> list[tuple[SinkRecord, Exception]]:
        """Write items; return the records that cannot be written, found by halving, the others in their order."""
        writer.execute(f"SAVEPOINT {_SAVEPOINT}")
        try:
            self._write_part(writer, items)
        except Exception as error:
            if kind_of(error) is not Kind.RECORD:
                raise
            writer.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
            writer.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
            if len(items) == 1:
                return [(items[0].record, _named(items[0], error))]
            half = len(items) // 2
            return self._search(writer, items[:half]) + self._search(writer, items[half:])
        writer.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
        return []

    def _guarded(self, what: str, operation: Callable[[], Any]) -> Any:
        """Carry out an operation, connected; an error ends the connection, and is told as Connect's."""
        try:
            if self._connection is None:
                self._connect(self._database)
            return operation()
        except Exception as error:
            self.close()
            if isinstance(error, ConnectError) and not isinstance(error, RetriableError):
                raise
            kind = kind_of(error)
            message = f"Couldn't {what} in {self.place}: {reason_of(error)}"
            if kind in (Kind.FATAL, Kind.RECORD):
                raise ConnectError(f"{message} ({type(error).__name__})") from error
            raise WriteError(message, kind is Kind.UNREACHABLE) from error
        except BaseException:  # the task is stopped while it reports a record: leave no transaction open
            self.close()
            raise


def _named(item: Item, error: Exception) -> DataError:
    record = item.record
    place = f"{record.original_topic}-{record.original_kafka_partition}@{record.original_kafka_offset}"
    made = DataError(f"{place} cannot be written to table {item.target.table}: {reason_of(error)}")
    made.__cause__ = error
    return made
