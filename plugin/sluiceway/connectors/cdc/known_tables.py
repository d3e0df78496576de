"""Keeps the captured tables in source offsets, so that a later run knows which ones are new. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.filters import TableId

TABLES = "sluiceway_captured_tables"
"""The key of source offsets, which Debezium ignores."""


class KnownTables:
    """The tables that a run captures."""

    def __init__(self, captured: Iterable[TableId]) -> None:
        self._tables = set(captured)
        self._state: dict[str, Any] | None = None

    def new(self, offset: Mapping[str, Any]) -> list[TableId]:
        """Return the tables that the run of a stored offset did not capture; none if it did not keep them."""
        stored = offset.get(TABLES)
        if stored is None:
            return []
        known = set(json.loads(stored))
        return sorted(table for table in self._tables if str(table) not in known)

    def add(self, table: TableId) -> None:
        """Add a table that was created while the log is read, so that the log has all its rows."""
        if table not in self._tables:
            self._tables.add(table)
            self._state = None

    def state(self) -> dict[str, Any]:
        """Return the part of source offsets with the tables."""
        if self._state is None:
            self._state = {TABLES: json.dumps(sorted(map(str, self._tables)), separators=(",", ":"))}
        return self._state


def known_tables(config: CommonConfig, tables: Iterable[TableId]) -> dict[str, Any]:
    """Return the part of a snapshot's offsets with its tables; nothing unless the config wants it."""
    return KnownTables(tables).state() if config.snapshots.new_tables else {}
