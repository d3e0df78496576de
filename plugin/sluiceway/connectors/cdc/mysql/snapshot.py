"""Reads the structure and the rows of the captured tables on one consistent snapshot, without locks."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import FIRST, FIRST_IN_TABLE, LAST, LAST_IN_TABLE, TRUE
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.connection import BUILT_IN_DATABASES, Server, quoted
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.offsets import INITIAL, LogPosition
from sluiceway.connectors.cdc.mysql.schema_changes import SchemaChanges
from sluiceway.connectors.cdc.notifications import Notifications

log = logging.getLogger(__name__)

Row = tuple[Any, ...]


@dataclass
class Snapshot:
    """One snapshot; ``run`` fills the buffer with its records, on the reading thread."""

    config: SourceConfig
    server: Server
    tables: Tables
    catalog: Catalog
    changes: SchemaChanges
    emitter: Emitter
    position: LogPosition
    buffer: RecordBuffer
    notifications: Notifications
    _held: SourceRecord | None = None

    def run(self, *, data: bool) -> None:
        """Read the structures, and the rows if ``data``."""
        started = time.monotonic()
        start = self.server.snapshot_position()
        self.position.start_at(start)
        self.position.seconds = int(time.time())
        self.position.snapshot(INITIAL)
        self.notifications.snapshot("STARTED")
        self._notify()
        captured = self.read_structures()
        log.info("Snapshot at %s:%s (%s): %d tables.", start.file, start.position, start.gtids or "no GTID", len(captured))
        wanted = [table for table in captured if self._has_rows(table)] if data else []
        count = self._read_rows(self._ordered(wanted))
        self.position.snapshot(None)
        self.notifications.snapshot("COMPLETED")
        self._notify()
        if self._held is not None:
            self._held.source_offset = self.position.offset()
            self.buffer.put([self._held], offset=self.position.offset())
        log.info("Snapshot complete: %d rows in %.1f s.", count, time.monotonic() - started)

    def _has_rows(self, table: TableId) -> bool:
        """Whether the snapshot has the rows of a table; it leaves out those of the signal table."""
        common = self.config.common
        return str(table) != common.signal_table and common.snapshot_tables(str(table))

    def _notify(self) -> None:
        self._emit(self.notifications.take(self.position.offset()))

    def run_blocking(self, tables: Sequence[TableId], _conditions: Mapping[str, str]) -> None:
        """Read the rows of some tables while the log waits. The offsets stay those of the log."""
        count = self._read_rows(tables)
        if self._held is not None:
            self.buffer.put([self._held])
        log.info("Blocking snapshot of %d tables complete: %d rows.", len(tables), count)

    def _emit(self, records: Sequence[SourceRecord]) -> None:
        """Pass records on, but keep the last one, whose offset says that the snapshot is complete if no other follows."""
        if records:
            passed = list(records) if self._held is None else [self._held, *records]
            self._held = passed.pop()
            self.buffer.put(passed)

    # -- structures

    def read_structures(self) -> list[TableId]:
        """Read all tables' structures; return the captured tables in order."""
        config = self.config
        databases = [name for name in self.server.databases() if name.lower() not in BUILT_IN_DATABASES]
        found = [
            table
            for database in databases
            if config.captures_database(database) or not config.only_captured_databases
            for table in self.server.tables(database)
        ]
        captured = [table for table in found if config.captures(table)]
        self._report_structures(captured if config.only_captured_tables else found)
        return captured

    def _report_structures(self, tables: Sequence[TableId]) -> None:
        """Report the statements that lead to the tables as they are, as if they had been executed one after the other."""
        self._report(self.server.charset_statement(), "")
        for table in tables:
            self._report(f"DROP TABLE IF EXISTS {quoted(table.schema)}.{quoted(table.table)}", table.schema)
        locales = self.server.database_locales()
        for database in dict.fromkeys(table.schema for table in tables):
            self._report(f"DROP DATABASE IF EXISTS {quoted(database)}", database)
            charset, collation = locales.get(database, ("utf8mb4", ""))
            suffix = f" CHARSET {charset}" + (f" COLLATE {collation}" if collation else "")
            self._report(f"CREATE DATABASE {quoted(database)}{suffix}", database)
            self._report(f"USE {quoted(database)}", database)
            for table in tables:
                statement = self.server.create_statement(table) if table.schema == database else None
                if statement is not None:
                    self._report(statement, database)

    def _report(self, sql: str, database: str) -> None:
        records, _ = self.changes.handle(sql, database, snapshot=True)
        self._emit(records)

    # -- rows

    def _read_rows(self, tables: Sequence[TableId]) -> int:
        count = 0
        for number, table in enumerate(tables):
            definition = self.tables.get(table)
            if definition is not None:
                self.position.seconds = int(time.time())
                rows = self._read_table(definition, first=number == 0, last=number == len(tables) - 1)
                self.notifications.table_scanned(str(table), rows)
                count += rows
        return count

    def _ordered(self, tables: Sequence[TableId]) -> Sequence[TableId]:
        """Order tables by the server's estimate of their rows, if the config says so."""
        order = self.config.choice("snapshot.tables.order.by.row.count")
        if order not in ("ascending", "descending"):
            return tables
        counts = self.server.row_counts()
        return sorted(tables, key=lambda table: counts.get(table, 0), reverse=order == "descending")

    def _read_table(self, table: TableDefinition, *, first: bool, last: bool) -> int:
        schema = self.catalog.schema(table)
        records: list[SourceRecord] = []
        offset, count = self.position.offset(), 0
        for row, is_first, is_last in _marked(self._rows(table)):
            marker = _marker(first_table=first, last_table=last, first_row=is_first, last_row=is_last)
            block = self.position.block(table.id.schema, table.id.table, snapshot=marker)
            records.append(self.emitter.read(schema, row, block, offset))
            count += 1
            if len(records) >= self.config.common.batch_size:
                self._emit(records)
                records = []
        self._emit(records)
        return count

    def _rows(self, table: TableDefinition) -> Iterator[Row]:
        """Yield the rows with values in the order of the table's columns."""
        names = [column.name for column in table.columns]
        override = self.config.common.select_overrides.get(str(table.id))
        if override is not None:
            self.server.execute(f"USE {quoted(table.id.schema)}")  # for names without a database
        statement = override or self._statement(table)
        for columns, rows in self.server.stream(statement, self.config.common.fetch_size):
            lowered = {name.lower(): index for index, name in enumerate(columns)}
            indexes = [lowered.get(name.lower()) for name in names]
            if indexes == list(range(len(columns))):
                yield from rows
                continue
            for row in rows:
                yield tuple(None if index is None else row[index] for index in indexes)

    def _statement(self, table: TableDefinition) -> str:
        """Return the query of a table's rows; like Debezium's it leaves out columns that are not captured, even of keys."""
        included = [column.name for column in table.columns if self.config.common.columns(f"{table.id}.{column.name}")]
        if not included or self.config.common.correct:
            included = [column.name for column in table.columns]
        columns = ", ".join(map(quoted, included))
        return f"SELECT {columns} FROM {quoted(table.id.schema)}.{quoted(table.id.table)}"  # noqa: S608


def _marked(rows: Iterator[Row]) -> Iterator[tuple[Row, bool, bool]]:
    """Yield each row, whether it is the first, and whether it is the last."""
    held = next(rows, None)
    first = True
    for row in rows:
        if held is not None:
            yield held, first, False
        held, first = row, False
    if held is not None:
        yield held, first, True


def _marker(*, first_table: bool, last_table: bool, first_row: bool, last_row: bool) -> str:
    if last_row and last_table:
        return LAST
    if first_row and first_table:
        return FIRST
    if last_row:
        return LAST_IN_TABLE
    return FIRST_IN_TABLE if first_row else TRUE
