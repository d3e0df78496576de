"""Statements of writes."""

from __future__ import annotations

import pytest

from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.mysql.writer import delete_many
from sluiceway.connectors.jdbc.dialects.sql import without_end

POSTGRESQL, MYSQL, SQLITE = (dialect_of(name) for name in ("postgresql", "mysql", "sqlite"))


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (POSTGRESQL, 'INSERT INTO t ("id", "100%%") VALUES (%s, %s) ON CONFLICT ("id") DO UPDATE SET "100%%" = excluded."100%%"'),
        (MYSQL, "INSERT INTO t (`id`, `100%%`) VALUES (%s, %s) ON DUPLICATE KEY UPDATE `100%%` = VALUES(`100%%`)"),
        (SQLITE, 'INSERT INTO t ("id", "100%") VALUES (?, ?) ON CONFLICT ("id") DO UPDATE SET "100%" = excluded."100%"'),
    ],
)
def test_upserts_use_each_databases_own_form(dialect: Dialect, expected: str) -> None:
    assert dialect.upsert("t", ("id", "100%"), 1) == expected


def test_an_upsert_of_a_key_alone_changes_nothing() -> None:
    assert POSTGRESQL.upsert("t", ("id",), 1).endswith('ON CONFLICT ("id") DO NOTHING')
    assert MYSQL.upsert("t", ("id",), 1).endswith("ON DUPLICATE KEY UPDATE `id` = VALUES(`id`)")


def test_updates_and_deletes_name_the_key_in_their_condition() -> None:
    assert POSTGRESQL.update("t", ("a", "b", "c"), 2) == 'UPDATE t SET "c" = %s WHERE "a" = %s AND "b" = %s'
    assert SQLITE.delete("t", ("a",)) == 'DELETE FROM t WHERE "a" = ?'
    assert delete_many(MYSQL, "t", ("a",), 3) == "DELETE FROM t WHERE `a` IN (%s, %s, %s)"
    assert delete_many(MYSQL, "t", ("a", "b"), 2) == "DELETE FROM t WHERE (`a`, `b`) IN ((%s, %s), (%s, %s))"
    assert dialect_of("sqlite", quote=False).insert("t", ("a",)) == "INSERT INTO t (a) VALUES (?)"


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("select 1", "select 1"),
        ("select 1;", "select 1"),
        (" select 1 ; ; \n", "select 1"),
        ("select 1; -- the end; really", "select 1"),
        ("select 1; /* the; end */ -- x\n;", "select 1"),
        ("select 1 -- no; end", "select 1 -- no; end"),
        ("select 5--3", "select 5--3"),  # 8 on MySQL
        ("select ';'", "select ';'"),
        ("select '-- a;' ;", "select '-- a;'"),
        ('select ";" as `;`;', 'select ";" as `;`'),
        ("select 'it''s; -- x'", "select 'it''s; -- x'"),
        ("select 1; select 2", "select 1; select 2"),
        ("select 1; /* no end", "select 1; /* no end"),  # the database refuses it
        ("select 1; /*/", "select 1; /*/"),
    ],
)
def test_a_query_loses_its_last_semicolon_and_what_is_behind_it(query: str, kept: str) -> None:
    assert without_end(query) == kept
