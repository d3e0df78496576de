"""Groups the writes of a batch into few statements that leave each row as the order of records requires. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.dialects.writer import Row, TargetTable, Writer
from sluiceway.connectors.jdbc.sink.columns import Layout
from sluiceway.connectors.jdbc.sink.config import InsertMode


@dataclass(frozen=True, slots=True, eq=False)
class Target(TargetTable):
    """The table for the records of one layout. ``columns`` are the table's names for the layout's columns.

    With ``delete`` the records are tombstones and the columns are the key's.
    """

    layout: Layout
    delete: bool = False


class Item(NamedTuple):
    """The write of one record: the values of all columns, or of the key's columns for a deletion."""

    target: Target
    row: Row
    record: SinkRecord


class Step(NamedTuple):
    """Rows to write, or keys to delete, together."""

    target: Target
    rows: list[Row]


def write_step(writer: Writer, step: Step, mode: InsertMode) -> None:
    """Write a step. Raises the driver's errors, and DataError."""
    target, rows = step
    if target.delete:
        writer.delete(target, rows)
    elif mode is InsertMode.UPSERT:
        writer.upsert(target, rows)
    elif mode is InsertMode.INSERT:
        writer.insert(target, rows)
    else:
        writer.update(target, rows)


def in_order(items: Iterable[Item]) -> Iterator[Step]:
    """Yield the steps of each table in the order of the records, one table after the other."""
    by_table: dict[TableId, list[Step]] = {}
    for target, row, _ in items:
        steps = by_table.setdefault(target.table, [])
        if not steps or steps[-1].target is not target:
            steps.append(Step(target, []))
        steps[-1].rows.append(row)
    for steps in by_table.values():
        yield from steps


def step_of(target: Target, rows: list[Row], mode: InsertMode) -> Step:
    """Return the step that writes rows of one table in order; for upserts, only the last row of each key."""
    return Step(target, list({row[: target.keys]: row for row in rows}.values()) if mode is InsertMode.UPSERT else rows)


def last_of_each_key(items: Iterable[Item]) -> Iterator[Step]:
    """Yield steps that leave each key as its last record requires, for upserts. Deletions precede writes.

    A key that is deleted and then written again is still deleted first, so that columns which the new row lacks are null.
    """
    by_table: dict[TableId, list[_Group]] = {}
    for target, row, _ in items:
        groups = by_table.setdefault(target.table, [])
        if not groups or not groups[-1].accepts(target):
            groups.append(_Group())
        groups[-1].add(target, row)
    for groups in by_table.values():
        for group in groups:
            yield from group.steps()


@dataclass(slots=True)
class _Group:
    """Records of one layout and tombstones with the same key columns: the order of different keys does not matter."""

    writing: Target | None = None
    deleting: Target | None = None
    rows: dict[Row, Row] = field(default_factory=dict)
    deleted: dict[Row, None] = field(default_factory=dict)

    def accepts(self, target: Target) -> bool:
        same, other = (self.deleting, self.writing) if target.delete else (self.writing, self.deleting)
        same_key = other is None or other.columns[: other.keys] == target.columns[: target.keys]
        return same_key and (same is None or same is target)

    def add(self, target: Target, row: Row) -> None:
        if target.delete:
            self.deleting = target
            self.deleted[row] = None
            self.rows.pop(row, None)
        else:
            self.writing = target
            self.rows[row[: target.keys]] = row

    def steps(self) -> Iterator[Step]:
        if self.deleting is not None:
            yield Step(self.deleting, list(self.deleted))
        if self.writing is not None and self.rows:
            yield Step(self.writing, list(self.rows.values()))
