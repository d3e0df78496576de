"""Follows DDL: applies statements to the model, writes the schema history, and makes schema change records."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import TRUE, TRUNCATE
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.config import HISTORY, SourceConfig
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import ChangeType, Outcome, TableChange, apply_statement
from sluiceway.connectors.cdc.mysql.ddl.table_changes import CHANGE, change_structs
from sluiceway.connectors.cdc.mysql.ddl_filter import ddl_filter
from sluiceway.connectors.cdc.mysql.history import SchemaHistory
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.mysql.table_reader import TableReader
from sluiceway.data import Schema, Struct
from sluiceway.data.schema import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA

log = logging.getLogger(__name__)

_IGNORED = frozenset({"BEGIN", "END", "FLUSH PRIVILEGES"})
_UNKNOWN_TABLE = ""  # in the source block of a statement that changes neither tables nor databases


class SchemaChanges:
    """Handles statements in the order of the log.

    Args:
        read_table: reads a table's definition from the server, for statements that the parser cannot follow.
    """

    def __init__(
        self,
        config: SourceConfig,
        tables: Tables,
        history: SchemaHistory,
        emitter: Emitter,
        position: LogPosition,
        connector: str,
        read_table: TableReader,
    ) -> None:
        self._config = config
        self._tables = tables
        self._history = history
        self._emitter = emitter
        self._position = position
        self._read_table = read_table
        self._reports = config.flag("include.schema.changes")
        self.left_out = ddl_filter(str(config.values[f"{HISTORY}ddl.filter"] or ""))
        name = f"io.debezium.connector.{connector}.SchemaChange"
        self._key = Schema.struct([("databaseName", STRING_SCHEMA)], name=f"{name}Key", version=1)
        self._value = Schema.struct(
            [
                ("source", position.schema),
                ("ts_ms", INT64_SCHEMA),
                ("databaseName", OPTIONAL_STRING_SCHEMA),
                ("schemaName", OPTIONAL_STRING_SCHEMA),
                ("ddl", OPTIONAL_STRING_SCHEMA),
                ("tableChanges", Schema.array(CHANGE)),
            ],
            name=f"{name}Value",
            version=1,
        )

    def handle(self, sql: str, database: str, *, snapshot: bool = False) -> tuple[list[SourceRecord], list[TableId]]:
        """Apply a statement. Return its schema change records, and the captured tables that it truncates."""
        if sql.strip().upper() in _IGNORED:
            return [], []
        outcome = self._apply(sql, database)
        if self.left_out(sql):
            return [], self._truncated(outcome)
        is_global_set = not database and sql.upper().startswith("SET ")
        if self._config.only_captured_tables and not is_global_set and not any(map(self._matches, outcome.changes)):
            return [], []
        records: list[SourceRecord] = []
        names = ",".join({change.table.table: None for change in outcome.changes if change.table is not None})
        for change in outcome.changes or (TableChange(ChangeType.DATABASE, database, sql),):
            table = _UNKNOWN_TABLE if not outcome.changes else None if change.table is None else names
            records += self._report(change, table, snapshot=snapshot, is_global_set=is_global_set)
        return records, self._truncated(outcome)

    def _truncated(self, outcome: Outcome) -> list[TableId]:
        """Return the captured tables that a statement truncates, unless their records are skipped."""
        if TRUNCATE in self._config.common.skipped_operations:
            return []
        truncated = (change.table for change in outcome.changes if change.type is ChangeType.TRUNCATE)
        return [table for table in truncated if table is not None and self._config.captures(table)]

    def _apply(self, sql: str, database: str) -> Outcome:
        """Apply a statement to the model; read tables that the parser cannot follow from the server."""
        outcome = apply_statement(self._tables, sql, database)
        found: dict[TableId, TableDefinition] = {}
        for table in outcome.unread:
            if not self._stores(table):
                continue
            log.warning("A clause of the statement '%.200s' is not understood; the table %s is read from the server.", sql, table)
            read = self._read_table(table)
            if not read.certain:
                self._tables.uncertain.add(table)  # later statements may have changed it again
            elif read.definition is not None:
                self._tables.put(read.definition)
                found[table] = read.definition
        if not found:
            return outcome
        changes = tuple(
            replace(change, type=ChangeType.ALTER, definition=found[change.table]) if change.table in found else change
            for change in outcome.changes
        )
        return replace(outcome, changes=changes)

    def _stores(self, table: TableId) -> bool:
        if self._config.only_captured_tables:
            return self._config.captures(table)
        return not self._config.only_captured_databases or self._config.captures_database(table.schema)

    def _matches(self, change: TableChange) -> bool:
        if change.table is not None:
            return self._config.captures(change.table)
        return change.type is ChangeType.DATABASE and self._config.databases(change.database)

    def _report(self, change: TableChange, table: str | None, *, snapshot: bool, is_global_set: bool) -> list[SourceRecord]:
        config = self._config
        if config.only_captured_databases and change.database and not config.captures_database(change.database):
            return []
        captured = change.table is not None and config.captures(change.table)
        if config.only_captured_tables and change.table is not None and not captured:
            return []
        offset = self._position.offset()
        if not config.only_captured_tables or is_global_set or captured:
            has_id = config.common.transaction_metadata and not snapshot
            self._history.record(change, {"transaction_id": self._position.gtid, **offset} if has_id else offset)
        if not self._reports:
            return []
        now = time.time_ns()
        source = self._position.block(
            change.database,
            table,
            snapshot=TRUE if snapshot else None,
            row=self._position.last_row,
            nanos=now if snapshot else None,
        )
        key = Struct.of(self._key, [change.database])
        value = Struct.of(self._value, [source, now // 1_000_000, change.database, None, change.ddl, change_structs(change)])
        return [self._emitter.schema_change(key, value, offset)]
