"""Gives the rows of a snapshot their markers, and keeps the snapshot's progress. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sluiceway.connectors.cdc.envelope import FIRST, FIRST_IN_TABLE, LAST, LAST_IN_TABLE, TRUE
from sluiceway.connectors.cdc.ranges import Progress, Range

if TYPE_CHECKING:
    from sluiceway.connectors.cdc.column_rows import Rows


class MarkedRows(NamedTuple):
    """Rows of one table with the same marker. ``ended`` tells that the table has no more rows."""

    table: int
    marker: str
    rows: Rows
    ended: bool = False


class SnapshotRows:
    """Marks the rows of a snapshot as they arrive.

    The rows of a table that were read last wait until more arrive or the table ends, because the last row has another marker. The
    ranges before them count as done behind them.

    Args:
        tables: the number of tables.
        first_wins: whether the only row of a snapshot is marked as the first one, not as the last one.
    """

    def __init__(self, progress: Progress, tables: int, *, first_wins: bool) -> None:
        self._progress = progress
        self._tables = tables
        self._first_wins = first_wins
        self._held: dict[int, Rows] = {}
        self._ended: dict[int, list[Range]] = {}
        self._begun: set[int] = set()
        self._finals: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self.rows: dict[int, int] = {}

    def marked(self, batches: Iterable[tuple[Range, Rows | None]]) -> Iterator[MarkedRows]:
        """Yield the rows in the order of arrival. The progress covers what was yielded before."""
        for found, rows in batches:
            if rows is None:
                yield from self._end(found)
            elif rows:
                yield from self._more(found.table, rows)

    def _more(self, table: int, rows: Rows) -> Iterator[MarkedRows]:
        held = self._held.get(table)
        self._held[table] = rows
        if held is not None:
            yield from self._complete(table, held)
            self._finish(table)

    def _complete(self, table: int, rows: Rows) -> Iterator[MarkedRows]:
        """Yield rows that are not the last ones."""
        self.rows[table] = self.rows.get(table, 0) + len(rows)
        if table not in self._begun:
            self._begun.add(table)
            yield MarkedRows(table, FIRST if table == 0 else FIRST_IN_TABLE, rows[:1])
            rows = rows[1:]
        if rows:
            yield MarkedRows(table, TRUE, rows)

    def _end(self, found: Range) -> Iterator[MarkedRows]:
        table = found.table
        self._ended.setdefault(table, []).append(found)
        self._counts[table] = self._counts.get(table, 0) + 1
        if found.last is None:
            self._finals[table] = found.number + 1
        if self._counts[table] == self._finals.get(table):
            held = self._held.pop(table, [])
            if len(held) > 1:
                yield from self._complete(table, held[:-1])
            self.rows[table] = self.rows.get(table, 0) + len(held[-1:])
            yield MarkedRows(table, self._last_marker(table), held[-1:], ended=True)
            self._finish(table)
        elif table not in self._held:
            self._finish(table)

    def _finish(self, table: int) -> None:
        for found in self._ended.pop(table, ()):
            self._progress.finish(found)

    def _last_marker(self, table: int) -> str:
        """Return the marker of a table's last row, which may be its first one, too."""
        only = table not in self._begun
        if only and table == 0 and (self._first_wins or self._tables > 1):
            return FIRST
        return LAST if table == self._tables - 1 else LAST_IN_TABLE
