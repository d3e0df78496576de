from __future__ import annotations

import pickle
import random
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.sink.columns import Column, Layout
from sluiceway.connectors.jdbc.sink.config import SinkOptions
from sluiceway.connectors.jdbc.sink.errors import Kind, kind_of
from sluiceway.connectors.jdbc.sink.session import WriteError
from sluiceway.connectors.jdbc.sink.statements import Statements, table_of
from sluiceway.connectors.jdbc.sink.steps import Item, Target, in_order, last_of_each_key
from sluiceway.connectors.jdbc.sink.tables import Table, changes
from sluiceway.connectors.jdbc.sink.task import SinkRetries
from sluiceway.data import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA
from sluiceway.errors import ConfigError, ConnectError, DataError, RetriableError

PEOPLE = TableId(None, None, "people")
OPTIONS = SinkOptions.of({"connection.url": "jdbc:sqlite:people.db"})
POSTGRESQL, MYSQL, SQLITE = (Statements(dialect_of(name)) for name in ("postgresql", "mysql", "sqlite"))


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


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (POSTGRESQL, 'INSERT INTO t ("id", "100%%") VALUES (%s, %s) ON CONFLICT ("id") DO UPDATE SET "100%%" = excluded."100%%"'),
        (MYSQL, "INSERT INTO t (`id`, `100%%`) VALUES (%s, %s) ON DUPLICATE KEY UPDATE `100%%` = VALUES(`100%%`)"),
        (SQLITE, 'INSERT INTO t ("id", "100%") VALUES (?, ?) ON CONFLICT ("id") DO UPDATE SET "100%" = excluded."100%"'),
    ],
)
def test_upserts(statements: Statements, expected: str) -> None:
    assert statements.upsert("t", ("id", "100%"), 1) == expected


def test_an_upsert_of_a_key_alone_changes_nothing() -> None:
    assert POSTGRESQL.upsert("t", ("id",), 1).endswith('ON CONFLICT ("id") DO NOTHING')
    assert MYSQL.upsert("t", ("id",), 1).endswith("ON DUPLICATE KEY UPDATE `id` = VALUES(`id`)")


def test_other_statements() -> None:
    assert POSTGRESQL.update("t", ("a", "b", "c"), 2) == 'UPDATE t SET "c" = %s WHERE "a" = %s AND "b" = %s'
    assert SQLITE.delete("t", ("a",)) == 'DELETE FROM t WHERE "a" = ?'
    assert MYSQL.delete_many("t", ("a",), 3) == "DELETE FROM t WHERE `a` IN (%s, %s, %s)"
    assert MYSQL.delete_many("t", ("a", "b"), 2) == "DELETE FROM t WHERE (`a`, `b`) IN ((%s, %s), (%s, %s))"
    assert Statements(dialect_of("sqlite", quote=False)).insert("t", ("a",)) == "INSERT INTO t (a) VALUES (?)"


def test_tables_are_named_by_format_and_topic() -> None:
    dialect = dialect_of("postgresql")
    assert table_of(dialect, "in_${topic}", "people") == TableId(None, None, "in_people")
    assert table_of(dialect, "${topic}", "public.people")[1:] == ("public", "people")
    with pytest.raises(ConfigError, match=r"table\.name\.format=\$\{topic\} and topic a\.b\.c\.d.*RegexRouter"):
        table_of(dialect, "${topic}", "a.b.c.d")


def test_a_table_is_created_only_where_that_is_allowed() -> None:
    with pytest.raises(ConnectError, match=r'no table people.*auto\.create.*CREATE TABLE "people"'):
        changes(OPTIONS, SQLITE, PEOPLE, None, layout("id", "name"))
    assert changes(replace(OPTIONS, auto_create=True), SQLITE, PEOPLE, None, layout("id", "name")) == [
        'CREATE TABLE "people" ("id" BIGINT NOT NULL, "name" TEXT NULL, PRIMARY KEY ("id"))'
    ]


def test_columns_are_found_by_name_whatever_the_case_if_there_is_but_one() -> None:
    table = Table(PEOPLE, ("ID", "Name", "name"))
    assert [table.column(name) for name in ("id", "name", "NAME")] == ["ID", "name", None]


def test_missing_columns_are_added_as_nullable_where_that_is_allowed() -> None:
    table = Table(PEOPLE, ("id",))
    required = Layout((*layout("id").columns, Column("city", STRING_SCHEMA, False, "")), 1, lambda _: (), lambda _: ())
    with pytest.raises(ConnectError, match=r"no column for city, and auto\.evolve is false.*ALTER TABLE"):
        changes(OPTIONS, SQLITE, PEOPLE, table, required)
    added = changes(replace(OPTIONS, auto_evolve=True), SQLITE, PEOPLE, table, required)
    assert added == ['ALTER TABLE "people" ADD COLUMN "city" TEXT NULL']


def test_keys_are_never_added_and_columns_never_dropped() -> None:
    evolving = replace(OPTIONS, auto_evolve=True)
    with pytest.raises(ConnectError, match="keys are never changed"):
        changes(evolving, SQLITE, PEOPLE, Table(PEOPLE, ("name",)), layout("id", "name"))
    assert changes(evolving, SQLITE, PEOPLE, Table(PEOPLE, ("id", "old", "name")), layout("id", "name")) == []


class PgError(Exception):
    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("from PostgreSQL")
        self.sqlstate = sqlstate


class DatabaseError(Exception):
    """As PEP 249 has it."""


class OperationalError(DatabaseError): ...


class IntegrityError(DatabaseError): ...


def mysql(error: Exception, sqlstate: str) -> Exception:
    """Return an error as newer drivers of MySQL's raise it."""
    error.sqlstate = sqlstate  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PgError("40P01"), Kind.AGAIN),
        (PgError("40001"), Kind.AGAIN),
        (PgError("25006"), Kind.AGAIN),
        (PgError("57P01"), Kind.UNREACHABLE),
        (PgError("08006"), Kind.UNREACHABLE),
        (PgError("23505"), Kind.RECORD),
        (PgError("22P02"), Kind.RECORD),
        (PgError("42703"), Kind.CHANGED),
        (PgError("42501"), Kind.FATAL),
        (OperationalError("connection refused"), Kind.UNREACHABLE),
        (OperationalError(1213, "Deadlock"), Kind.AGAIN),
        (OperationalError(2013, "Lost"), Kind.UNREACHABLE),
        (OperationalError(1292, "Incorrect"), Kind.RECORD),
        (IntegrityError(1062, "Duplicate"), Kind.RECORD),
        (mysql(OperationalError(1205, "Lock wait timeout"), "HY000"), Kind.AGAIN),
        (mysql(OperationalError(1366, "Incorrect"), "22007"), Kind.RECORD),
        (mysql(OperationalError(1364, "No default"), "HY000"), Kind.RECORD),
        (mysql(OperationalError(1146, "No such table"), "42S02"), Kind.CHANGED),
        (OperationalError(1142, "denied"), Kind.FATAL),
        (sqlite3.OperationalError("database is locked"), Kind.AGAIN),
        (sqlite3.IntegrityError("UNIQUE"), Kind.RECORD),
        (sqlite3.OperationalError("no such table: x"), Kind.CHANGED),
        (ConnectionResetError(), Kind.UNREACHABLE),
        (RetriableError("away"), Kind.UNREACHABLE),
        (DataError("bad"), Kind.RECORD),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogate"), Kind.RECORD),
        (ConnectError("no"), Kind.FATAL),
        (MemoryError(), Kind.FATAL),
    ],
)
def test_errors_are_told_apart(error: Exception, kind: Kind) -> None:
    assert kind_of(error) is kind


def test_attempts_are_counted_and_being_unreachable_is_timed() -> None:
    now = [0.0]
    retries = SinkRetries(2, 60, lambda: now[0])
    again, away = WriteError("deadlock"), WriteError("refused", unreachable=True)
    for _ in range(2):
        retries.failed(again)
    with pytest.raises(ConnectError, match=r"deadlock \(after 3 attempts; max\.retries=2\)"):
        retries.failed(again)
    retries.succeeded()
    for now[0] in (0, 30, 59):
        retries.failed(away)
    now[0] = 60
    with pytest.raises(ConnectError, match=r"for 60 s, which sluiceway\.unreachable\.timeout\.ms"):
        retries.failed(away)
    endless = SinkRetries(None, None, lambda: now[0])
    for now[0] in range(1000):
        endless.failed(again)
        endless.failed(away)


def test_a_write_error_survives_pickling() -> None:
    copy = pickle.loads(pickle.dumps(WriteError("away", unreachable=True)))  # noqa: S301
    assert (str(copy), copy.unreachable) == ("away", True)
