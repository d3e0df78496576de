"""Reads the structure and the rows of the captured tables on one consistent snapshot, without locks."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluiceway.api import EncodedRecords, SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.known_tables import known_tables
from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.connection import BUILT_IN_DATABASES, Server, quoted
from sluiceway.connectors.cdc.mysql.ddl.model import Tables
from sluiceway.connectors.cdc.mysql.offsets import INITIAL, LogPosition
from sluiceway.connectors.cdc.mysql.schema_changes import SchemaChanges
from sluiceway.connectors.cdc.mysql.table_ranges import BinlogRanges, open_sessions, table_to_read
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.sizes import size_of
from sluiceway.connectors.cdc.snapshot import TablesReader
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.data import Struct

log = logging.getLogger(__name__)


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
    _reader: TablesReader[Server] | None = None
    _blocking: bool = False
    _known: dict[str, Any] = field(default_factory=dict)

    def run(self, *, data: bool) -> None:
        """Read the structures, and the rows if ``data``."""
        started = time.monotonic()
        start, sessions = open_sessions(self.server, self.config.common.snapshots.threads if data else 1)
        try:
            count = self._run(start, sessions, data=data)
        finally:
            for session in sessions[1:]:
                session.close()
        log.info("Snapshot complete: %d rows in %.1f s.", count, time.monotonic() - started)

    def _run(self, start: StartPosition, sessions: Sequence[Server], *, data: bool) -> int:
        self.position.start_at(start)
        self.position.seconds = int(time.time())
        self.position.snapshot(INITIAL)
        self.notifications.snapshot("STARTED")
        self._notify()
        captured = self.read_structures()
        log.info("Snapshot at %s:%s (%s): %d tables.", start.file, start.position, start.gtids or "no GTID", len(captured))
        wanted = list(filter(self.config.common.has_snapshot, captured))
        self._known = known_tables(self.config.common, wanted)
        count = self._read_rows(self._ordered(wanted if data else []), sessions, {})
        self.position.snapshot(None)
        self.notifications.snapshot("COMPLETED")
        self._notify()
        offset = {**self.position.offset(), **self._known}
        last = [] if self._held is None else [self._held]
        for record in last:
            record.source_offset = offset
        self.buffer.put(last, offset=offset)
        return count

    def _notify(self) -> None:
        self._emit(self.notifications.take(self.position.offset()))

    def run_blocking(self, tables: Sequence[TableId], conditions: Mapping[str, str], *, structures: bool) -> None:
        """Read the rows of some tables while the log waits, and their structures if asked. The offsets stay those of the log."""
        self._blocking = True
        if structures:
            self._report_drops(tables)
            self._report_tables(tables)
        count = self._read_rows(tables, [self.server], conditions)
        self.pass_last()
        log.info("Blocking snapshot of %d tables complete: %d rows.", len(tables), count)

    def _emit(self, records: Sequence[SourceRecord] | EncodedRecords) -> None:
        """Pass records on, but keep the last one, whose offset says that the snapshot is complete if no other follows."""
        if isinstance(records, EncodedRecords):
            self.pass_last()
            self.buffer.put(records, sum(map(len, filter(None, records.values))))
        elif records:
            passed = list(records) if self._held is None else [self._held, *records]
            self._held = passed.pop()
            self.buffer.put(passed, sum(map(size_of, passed)))

    def pass_last(self) -> None:
        """Pass on the record that was kept back, whose offset says nothing about the snapshot."""
        held, self._held = self._held, None
        if held is not None:
            self.buffer.put([held], size_of(held))

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
        self._report_drops(tables)
        locales = self.server.database_locales()
        for database in dict.fromkeys(table.schema for table in tables):
            self._report(f"DROP DATABASE IF EXISTS {quoted(database)}", database)
            charset, collation = locales.get(database, ("utf8mb4", ""))
            suffix = f" CHARSET {charset}" + (f" COLLATE {collation}" if collation else "")
            self._report(f"CREATE DATABASE {quoted(database)}{suffix}", database)
            self._report(f"USE {quoted(database)}", database)
            self._report_tables([table for table in tables if table.schema == database])

    def _report_drops(self, tables: Sequence[TableId]) -> None:
        for table in tables:
            self._report(f"DROP TABLE IF EXISTS {quoted(table.schema)}.{quoted(table.table)}", table.schema)

    def _report_tables(self, tables: Sequence[TableId]) -> None:
        for table in tables:
            statement = self.server.create_statement(table)
            if statement is not None:
                self._report(statement, table.schema)

    def _report(self, sql: str, database: str) -> None:
        records, _ = self.changes.handle(sql, database, snapshot=True)
        self._emit(records)

    # -- rows

    def _read_rows(self, tables: Sequence[TableId], sessions: Sequence[Server], conditions: Mapping[str, str]) -> int:
        """Read tables by the ranges of their keys, with a thread for each session. Return the number of rows."""
        found = [definition for table in tables if (definition := self.tables.get(table)) is not None]
        counts = self.server.row_counts()
        plan = [table_to_read(definition, self.config, counts) for definition in found]
        ranges = BinlogRanges(self.config, sessions, found, conditions, columns=self.emitter.encodes_columns)
        reader = self._reader = TablesReader(
            self.config.common,
            self.emitter,
            lambda number: self.catalog.schema(found[number]),
            plan,
            ranges,
            len(sessions),
            first_wins=False,
            encodes=self.emitter.encodes_columns,
        )
        for part in reader.parts(self._source, self._offset, self._table_read):
            self._emit(part)
        return reader.count

    def _source(self, schema: TableSchema, marker: str) -> Struct:
        self.position.seconds = int(time.time())
        return self.position.block(schema.id.schema, schema.id.table, snapshot=marker)

    def _offset(self) -> dict[str, Any]:
        offset = self.position.offset()
        return offset if self._blocking or self._reader is None else {**offset, **self._known, **self._reader.progress.state()}

    def _table_read(self, schema: TableSchema, rows: int) -> None:
        self.notifications.table_scanned(str(schema.id), rows)

    def close(self) -> None:
        """End the threads that read ranges. Thread-safe."""
        if self._reader is not None:
            self._reader.close()

    def _ordered(self, tables: Sequence[TableId]) -> Sequence[TableId]:
        """Order tables by the server's estimate of their rows, if the config says so."""
        order = self.config.common.snapshots.order
        if order not in ("ascending", "descending"):
            return tables
        counts = self.server.row_counts()
        return sorted(tables, key=lambda table: counts.get(table, 0), reverse=order == "descending")
