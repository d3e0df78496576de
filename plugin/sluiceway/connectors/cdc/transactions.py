"""Counts the events of transactions, and makes the records of the transaction topic. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluiceway.connectors.cdc.envelope import COLLECTION, TRANSACTION_BLOCK, TRANSACTION_KEY, TRANSACTION_VALUE
from sluiceway.data import Struct

_ID, _ORDER = "transaction_id", "transaction_data_collection_order_"


class TransactionCounter:
    """The event counts of the current transaction, as ``provide.transaction.metadata`` needs them."""

    def __init__(self) -> None:
        self.id: str | None = None
        self._counts: dict[str, int] = {}
        self._total = 0

    def load(self, offset: Mapping[str, Any]) -> None:
        """Continue with the counts of a stored offset."""
        stored = offset.get(_ID)
        self.id = None if stored is None else str(stored)
        self._counts = {key.removeprefix(_ORDER): int(value) for key, value in offset.items() if key.startswith(_ORDER)}
        self._total = sum(self._counts.values())

    def begin(self, identifier: str) -> None:
        self.id, self._counts, self._total = identifier, {}, 0

    def end(self) -> None:
        """Forget the transaction, whose END record has been made."""
        self.id, self._counts, self._total = None, {}, 0

    def event(self, table: str, identifier: str) -> Struct:
        """Count an event and return its transaction block."""
        self._total += 1
        self._counts[table] = self._counts.get(table, 0) + 1
        return Struct.of(TRANSACTION_BLOCK, [identifier, self._total, self._counts[table]])

    def offset(self) -> dict[str, Any]:
        """Return the part of the source offset that keeps the counts."""
        if self.id is None:
            return {}
        return {_ID: self.id, **{f"{_ORDER}{table}": count for table, count in self._counts.items()}}

    def begin_value(self, identifier: str, millis: int) -> Struct:
        """Return the value of a BEGIN record."""
        return Struct.of(TRANSACTION_VALUE, ["BEGIN", identifier, None, None, millis])

    def end_value(self, identifier: str, millis: int) -> Struct:
        """Return the value of an END record."""
        collections = [Struct.of(COLLECTION, [table, count]) for table, count in self._counts.items()]
        return Struct.of(TRANSACTION_VALUE, ["END", identifier, self._total, collections, millis])


def transaction_key(identifier: str) -> Struct:
    """Return the key of a transaction record."""
    return Struct.of(TRANSACTION_KEY, [identifier])
