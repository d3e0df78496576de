# ruff: noqa: S608 (of a database of our own)
"""The JDBC source in edge cases: zones, types, lost connections, and tables that change during a pass."""

from __future__ import annotations

import datetime as dt
from contextlib import closing
from typing import Any

import pytest

from sluiceway.connectors.jdbc.dialects.mysql.horizon import MySqlHorizon
from sluiceway.connectors.jdbc.source import table_reader as source_reader
from sluiceway.connectors.jdbc.source import task as source_task
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.testing import MemoryOffsets
from sluiceway.testing.running import RunningSource
from support.database import DatabaseForTest
from support.eventually import eventually
from support.mariadb import MariaDbServer

UTC = dt.timezone.utc


def config_of(database: DatabaseForTest, mode: str, **more: str) -> dict[str, str]:
    keys = {name.replace("_", "."): value for name, value in more.items()}
    return {**database.config, "mode": mode, "topic.prefix": "t-", "poll.interval.ms": "20", "connection.attempts": "1", **keys}


@pytest.mark.parametrize("zone", ["EST5", "CET-1"])
def test_the_start_of_a_mariadb_transaction_does_not_depend_on_the_servers_zone(zone: str) -> None:
    with MariaDbServer(zone) as mariadb, closing(mariadb.first.connect(autocommit=False)) as late:
        late.cursor().execute("start transaction with consistent snapshot")
        late.cursor().execute("create temporary table t (id integer)")
        late.cursor().execute("select * from mysql.innodb_table_stats for update")
        with closing(mariadb.first.connect()) as connection:
            horizon = MySqlHorizon(mariadb.first.connect)
            since, now = horizon.open_since(connection), horizon.clock(connection)
        assert since is not None
        assert abs((now - since).total_seconds()) < 1800, "half of what zones differ by"


def ids(records: list[Any]) -> list[int]:
    return [int(record.value["id"]) for record in records]


def test_rows_of_a_transaction_that_is_open_when_ranges_are_planned_are_not_lost(postgresql: DatabaseForTest) -> None:
    postgresql.execute("create table people (id integer primary key, changed timestamptz not null default now())")
    postgresql.execute("insert into people (id) select generate_series(1, 10)")
    config = config_of(postgresql, "timestamp", timestamp_column_name="changed", sluiceway_snapshot_ranges="2")
    with closing(postgresql.connect(autocommit=False)) as late:
        late.execute("insert into people (id) values (11)")  # its time is the start of its transaction
        with RunningSource(JdbcSourceConnector, config, tasks_max=2) as source:
            assert sorted(ids(source.read(10, 10))) == list(range(1, 11))
            late.commit()
            assert ids(source.read(1, 10)) == [11]


def test_ranges_that_were_not_begun_are_read_after_a_restart(postgresql: DatabaseForTest) -> None:
    """New rows may be read and stored before any row of the ranges."""
    postgresql.execute("create table people (id integer primary key, changed timestamptz not null)")
    postgresql.execute("insert into people select n, '2024-01-01' from generate_series(1, 10) n")
    postgresql.execute("insert into people select 20, now() + interval '1 hour'")  # makes the last range an empty one
    config = config_of(postgresql, "timestamp", timestamp_column_name="changed", sluiceway_snapshot_ranges="2")
    offsets = MemoryOffsets()
    with RunningSource(JdbcSourceConnector, config, tasks_max=2, offsets=offsets) as source:
        postgresql.execute("insert into people values (30, now())")
        later: list[Any] = []
        while not later:
            later = [record for record in source.poll() if record.value["id"] == 30]
        source.acknowledge(later)
    with RunningSource(JdbcSourceConnector, config, tasks_max=2, offsets=offsets) as source:
        assert sorted(ids(source.read(10, 10))) == list(range(1, 11))


@pytest.mark.parametrize("mapping", ["none", "best_fit"])
def test_numbers_of_any_length_make_offsets_that_are_numbers(postgresql: DatabaseForTest, mapping: str) -> None:
    postgresql.execute("create table people (id numeric primary key)")
    postgresql.execute("insert into people values (1), (2)")
    config = config_of(postgresql, "incrementing", incrementing_column_name="id", numeric_mapping=mapping)
    offsets = MemoryOffsets()
    with RunningSource(JdbcSourceConnector, config, offsets=offsets) as source:
        found = source.read(2, 10)
        source.acknowledge(found)
    assert found[-1].source_offset == {"incrementing": 2}
    postgresql.execute("insert into people values (3)")
    with RunningSource(JdbcSourceConnector, config, offsets=offsets) as source:
        assert [float(record.value["id"]) for record in source.read(1, 10)] == [3.0]


@pytest.mark.parametrize(("type_", "value"), [("numeric", "1.5"), ("numeric(30)", str(1 << 63)), ("numeric(10,2)", "1.5")])
def test_a_number_that_no_offset_can_hold_is_refused(postgresql: DatabaseForTest, type_: str, value: str) -> None:
    postgresql.execute(f"create table people (id {type_} primary key)")
    postgresql.execute(f"insert into people values ({value})")
    config = config_of(postgresql, "incrementing", incrementing_column_name="id")
    with RunningSource(JdbcSourceConnector, config) as source, pytest.raises(ConnectError, match=r"whole numbers? of 64 bits"):
        source.read(1, 10)


def test_rows_without_a_number_are_skipped_without_validate_non_null(postgresql: DatabaseForTest) -> None:
    postgresql.execute("create table people (id integer, changed timestamptz not null)")
    postgresql.execute("insert into people values (1, '2024-01-01'), (null, '2024-01-01'), (2, '2024-01-02')")
    config = config_of(
        postgresql,
        "timestamp+incrementing",
        timestamp_column_name="changed",
        incrementing_column_name="id",
        validate_non_null="false",
    )
    with RunningSource(JdbcSourceConnector, config) as source:
        assert ids(source.read(2, 10)) == [1, 2]


@pytest.mark.parametrize("change", ["drop table people", "alter table people drop column name"])
@pytest.mark.parametrize("name", ["postgresql", "mariadb", "sqlite"])
def test_a_table_that_changes_after_its_columns_were_read_fails_no_task(
    name: str, change: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    database: DatabaseForTest = request.getfixturevalue(name)
    for table in ("people", "places"):
        database.execute(f"create table {table} (id integer not null primary key, name varchar(9))")
        database.execute(f"insert into {table} values (1, 'a')")
    config = config_of(database, "incrementing", incrementing_column_name="id")
    usual, changes = source_reader.end_transaction, [change]

    def change_then(connection: Any) -> None:
        usual(connection)
        if changes:
            database.execute(changes.pop())

    found: list[Any] = []
    with RunningSource(JdbcSourceConnector, config) as source:
        monkeypatch.setattr(source_reader, "end_transaction", change_then)
        for _ in range(400):
            try:
                found += source.poll()
            except RetriableError:
                continue
            if any(record.topic == "t-places" for record in found):
                break
    assert not changes
    assert "t-places" in {record.topic for record in found}


def polled(source: RunningSource, enough: Any) -> list[Any]:
    """Poll as the runtime does: repeat after retriable errors."""
    found: list[Any] = []
    for _ in range(400):
        try:
            found += source.poll()
        except RetriableError:
            continue
        if enough(found):
            return found
    raise AssertionError(f"not enough: {ids(found)}")


def test_rows_of_one_timestamp_are_not_lost_with_the_connection(postgresql: DatabaseForTest) -> None:
    postgresql.execute("create table people (id integer primary key, changed timestamptz not null)")
    postgresql.execute("insert into people select n, '2024-01-01' from generate_series(1, 12) n")
    config = config_of(postgresql, "timestamp", timestamp_column_name="changed", batch_max_rows="2")
    with RunningSource(JdbcSourceConnector, config) as source:
        found = source.read(2, 10)
        postgresql.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sluiceway-jdbc-source'"
        )
        found += polled(source, lambda records: 12 in ids(records))
    assert set(ids(found)) == set(range(1, 13))


def test_a_batch_that_was_not_delivered_is_not_lost_with_the_connection(
    database: DatabaseForTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("create table people (id integer not null primary key)")
    database.execute("insert into people values (1), (2), (3)")
    config = config_of(database, "incrementing", incrementing_column_name="id", batch_max_rows="2")
    usual, calls = source_reader.end_transaction, []

    def broken(connection: Any) -> None:
        calls.append(connection)
        usual(connection)
        if len(calls) == 2:  # after the rows were read
            raise RetriableError("the connection is lost")

    monkeypatch.setattr(source_reader, "end_transaction", broken)
    with RunningSource(JdbcSourceConnector, config) as source:
        found = polled(source, lambda records: 3 in ids(records))
    assert ids(found) == [1, 2, 3]


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
@pytest.mark.parametrize("mode", ["incrementing", "timestamp"])
def test_a_task_paused_during_a_pass_holds_no_transaction(
    name: str, mode: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_task, "_IDLE_SECONDS", 0.5)
    database: DatabaseForTest = request.getfixturevalue(name)
    moment = "timestamptz" if name == "postgresql" else "datetime(6)"
    database.execute(f"create table people (id integer not null primary key, changed {moment} not null)")
    for number in range(1, 10):
        database.execute(f"insert into people values ({number}, '2024-01-01')")
    column = {"incrementing": "incrementing_column_name", "timestamp": "timestamp_column_name"}[mode]
    named = {"incrementing": "id", "timestamp": "changed"}[mode]
    config = config_of(database, mode, batch_max_rows="2", **{column: named})
    ours = {
        "postgresql": "select pid from pg_stat_activity where application_name = 'sluiceway-jdbc-source' "
        "and datname = current_database() and xact_start is not null",
        "mariadb": "select id from information_schema.processlist where db = database() and id <> connection_id()",
    }[name]
    with RunningSource(JdbcSourceConnector, config) as source:
        found = source.read(2, 10)
        assert database.execute(ours)
        eventually(lambda: not database.execute(ours))
        found += polled(source, lambda records: 9 in ids(records))
    assert set(ids(found)) == set(range(1, 10))
    assert mode == "timestamp" or len(found) == 9
