# ruff: noqa: S608 (of a database of our own)
"""The watch of tables on real databases: what a run would read changes its mark, once no open transaction can precede it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from sluiceway.api import SourceWatch
from sluiceway.connectors.jdbc.source import watch as watch_module
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.errors import ConnectError, RetriableError
from support.database import DatabaseForTest
from support.eventually import eventually

STAMP = {"postgresql": "timestamp", "mysql": "datetime(6)", "sqlite": "timestamp"}
TIMED = {"timestamp_column_name": "changed", "mode": "timestamp"}
NUMBERED = {"incrementing_column_name": "id", "mode": "incrementing"}
BOTH = {**TIMED, **NUMBERED, "mode": "timestamp+incrementing"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(watch_module, "_REST", 0)


@contextmanager
def watched(database: DatabaseForTest, **more: str) -> Iterator[SourceWatch]:
    keys = {name.replace("_", "."): value for name, value in more.items()}
    with closing(JdbcSourceConnector.watch({**database.config, "topic.prefix": "t-", **keys})) as watch:
        yield watch


def people(database: DatabaseForTest, name: str = "people") -> None:
    stamp = STAMP[database.dialect]
    database.execute(f"create table {name} (id integer not null primary key, label varchar(20), changed {stamp} not null)")


def insert(database: DatabaseForTest, number: int, table: str = "people") -> None:
    database.execute(f"insert into {table} values ({number}, 'x', '2024-01-01 10:00:{number:02d}')")


@pytest.mark.parametrize("mode", [TIMED, NUMBERED, BOTH], ids=lambda mode: mode["mode"])
def test_a_newer_row_changes_the_mark_and_an_unchanged_table_does_not(database: DatabaseForTest, mode: dict[str, str]) -> None:
    people(database)
    insert(database, 1)
    with watched(database, **mode) as watch:
        seen = eventually(watch.mark, what="the first row")
        assert watch.mark() == seen
        database.execute("update people set label = 'y'")
        assert watch.mark() == seen, "what the source does not see"
        insert(database, 2)
        eventually(lambda: watch.mark() != seen, what="the newer row")
        seen = watch.mark()
        assert watch.mark() == seen


def test_a_new_table_that_is_selected_changes_the_mark_of_each_mode(database: DatabaseForTest) -> None:
    people(database)
    with watched(database, mode="bulk", table_include_list=".*people.*") as watch:
        seen = watch.mark()
        insert(database, 1)
        assert watch.mark() == seen, "bulk mode has no newest row"
        people(database, "other")
        assert watch.mark() == seen, "a table that is not selected"
        people(database, "people_two")
        assert watch.mark() != seen
        seen = watch.mark()
        database.execute("drop table people_two")
        assert watch.mark() == seen, "a table that is gone has nothing to read"


def test_an_empty_table_has_no_newest_row(database: DatabaseForTest) -> None:
    people(database)
    with watched(database, **NUMBERED) as watch:
        seen = watch.mark()
        assert watch.mark() == seen
        insert(database, 1)
        eventually(lambda: watch.mark() != seen, what="the first row")


@pytest.mark.parametrize("mode", [TIMED, NUMBERED], ids=lambda mode: mode["mode"])
def test_rows_count_when_no_open_transaction_can_precede_them(postgresql: DatabaseForTest, mode: dict[str, str]) -> None:
    """A run that began before would not read them, and nothing would change when the older transaction commits."""
    people(postgresql)
    with watched(postgresql, **mode) as watch, closing(postgresql.connect()) as other, closing(other.cursor()) as cursor:
        seen = watch.mark()
        cursor.execute("begin")
        cursor.execute("insert into people values (1, 'x', clock_timestamp() at time zone 'UTC')")
        time.sleep(0.01)
        postgresql.execute("insert into people values (2, 'x', clock_timestamp() at time zone 'UTC')")
        for _ in range(5):
            assert watch.mark() == seen
        cursor.execute("commit")
        eventually(lambda: watch.mark() != seen, what="both rows")


def test_rows_count_after_the_delay_of_their_timestamps(postgresql: DatabaseForTest) -> None:
    people(postgresql)
    with watched(postgresql, **TIMED, timestamp_delay_interval_ms="1500") as watch:
        seen = watch.mark()
        began = time.monotonic()
        postgresql.execute("insert into people values (1, 'x', clock_timestamp() at time zone 'UTC')")
        eventually(lambda: watch.mark() != seen, what="the row", latest=0.05)
        assert time.monotonic() - began >= 1.4


def test_a_lost_connection_is_opened_again_and_no_change_is_lost(postgresql: DatabaseForTest) -> None:
    people(postgresql)
    with watched(postgresql, **NUMBERED) as watch:
        seen = watch.mark()
        others = "datname = current_database() and pid <> pg_backend_pid()"
        postgresql.execute(f"select pg_terminate_backend(pid) from pg_stat_activity where {others}")
        insert(postgresql, 1)
        with pytest.raises(RetriableError):
            watch.mark()
        eventually(lambda: watch.mark() != seen, what="the row of the outage")


def test_a_column_that_is_not_there_is_an_error_with_its_name(database: DatabaseForTest) -> None:
    people(database)
    with (
        watched(database, mode="incrementing", incrementing_column_name="nothing") as watch,
        pytest.raises(ConnectError, match="no column nothing in table"),
    ):
        watch.mark()


def test_the_queries_take_a_twentieth_of_the_time_at_most(sqlite: DatabaseForTest, monkeypatch: pytest.MonkeyPatch) -> None:
    people(sqlite)
    monkeypatch.setattr(watch_module, "_REST", 20)
    looks: list[float] = []
    with watched(sqlite, **NUMBERED) as watch:

        def look() -> None:
            time.sleep(0.05)
            looks.append(time.monotonic())

        monkeypatch.setattr(watch, "_look", look)
        until = time.monotonic() + 0.9
        while time.monotonic() < until:
            watch.mark()
    assert len(looks) == 1
