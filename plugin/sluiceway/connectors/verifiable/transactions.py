"""Transactions that the verifiable source defines itself, with ``transaction.boundary=connector``."""

from __future__ import annotations

from collections.abc import Sequence

from sluiceway.api import SourceRecord, TransactionContext


class Transactions:
    """Commits each ``size`` records; after each ``abort_every`` such blocks (0: never), aborts one that repeats them.

    So whoever reads committed records sees each number once, and what leaks out of an aborted transaction is a duplicate.
    Nothing depends on when a task was started: blocks are counted by the records' numbers.
    """

    def __init__(self, context: TransactionContext, size: int, abort_every: int) -> None:
        self._context = context
        self._size = size
        self._abort_every = abort_every

    def room(self, seqno: int) -> int:
        """Return how many records, from this number on, the transaction still takes."""
        return self._size - seqno % self._size

    def end(self, records: Sequence[SourceRecord], following: int) -> list[SourceRecord]:
        """Return the records to give, ending the transaction if the number that follows them begins another."""
        if not records or following % self._size:
            return list(records)
        last = records[-1]
        self._context.commit_transaction(last)
        if not self._abort_every or (following // self._size) % self._abort_every:
            return list(records)
        # With the last offset, since an aborted record's offset is stored, too.
        repeated = [record.new_record(source_offset=last.source_offset) for record in records]
        self._context.abort_transaction(repeated[-1])
        return [*records, *repeated]
