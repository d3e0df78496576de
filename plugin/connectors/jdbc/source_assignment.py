"""Which task reads which tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sluiceway.connectors.jdbc.dialects.base import TableId


class Assignment:
    """Remembers who has what: tables that come are given to those who have fewest, and nobody else notices."""

    def __init__(self) -> None:
        self._groups: list[list[TableId]] = []

    def shared(self, tables: Sequence[TableId], most: int) -> list[list[TableId]]:
        """Return the tables in at most so many groups, none of them empty but for tables that went."""
        count = min(most, len(tables))
        if count == 0:
            self._groups = []
            return []
        there = set(tables)
        kept = [[table for table in group if table in there] for group in self._groups[:count]]
        if len(self._groups) > count or not kept:
            kept = []
        kept += [[] for _ in range(count - len(kept))]
        taken = {table for group in kept for table in group}
        for table in tables:
            if table not in taken:
                min(kept, key=len).append(table)
        self._groups = kept
        return [list(group) for group in kept if group]
