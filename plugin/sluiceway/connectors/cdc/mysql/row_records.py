"""Makes the records of rows that the binary log has. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog import rows as row_events
from sluiceway.connectors.cdc.mysql.binlog.rows import Row
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition
from sluiceway.connectors.cdc.mysql.log_tables import LogTable
from sluiceway.connectors.cdc.mysql.log_transactions import LogTransactions
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.tables import TableSchema

RowListener = Callable[[TableId, str, TableDefinition, "Row | None", "Row | None"], None]
"""Called for each row of a captured table and of the signal table, after its records are made."""


class RowRecords:
    """The records of one row after the other, with the offsets of the position."""

    def __init__(
        self, emitter: Emitter, position: LogPosition, transactions: LogTransactions, on_row: RowListener | None
    ) -> None:
        self._emitter = emitter
        self._position = position
        self._transactions = transactions
        self._on_row = on_row

    def records(
        self, table: LogTable, schema: TableSchema, operation: str, before: Row | None, after: Row | None, number: int
    ) -> list[SourceRecord]:
        emitter = self._emitter
        records: list[SourceRecord] = []
        if table.captured:
            source = self._position.block(table.id.schema, table.id.table, row=number)
            self._position.last_row = number
            before_counting = self._offset_before(number) if self._transactions.enabled else None
            count, offset = self._transactions.count(table.id), self._transactions.offset()
            if operation == row_events.INSERT and after is not None:
                records = emitter.create(schema, after, source, count, offset)
            elif operation == row_events.DELETE and before is not None:
                records = emitter.delete(schema, before, source, count, offset)
            elif after is not None:
                records = emitter.update(schema, before, after, source, count, offset)
            if len(records) > 1:  # a restart must not lose the tombstone, or the row with its new key
                row_before = before_counting or self._offset_before(number)
                for record in records[:-1]:
                    record.source_offset = row_before
            if records and self._transactions.enabled:
                records[-1].source_offset = self._transactions.offset()  # with the records that were counted
        if self._on_row is not None and table.definition is not None:
            self._on_row(table.id, operation, table.definition, before, after)
        return records

    def _offset_before(self, number: int) -> dict[str, Any]:
        """Return the offset behind the row before."""
        self._position.row(number - 1, number)
        offset = self._transactions.offset()
        self._position.row(number, number + 1)
        return offset
