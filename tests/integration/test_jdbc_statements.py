"""Statements that the JDBC connectors make of tables, keys, and queries, on real databases."""

from __future__ import annotations

import pytest

from sluiceway.connectors.jdbc.source import JdbcSourceConnector
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.testing import MemoryOffsets
from sluiceway.testing.running import RunningSource
from support.database import DatabaseForTest
from support.jdbc_sink import UPSERT, person, sink
from support.jdbc_source import polled

PEOPLE = "select id, name from people order by id"


def test_an_upsert_never_changes_the_row_of_another_key(database: DatabaseForTest) -> None:
    database.execute("create table people (id bigint not null primary key, name varchar(20) unique)")
    database.execute("insert into people values (1, 'Ann'), (2, 'Bob')")
    with sink(database, UPSERT, reports=True) as made:
        made.put(person(0, 3, "Ann"), person(1, 4, "Dan"), person(2, 2, "Bea"), person(3, 1, "Ann"))
        assert made.rows(PEOPLE) == [(1, "Ann"), (2, "Bea"), (4, "Dan")]
        [(bad, error)] = made.context.reported
        assert bad.kafka_offset == 0
        assert "people-0@0 cannot be written to table" in str(error)
        made.put(person(4, 3, "Cid"), person(5, 3, "Bob"))
        assert made.rows(PEOPLE) == [(1, "Ann"), (2, "Bea"), (3, "Bob"), (4, "Dan")]


@pytest.mark.parametrize("key", ["primary key (id, name)", "primary key (id), unique (name)", "unique (id), unique (name)"])
def test_upserts_by_other_keys_than_the_primary_one(mariadb: DatabaseForTest, key: str) -> None:
    mariadb.execute(f"create table people (id bigint not null, name varchar(20) not null, {key})")
    mariadb.execute("insert into people values (1, 'Ann')")
    config = {"pk.mode": "record_value", "pk.fields": "id", "insert.mode": "upsert"}
    if key.startswith("primary key (id, name)"):
        config["pk.fields"] = "id,name"
    with sink(mariadb, config, reports=True) as made:
        made.put(person(0, 1, "Ann"), person(1, 2, "Bob"), person(2, 2, "Bob"))
        assert made.rows(PEOPLE) == [(1, "Ann"), (2, "Bob")]
        assert made.context.reported == []


@pytest.mark.parametrize(
    ("ddl", "key"),
    [
        ("create table people (id bigint null, name varchar(20), unique (id), unique (name))", "id"),
        ("create table people (id bigint, name varchar(20) not null, unique (name(3)))", "name"),
        ("create table own (id bigint primary key, name varchar(20) unique); create view people as select * from own", "id"),
    ],
    ids=["nullable", "beginning", "view"],
)
def test_no_other_row_changes_whatever_its_key(mariadb: DatabaseForTest, ddl: str, key: str) -> None:
    for sql in (*ddl.split(";"), "insert into people values (1, 'Anna')"):
        mariadb.execute(sql)
    config = {"pk.mode": "record_value", "pk.fields": key, "insert.mode": "upsert", "table.types": "TABLE,VIEW"}
    with sink(mariadb, config, reports=True) as made:
        made.put(person(0, 3, "Anna" if key == "id" else "Annabel"), person(1, 2, "Bob"), person(2, 2, "Bob"))
        assert made.rows(PEOPLE) == [(1, "Anna"), (2, "Bob")]
        [(bad, error)] = made.context.reported
    assert bad.kafka_offset == 0
    assert f"the same value in a unique key other than {key}" in str(error)


def test_rows_of_partitions_and_of_their_table_are_read_once(postgresql: DatabaseForTest) -> None:
    postgresql.execute("create table events (id int primary key) partition by range (id)")
    postgresql.execute("create table events_low partition of events for values from (0) to (10) partition by range (id)")
    postgresql.execute("create table events_low_1 partition of events_low for values from (0) to (10)")
    postgresql.execute("create table events_high partition of events for values from (10) to (20)")
    postgresql.execute("create table base (id int primary key)")
    postgresql.execute("create table same () inherits (base)")
    postgresql.execute("create table more (extra text) inherits (base)")
    postgresql.execute("insert into events values (1), (11)")
    config = {"name": "s", **postgresql.config, "mode": "bulk", "topic.prefix": "t-"}
    with RunningSource(JdbcSourceConnector, config, offsets=MemoryOffsets()) as source:
        [task] = source.tasks
        records = [record for _ in range(6) for record in source.call(task.poll) or ()]
    assert sorted((record.topic, record.value["id"]) for record in records[:2]) == [("t-events", 1), ("t-events", 11)]


@pytest.mark.parametrize("only", ["events_low_1", "events_high"])
def test_a_partition_that_is_listed_alone_is_read(postgresql: DatabaseForTest, only: str) -> None:
    postgresql.execute("create table events (id int primary key) partition by range (id)")
    for name, low in (("events_low_1", 0), ("events_high", 10)):
        postgresql.execute(f"create table {name} partition of events for values from ({low}) to ({low + 10})")
    postgresql.execute("insert into events values (1), (11)")
    config = {"name": "s", **postgresql.config, "mode": "bulk", "topic.prefix": "t-", "table.whitelist": only}
    [batch] = polled(config, 1, columns=False)
    assert [record.topic for record in batch] == [f"t-{only}"]  # type: ignore[union-attr]


@pytest.mark.parametrize("end", [" -- the newest", ";", " ; ", "\n-- a comment\n", " /* a comment */", "; -- the newest; really"])
@pytest.mark.parametrize("mode", [{"mode": "bulk"}, {"mode": "incrementing", "incrementing.column.name": "id"}])
def test_a_query_may_end_in_a_comment(database: DatabaseForTest, end: str, mode: dict[str, str]) -> None:
    database.execute("create table people (id integer not null primary key, name varchar(20))")
    database.execute("insert into people values (1, 'Ann')")
    query = "".join(("select id, name from people", end))
    config = {"name": "s", **database.config, **mode, "query": query, "topic.prefix": "t"}
    [batch] = polled(config, 1, columns=False)
    assert [record.value["name"] for record in batch] == ["Ann"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "query",
    [
        "select id from people a join people b on a.id < b.id",  # an ambiguous column
        "select (select id from people) as id",  # a subquery with several rows
        "select no_such_function(id) as id from people",
        "select id, id from people",  # a column twice
        "select id from",
        "select nothing from people",
        "select id from nowhere",
    ],
)
@pytest.mark.parametrize("mode", [{"mode": "bulk"}, {"mode": "incrementing", "incrementing.column.name": "id"}])
def test_a_statement_that_the_server_refuses_fails_the_task(database: DatabaseForTest, query: str, mode: dict[str, str]) -> None:
    database.execute("create table people (id integer not null primary key, name varchar(20))")
    database.execute("insert into people values (1, 'Ann'), (2, 'Bob')")
    config = {"name": "s", **database.config, **mode, "query": query, "topic.prefix": "t"}
    failure = None
    try:
        polled(config, 1, columns=False)  # SQLite accepts some of them
    except ConnectError as error:
        failure = error
    assert not isinstance(failure, RetriableError)
    assert failure is not None or database.name.endswith(".db") or "id, id" in query
