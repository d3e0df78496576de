"""Grouping writes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.sink.columns import Column, Layout
from sluiceway.connectors.jdbc.sink.config import InsertMode
from sluiceway.connectors.jdbc.sink.steps import Item, Target, in_order, last_of_each_key, step_of
from sluiceway.data import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA


def layout(*names: str, keys: int = 1) -> Layout:
    columns = [
        Column(name, INT64_SCHEMA if name == "id" else OPTIONAL_STRING_SCHEMA, number < keys, "")
        for number, name in enumerate(names)
    ]
    return Layout(tuple(columns), keys, lambda _: (), lambda _: ())


def target(*columns: str, delete: bool = False, table: str = "people") -> Target:
    return Target(TableId(None, None, table), f'"{table}"', columns, 1, layout(*columns), delete)


WRITE, WIDER, DELETE = target("id", "name"), target("id", "name", "age"), target("id", delete=True)


def items(*writes: tuple[Target, Any]) -> list[Item]:
    return [
        Item(kind, row if isinstance(row, tuple) else (row,), SinkRecord("t", 0, n, None)) for n, (kind, row) in enumerate(writes)
    ]


def shown(steps: Any) -> list[tuple[str, list[Any]]]:
    names = {id(WRITE): "write", id(WIDER): "wider", id(DELETE): "delete"}
    return [(names.get(id(step.target), step.target.table.table), list(step.rows)) for step in steps]


def test_the_last_row_of_a_key_is_written_after_its_deletion() -> None:
    batch = items((WRITE, (1, "a")), (DELETE, 1), (WRITE, (1, "b")), (WRITE, (2, "c")), (DELETE, 2), (WRITE, (3, "d")))
    assert shown(last_of_each_key(batch)) == [("delete", [(1,), (2,)]), ("write", [(1, "b"), (3, "d")])]


def test_rows_of_another_layout_are_written_after_those_before() -> None:
    batch = items((WRITE, (1, "a")), (WIDER, (1, "b", 7)), (WRITE, (2, "c")), (DELETE, 1))
    assert shown(last_of_each_key(batch)) == [
        ("write", [(1, "a")]),
        ("wider", [(1, "b", 7)]),
        ("delete", [(1,)]),
        ("write", [(2, "c")]),
    ]


def test_rows_of_a_batch_of_columns_have_each_key_once_for_upserts_and_are_kept_for_others() -> None:
    rows = [(1, "a"), (2, "b"), (1, "c")]
    assert step_of(WRITE, rows, InsertMode.UPSERT).rows == [(1, "c"), (2, "b")]
    assert step_of(WRITE, rows, InsertMode.INSERT).rows == rows


def test_tables_do_not_break_each_others_batches() -> None:
    other = target("id", "name", table="pets")
    batch = items((WRITE, (1, "a")), (other, (1, "x")), (WRITE, (2, "b")), (other, (2, "y")))
    for arrange in (last_of_each_key, in_order):
        assert shown(arrange(batch)) == [("write", [(1, "a"), (2, "b")]), ("pets", [(1, "x"), (2, "y")])]


def test_inserts_and_deletions_keep_their_order() -> None:
    batch = items((WRITE, (1, "a")), (WRITE, (2, "b")), (DELETE, 1), (WRITE, (1, "c")))
    assert shown(in_order(batch)) == [("write", [(1, "a"), (2, "b")]), ("delete", [(1,)]), ("write", [(1, "c")])]


def test_whatever_the_order_the_table_ends_as_if_each_record_were_applied_by_itself() -> None:
    chance = random.Random(8)  # noqa: S311
    for _ in range(300):
        writes: list[tuple[Target, Any]] = []
        for number in range(chance.randrange(12)):
            kind, key = chance.choice([WRITE, WIDER, DELETE]), chance.randrange(4)
            writes.append((kind, (key, *[f"{number}"] * (len(kind.columns) - 1))))
        expected: dict[int, dict[str, str]] = {}
        for each in items(*writes):
            apply(expected, each.target, [each.row])
        found: dict[int, dict[str, str]] = {}
        for step in last_of_each_key(items(*writes)):
            assert len({row[0] for row in step.rows}) == len(step.rows)  # what one statement of PostgreSQL's needs
            apply(found, step.target, step.rows)
        assert found == expected


def apply(table: dict[int, dict[str, str]], kind: Target, rows: Sequence[tuple[Any, ...]]) -> None:
    for key, *values in rows:
        if kind.delete:
            table.pop(key, None)
        else:
            table.setdefault(key, {}).update(zip(kind.columns[1:], values, strict=True))
