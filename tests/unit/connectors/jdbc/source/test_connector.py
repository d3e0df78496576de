"""Assigning tables to tasks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sluiceway.connectors.groups import Groups
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.testing import MemoryConnectorContext


def test_a_new_table_changes_the_config_of_one_task() -> None:
    groups, tables = Groups[TableId](), [TableId(None, None, f"t{n}") for n in range(6)]
    before = groups.assign(tables[:5], 3)
    after = groups.assign(tables, 3)
    assert [len(group) for group in before] == [2, 2, 1]
    assert [was == now for was, now in zip(before, after, strict=True)] == [True, True, False]
    assert groups.assign([], 3) == []


def test_dropped_tables_change_their_own_task_and_at_most_one_other() -> None:
    groups, tables = Groups[TableId](), [TableId(None, None, f"t{n}") for n in range(6)]
    before = groups.assign(tables, 3)
    assert groups.assign(tables[1:], 3)[1:] == before[1:]
    assert groups.assign(tables, 3)[1:] == before[1:]  # the table was created again
    without_first_task = [table for table in tables if table not in before[0]]
    after = groups.assign(without_first_task, 3)
    assert [len(group) for group in after] == [1, 1, 2]
    assert after[2] == before[2]
    assert groups.assign([before[2][0]], 3) == [[before[2][0]]]
    assert groups.assign(tables, 3)[0][0] == before[2][0]


@pytest.mark.parametrize("key", ["table.whitelist", "table.include.list"])
def test_a_table_that_does_not_exist_is_shown_until_it_does(key: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute("create table orders (id integer)")
        connector, context = JdbcSourceConnector(), MemoryConnectorContext()
        connector.initialize(context)
        url = {"connection.url": f"jdbc:sqlite:{tmp_path / 'shop.db'}", "topic.prefix": "t-", "mode": "bulk"}
        connector.start({"name": "c", **url, key: "ordrs,orders"})
        try:
            [shown] = context.waits_for
            assert shown is not None
            assert shown.startswith("The database has no table ordrs, or its user has no privilege on it.")
            assert caplog.messages.count(shown) == 1
            database.execute("create table ordrs (id integer)")
            connector._refresh(connector._database)  # type: ignore[arg-type]
            assert context.waits_for[1:] == [None]
            assert len(connector.task_configs(2)) == 2
        finally:
            connector.stop()
