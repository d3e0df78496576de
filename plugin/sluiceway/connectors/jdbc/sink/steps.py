"""Puts the writes of a batch into few statements, so that each row ends as the records' order has it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.sink.columns import Layout, Row


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Where the records of one layout go: a table, and the table's names for the layout's columns, the key's first.

    ``delete``: they are tombstones, and the columns are the key's alone.
    """

    table: TableId
    sql_name: str
    columns: tuple[str, ...]
    keys: int
    layout: Layout
    delete: bool = False
    view: bool = False


class Item(NamedTuple):
    """One record's write: all its columns' values, or its key's if it is a deletion."""

    target: Target
    row: Row
    record: SinkRecord


class Step(NamedTuple):
    """Rows that are written, or keys that are deleted, by one statement."""

    target: Target
    rows: list[Row]


def in_order(items: Iterable[Item]) -> Iterator[Step]:
    """Give the steps of each table in the records' order. Tables do not wait for each other."""
    steps: dict[TableId, list[Step]] = {}
    for target, row, _ in items:
        made = steps.setdefault(target.table, [])
        if not made or made[-1].target is not target:
            made.append(Step(target, []))
        made[-1].rows.append(row)
    for made in steps.values():
        yield from made


def last_of_each_key(items: Iterable[Item]) -> Iterator[Step]:
    """Give steps that leave each key as its last record has it, deletions before writes; for upserts.

    A key that was deleted and written again is deleted first, so that columns which the new row has not are empty.
    """
    waves: dict[TableId, list[_Wave]] = {}
    for target, row, _ in items:
        made = waves.setdefault(target.table, [])
        if not made or not made[-1].takes(target):
            made.append(_Wave())
        made[-1].take(target, row)
    for made in waves.values():
        for wave in made:
            yield from wave.steps()


@dataclass(slots=True)
class _Wave:
    """Records whose order among different keys does not matter: of one layout, and tombstones with the same key columns."""

    writing: Target | None = None
    deleting: Target | None = None
    rows: dict[Row, Row] = field(default_factory=dict)
    deleted: dict[Row, None] = field(default_factory=dict)

    def takes(self, target: Target) -> bool:
        mine, other = (self.deleting, self.writing) if target.delete else (self.writing, self.deleting)
        same_key = other is None or other.columns[: other.keys] == target.columns[: target.keys]
        return same_key and (mine is None or mine is target)

    def take(self, target: Target, row: Row) -> None:
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
