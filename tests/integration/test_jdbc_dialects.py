"""The dialects' catalog queries on real databases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluiceway.connectors.jdbc.columns import Kind
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.connection_keys import CONNECTION, ConnectionSettings
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.tables import TableSelection, columns_of, find_tables
from sluiceway.errors import ConnectError, RetriableError
from support.database import PASSWORD, DatabaseForTest


def opened(database: DatabaseForTest, **changes: str) -> Database:
    config = {**database.config, "connection.attempts": "1", **changes}
    return Database(ConnectionSettings.of(CONNECTION.parse(config)))


def test_tables_and_views_are_listed_by_type(database: DatabaseForTest) -> None:
    database.execute("create table people (id integer primary key)")
    database.execute("create table things (id integer primary key)")
    database.execute("create view both_ids as select id from people")
    with (door := opened(database)).connect() as connection:
        names = [table.table for table in find_tables(connection, door.dialect, TableSelection())]
        views = [table.table for table in find_tables(connection, door.dialect, TableSelection(types=("VIEW",)))]
        one = find_tables(connection, door.dialect, TableSelection(whitelist=("people", "gone")))
        other = find_tables(connection, door.dialect, TableSelection(exclude=(".*people",)))
    assert (names, views) == (["people", "things"], ["both_ids"])
    assert ([table.table for table in one], [table.table for table in other]) == (["people"], ["things"])


def test_columns_say_whether_they_are_keys_and_may_be_null(database: DatabaseForTest) -> None:
    database.execute(
        "create table people (id integer not null primary key, name varchar(20), size decimal(10, 2) not null default 1)"
    )
    with (door := opened(database)).connect() as connection:
        [table] = find_tables(connection, door.dialect, TableSelection())
        key, name, size = columns_of(connection, door.dialect, table)
    assert (key.primary_key, key.nullable, name.primary_key, name.nullable) == (True, False, False, True)
    assert (size.type.kind, size.type.precision, size.type.scale, size.nullable, size.has_default) == (
        Kind.DECIMAL,
        10,
        2,
        False,
        True,
    )


def test_a_missing_table_is_named(database: DatabaseForTest) -> None:
    with (door := opened(database)).connect() as connection, pytest.raises(ConnectError, match="no table gone"):
        columns_of(connection, door.dialect, door.dialect.parse_table("gone"))


def test_columns_of_a_query_have_types(database: DatabaseForTest) -> None:
    database.execute("create table people (id integer not null primary key, name varchar(20), size decimal(10, 2))")
    with (door := opened(database)).connect() as connection:
        columns = door.dialect.query_columns(connection, "select name, size, id from people where name like 'a%'")
    assert [(each.name, each.type.kind) for each in columns][:2] == [("name", Kind.STRING), ("size", Kind.DECIMAL)]
    assert (columns[1].type.precision, columns[1].type.scale) == (10, 2)


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_a_wrong_password_is_refused_at_once_and_not_shown(name: str, request: pytest.FixtureRequest) -> None:
    database: DatabaseForTest = request.getfixturevalue(name)
    door = opened(replace(database, password="Wrong-and-secret"), **{"connection.attempts": "5"})
    with pytest.raises(ConnectError, match=r"refuses 'sluiceway'.*connection.password") as caught:
        door.connect()
    assert not isinstance(caught.value, RetriableError)
    assert "Wrong-and-secret" not in repr(caught.value)
    assert PASSWORD not in repr(caught.value) + repr(door.settings)


def test_an_unreachable_database_is_retried(postgresql: DatabaseForTest) -> None:
    waits: list[float] = []
    config = {**postgresql.config, "connection.url": "jdbc:postgresql://127.0.0.1:1/x", "connection.attempts": "3"}
    door = Database(ConnectionSettings.of(CONNECTION.parse(config)), wait=lambda seconds: bool(waits.append(seconds)))
    with pytest.raises(RetriableError, match=r"127.0.0.1:1/x cannot be reached after 3 attempt\(s\).*connection.url"):
        door.connect()
    assert waits == [10.0, 10.0]


def test_unquoted_names_follow_the_databases_case(postgresql: DatabaseForTest) -> None:
    postgresql.execute('create table "Mixed" (id int)')
    postgresql.execute("create table Plain (id int)")
    with (door := opened(postgresql)).connect() as connection:
        assert columns_of(connection, door.dialect, TableId(None, "public", "Mixed"))
        assert columns_of(connection, door.dialect, TableId(None, None, "plain"))
