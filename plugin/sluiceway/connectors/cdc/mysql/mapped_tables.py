"""Keeps the tables that the log has mapped: how to read their rows, and what to make of them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets
from sluiceway.connectors.cdc.mysql.binlog.rows import RowReaders
from sluiceway.connectors.cdc.mysql.binlog.table_map import TableMap, read_table_id, read_table_map
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.log_tables import LogTable, matched_definition
from sluiceway.connectors.cdc.mysql.table_reader import TableReader
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_MOST = 10_000


@dataclass
class MappedTables:
    """The tables of one dump by the ids that its row events name them by. Used by one thread.

    Args:
        read_table: reads a table's definition from the server.
    """

    config: SourceConfig
    tables: Tables
    catalog: Catalog
    charsets: Charsets
    calendar: Calendar
    read_table: TableReader
    _mapped: dict[int, LogTable] = field(default_factory=dict)

    def clear(self) -> None:
        self._mapped.clear()

    def get(self, table_id: int) -> LogTable | None:
        return self._mapped.get(table_id)

    def add(self, body: memoryview, id_bytes: int) -> None:
        """Handle a table map event.

        Raises:
            ConnectError: the table is captured, and its structure is unknown.
        """
        table_id = read_table_id(body, id_bytes)
        known = self._mapped.get(table_id)
        if known is not None and known.raw == body[id_bytes:] and self._is_current(known):
            return
        if len(self._mapped) > _MOST:
            self._mapped.clear()
        self._mapped[table_id] = self._log_table(read_table_map(body, id_bytes))

    def _is_current(self, known: LogTable) -> bool:
        return known.schema is None or self.tables.get(known.id) is known.known

    def _log_table(self, mapped: TableMap) -> LogTable:
        table = TableId(mapped.database, mapped.table)
        captured = self.config.captures(table)
        if not captured and str(table) != self.config.common.signals.table:
            return LogTable(mapped.raw, table, None, None, None, None)
        definition = self.tables.get(table)
        usable = matched_definition(definition, mapped)
        if usable is None and definition is not None:
            usable = matched_definition(definition, mapped, hidden=True)
        if usable is None:
            usable = self._read(table, mapped)
            definition = self.tables.get(table)
        if usable is None:
            return self._unknown(mapped, table)
        readers = RowReaders(mapped, self.charsets, self.calendar)
        return LogTable(mapped.raw, table, definition, usable, readers, self.catalog.schema(usable), captured)

    def _read(self, table: TableId, mapped: TableMap) -> TableDefinition | None:
        """Return a table's definition from the server with the columns of the log, as far as the log tells."""
        log.warning("The structure of %s in the binary log differs from the known one; the table is read from the server.", table)
        uncertain, read = table in self.tables.uncertain, self.read_table(table)
        if uncertain and not mapped.has_names and not read.certain:
            return None  # the statement that was not understood may have moved or renamed columns
        usable = matched_definition(read.definition, mapped, final=True)
        if usable is not None:
            self.tables.put(usable.without_hidden())
        return usable

    def _unknown(self, mapped: TableMap, table: TableId) -> LogTable:
        message = (
            f"The structure of {table} in the binary log is unknown: the table is neither in the schema history nor on the "
            "server with these columns."
        )
        mode = self.config.choice("inconsistent.schema.handling.mode")
        if mode == "fail":
            raise ConnectError(
                f"{message} Set binlog_row_metadata=FULL and take a new snapshot, or exclude the table. To skip such rows, set "
                "inconsistent.schema.handling.mode=warn."
            )
        log.log(logging.WARNING if mode == "warn" else logging.DEBUG, "%s Its rows are skipped.", message)
        return LogTable(mapped.raw, table, None, None, None, None)
