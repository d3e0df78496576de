"""Assigning tables to tasks."""

from __future__ import annotations

from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.source.connector import TableGroups


def test_a_new_table_changes_the_config_of_one_task() -> None:
    groups, tables = TableGroups(), [TableId(None, None, f"t{n}") for n in range(6)]
    before = groups.assign(tables[:5], 3)
    after = groups.assign(tables, 3)
    assert [len(group) for group in before] == [2, 2, 1]
    assert [was == now for was, now in zip(before, after, strict=True)] == [True, True, False]
    assert groups.assign([], 3) == []


def test_dropped_tables_change_their_own_task_and_at_most_one_other() -> None:
    groups, tables = TableGroups(), [TableId(None, None, f"t{n}") for n in range(6)]
    before = groups.assign(tables, 3)
    assert groups.assign(tables[1:], 3)[1:] == before[1:]
    assert groups.assign(tables, 3)[1:] == before[1:]  # the table was created again
    without_first_task = [table for table in tables if table not in before[0]]
    after = groups.assign(without_first_task, 3)
    assert [len(group) for group in after] == [1, 1, 2]
    assert after[2] == before[2]
    assert groups.assign([before[2][0]], 3) == [[before[2][0]]]
    assert groups.assign(tables, 3)[0][0] == before[2][0]
