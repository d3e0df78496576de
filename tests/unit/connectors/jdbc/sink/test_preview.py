"""The SQL that the JDBC sink shows in a preview; nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.debezium import DebeziumJdbcSinkConnector
from sluiceway.connectors.jdbc.sink import JdbcSinkConnector
from sluiceway.errors import ConnectError
from support.database import DatabaseForTest
from support.jdbc_sink import KEYED, UPSERT, person, record, tombstone

INSERT = 'INSERT INTO "people" ("id", "name") VALUES (?, ?)'


def shown(database: DatabaseForTest, config: dict[str, str], *records: SinkRecord) -> list[str]:
    return list(JdbcSinkConnector.preview({"name": "s", **database.config, **config}, records))


def test_a_missing_table_is_shown_as_created_and_no_file_is_made(sqlite: DatabaseForTest) -> None:
    create, *rows = shown(sqlite, KEYED, person(0, 1, "a"), person(1, 2, None))
    assert create.startswith('CREATE TABLE "people"')
    assert [row.partition(" with ")[2] for row in rows] == ["(1, 'a')", "(2, None)"]
    assert not Path(sqlite.name).exists()


def test_columns_are_shown_as_added_and_the_table_stays_as_it_is(sqlite: DatabaseForTest) -> None:
    sqlite.execute("create table people (id integer primary key)")
    alter, insert = shown(sqlite, {**KEYED, "auto.evolve": "true"}, person(0, 1, "a"))
    assert alter.startswith('ALTER TABLE "people" ADD')
    assert insert == f"{INSERT} with (1, 'a')"
    assert sqlite.execute("select * from people") == []
    assert [row[1] for row in sqlite.execute("pragma table_info(people)")] == ["id"]


def test_upserts_and_deletions_leave_the_last_of_each_key(sqlite: DatabaseForTest) -> None:
    sqlite.execute("create table people (id integer primary key, name text)")
    statements = shown(sqlite, UPSERT, person(0, 1, "a"), person(1, 1, "b"), person(2, 2, "c"), tombstone(3, 2))
    assert [each.partition(" with ")[2] for each in statements] == ["(2,)", "(1, 'b')"]
    assert statements[0].startswith("DELETE FROM")
    assert sqlite.execute("select * from people") == []


def test_a_record_that_cannot_be_written_says_why(sqlite: DatabaseForTest) -> None:
    assert "people-0@0 cannot be written" in shown(sqlite, KEYED, record(0, {"id": 1}))[-1]


def test_a_problem_of_the_whole_table_is_raised(sqlite: DatabaseForTest) -> None:
    with pytest.raises(ConnectError, match="There is no table people"):
        shown(sqlite, {**KEYED, "auto.create": "false"}, person(0, 1, "a"))


def test_the_sink_with_debeziums_keys_shows_the_same(sqlite: DatabaseForTest) -> None:
    config = {"name": "s", **sqlite.config, "schema.evolution": "basic", "primary.key.mode": "record_key"}
    create, insert = DebeziumJdbcSinkConnector.preview(config, [person(0, 1, "a")])
    assert create.startswith("CREATE TABLE")
    assert insert.endswith("with (1, 'a')")
