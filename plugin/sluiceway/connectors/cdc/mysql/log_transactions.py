"""Makes the BEGIN and END records and the transaction blocks of the log's transactions. No I/O."""

from __future__ import annotations

from functools import partial
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Count, Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.transactions import TransactionCounter


class LogTransactions:
    """What ``provide.transaction.metadata`` adds; nothing unless ``enabled``. Used by one thread."""

    def __init__(self, counter: TransactionCounter, emitter: Emitter, position: LogPosition, *, enabled: bool) -> None:
        self._counter = counter
        self._emitter = emitter
        self._position = position
        self.enabled = enabled
        self._announced = True  # of a transaction that a restart continues

    def offset(self) -> dict[str, Any]:
        """Return the source offset, with the counts."""
        offset = self._position.offset()
        return {**self._counter.offset(), **offset} if self.enabled else offset

    def begin(self, seconds: int, *, announced: bool = True, continued: bool = False) -> list[SourceRecord]:
        """Start a transaction.

        Args:
            seconds: the time of the event.
            announced: whether the transaction has BEGIN and END records. Debezium makes none for prepared XA transactions and
                for TRUNCATE.
            continued: whether a restart continues the transaction, whose counts the stored offset has.
        """
        if not self.enabled:
            return []
        self._announced = announced
        if continued:
            return []
        position = self._position
        identifier = position.gtid or f"file={position.file},pos={position.position}"
        self._counter.begin(identifier)
        if not announced:
            return []
        value = self._counter.begin_value(identifier, seconds * 1000)
        return [self._emitter.transaction(identifier, value, self.offset())]

    def end(self, seconds: int) -> list[SourceRecord]:
        """End the transaction."""
        counter, identifier = self._counter, self._counter.id
        if not self.enabled or identifier is None:
            return []
        records = []
        if self._announced:
            records.append(self._emitter.transaction(identifier, counter.end_value(identifier, seconds * 1000), self.offset()))
        counter.end()
        return records

    def count(self, table: TableId) -> Count | None:
        """Return what counts the table's events, or None outside of transactions."""
        counter = self._counter
        return partial(counter.event, str(table), counter.id) if self.enabled and counter.id is not None else None
