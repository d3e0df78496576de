# ruff: noqa: S608 (of a database of our own)
"""The JDBC source on real databases: no row is lost or repeated while tables change."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from sluiceway.api import Connector, SourceRecord
from sluiceway.connectors.jdbc.debezium.connector import DebeziumJdbcSinkConnector
from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector
from sluiceway.connectors.jdbc.source import task as source_task
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.errors import ConnectError
from sluiceway.installation import install_command
from sluiceway.testing import MemoryOffsets, run_source
from sluiceway.testing.running import RunningSource
from support.database import DatabaseForTest

STAMP = {"postgresql": "timestamp", "mysql": "datetime(6)", "sqlite": "timestamp"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time that polls wait, because these tests poll several tasks in turn."""
    monkeypatch.setattr(source_task, "_PATIENCE_SECONDS", 0.05)


def config_of(database: DatabaseForTest, mode: str, **more: str) -> dict[str, str]:
    keys = {name.replace("_", "."): value for name, value in more.items()}
    return {
        **database.config,
        "mode": mode,
        "topic.prefix": "t-",
        "poll.interval.ms": "20",
        "batch.max.rows": "3",
        "connection.attempts": "1",
        "connection.backoff.ms": "100",
        **keys,
    }


def people(database: DatabaseForTest, rows: int = 0) -> None:
    database.execute(
        f"create table people (id integer not null primary key, name varchar(20), changed {STAMP[database.dialect]} not null)"
    )
    for number in range(1, rows + 1):
        insert(database, number)


def insert(database: DatabaseForTest, number: int, changed: str | None = None) -> None:
    moment = changed or f"2024-01-01 10:00:{number % 60:02d}.000000"
    database.execute(f"insert into people (id, name, changed) values ({number}, 'n{number}', '{moment}')")


def ids(records: list[SourceRecord]) -> list[int]:
    return [record.value["id"] for record in records]


def until(source: RunningSource, enough: Callable[[list[SourceRecord]], bool]) -> list[SourceRecord]:
    records: list[SourceRecord] = []
    for _ in range(2000):
        records += source.poll()
        if enough(records):
            return records
    raise AssertionError(f"not enough: {[record.value for record in records]}")


def test_incrementing_rows_are_read_once_and_a_restart_continues(database: DatabaseForTest) -> None:
    people(database, 7)
    offsets = MemoryOffsets()
    config = config_of(database, "incrementing", incrementing_column_name="id")
    assert ids(run_source(JdbcSourceConnector, config, records=7, offsets=offsets)) == [1, 2, 3, 4, 5, 6, 7]
    insert(database, 9)
    [record] = run_source(JdbcSourceConnector, config, records=1, offsets=offsets)
    assert (record.value["id"], record.topic, record.source_offset) == (9, "t-people", {"incrementing": 9})
    expected = {"postgresql": f"{database.name}.public.people", "mysql": f"{database.name}.people", "sqlite": "people"}
    assert record.source_partition == {"protocol": "1", "table": expected[database.dialect]}


def test_rows_of_one_timestamp_are_neither_lost_nor_repeated_over_batches_and_restarts(database: DatabaseForTest) -> None:
    people(database)
    for number in range(1, 9):
        insert(database, number, "2024-01-01 10:00:00.250000")
    config = config_of(database, "timestamp+incrementing", timestamp_column_name="changed", incrementing_column_name="id")
    offsets, found = MemoryOffsets(), []
    for count in (1, 4, 3):
        found += ids(run_source(JdbcSourceConnector, config, records=count, offsets=offsets))
    assert found == [1, 2, 3, 4, 5, 6, 7, 8]


def test_rows_of_one_timestamp_are_not_lost_without_a_number(database: DatabaseForTest) -> None:
    people(database)
    for number in range(1, 9):
        insert(database, number, "2024-01-01 10:00:00.250000")
    insert(database, 9, "2024-01-01 10:00:01.500000")
    config = config_of(database, "timestamp", timestamp_column_name="changed")
    offsets = MemoryOffsets()
    first = run_source(JdbcSourceConnector, config, records=4, offsets=offsets)
    assert first[-1].source_offset is None
    again = ids(run_source(JdbcSourceConnector, config, records=9, offsets=offsets))
    assert again == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    insert(database, 10, "2024-01-01 10:00:02.000000")
    assert ids(run_source(JdbcSourceConnector, config, records=1, offsets=offsets)) == [10]


def test_a_changed_row_is_read_again(database: DatabaseForTest) -> None:
    people(database, 3)
    config = config_of(database, "timestamp", timestamp_column_name="changed")
    with RunningSource(JdbcSourceConnector, config) as source:
        assert ids(source.read(3, 10)) == [1, 2, 3]
        database.execute("update people set name = 'other', changed = '2024-01-01 11:00:00.000000' where id = 2")
        [record] = source.read(1, 10)
    assert dict(record.value)["name"] == "other"


def test_bulk_mode_reads_all_rows_again(database: DatabaseForTest) -> None:
    people(database, 4)
    with RunningSource(JdbcSourceConnector, config_of(database, "bulk")) as source:
        records = source.read(8, 10)
    assert ids(records)[:8] == [1, 2, 3, 4, 1, 2, 3, 4]
    assert records[0].source_offset is None


@pytest.mark.parametrize("mode", ["timestamp", "incrementing", "timestamp+incrementing"])
@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_a_row_that_is_committed_late_is_not_lost(name: str, mode: str, request: pytest.FixtureRequest) -> None:
    database: DatabaseForTest = request.getfixturevalue(name)
    now = "clock_timestamp()" if name == "postgresql" else "utc_timestamp(6)"
    moment = "timestamptz" if name == "postgresql" else "datetime(6)"
    database.execute(f"create table people (id integer not null primary key, changed {moment} not null)")
    more = {}
    if "timestamp" in mode:
        more["timestamp_column_name"] = "changed"
    if "incrementing" in mode:
        more["incrementing_column_name"] = "id"
    config = config_of(database, mode, sluiceway_horizon="required", **more)
    with closing(database.connect(autocommit=False)) as late, RunningSource(JdbcSourceConnector, config) as source:
        cursor = late.cursor()
        cursor.execute(f"insert into people values (1, {now})")
        database.execute(f"insert into people values (2, {now})")
        # MariaDB's times are read a second behind the clock anyway.
        patience = time.monotonic() + (1.5 if name == "mariadb" and "timestamp" in mode else 0.1)
        while time.monotonic() < patience:
            assert 2 not in ids(source.poll()), "read past an open transaction"
        late.commit()
        assert ids(until(source, lambda records: len(records) >= 2)) == [1, 2]


def test_a_read_only_transaction_holds_no_numbers_back(postgresql: DatabaseForTest) -> None:
    people(postgresql, 3)
    config = config_of(postgresql, "incrementing", incrementing_column_name="id")
    with closing(postgresql.connect(autocommit=False)) as reader:
        reader.execute("select * from people").fetchall()
        assert ids(run_source(JdbcSourceConnector, config, records=3)) == [1, 2, 3]


def test_without_the_privilege_to_see_transactions_a_required_horizon_fails_with_the_grant(postgresql: DatabaseForTest) -> None:
    people(postgresql, 1)
    role = f"reader_{postgresql.name}"
    postgresql.execute(f"create role {role} login password 'p'")
    postgresql.execute(f"grant select on people to {role}")
    config = {
        **config_of(postgresql, "incrementing", incrementing_column_name="id", sluiceway_horizon="required"),
        "connection.user": role,
        "connection.password": "p",
    }
    with pytest.raises(ConnectError, match="GRANT pg_read_all_stats"):
        run_source(JdbcSourceConnector, config, records=1)
    assert ids(run_source(JdbcSourceConnector, {**config, "sluiceway.horizon": "auto"}, records=1)) == [1]
    postgresql.execute(f"drop owned by {role}")
    postgresql.execute(f"drop role {role}")


def test_an_altered_table_gets_a_new_schema_while_running(database: DatabaseForTest) -> None:
    people(database, 2)
    config = config_of(database, "incrementing", incrementing_column_name="id")
    with RunningSource(JdbcSourceConnector, config) as source:
        source.read(2, 10)
        database.execute("alter table people add column mail varchar(20)")
        database.execute("insert into people (id, name, changed, mail) values (3, 'n3', '2024-01-01 10:00:00', 'a@b')")
        [record] = source.read(1, 10)
    assert record.value["mail"] == "a@b"
    assert record.value_schema is not None
    assert [field.name for field in record.value_schema.fields] == ["id", "name", "changed", "mail"]


def test_a_dropped_table_does_not_stop_the_others(database: DatabaseForTest) -> None:
    people(database, 2)
    database.execute("create table things (id integer not null primary key)")
    database.execute("insert into things values (1)")
    config = config_of(database, "incrementing", incrementing_column_name="id")
    with RunningSource(JdbcSourceConnector, config) as source:
        source.read(3, 10)
        database.execute("drop table people")
        database.execute("insert into things values (2)")
        [record] = source.read(1, 10)
        assert (record.topic, record.value["id"]) == ("t-things", 2)
        database.execute("insert into things values (3)")
        assert ids(source.read(1, 10)) == [3]


def test_a_table_that_is_dropped_and_created_again_is_read_again(
    database: DatabaseForTest, caplog: pytest.LogCaptureFixture
) -> None:
    people(database, 2)
    # So that the connector, which looks less often than its task, notices nothing.
    config = config_of(database, "incrementing", incrementing_column_name="id", table_poll_interval_ms="600")
    with caplog.at_level("INFO"), RunningSource(JdbcSourceConnector, config) as source:
        source.read(2, 10)
        database.execute("drop table people")
        while "people is gone" not in caplog.text:
            source.poll()
        people(database, 4)
        assert ids(source.read(2, 10)) == [3, 4]


def test_fifty_tables_are_assigned_to_tasks_and_a_new_one_reconfigures_one_task(postgresql: DatabaseForTest) -> None:
    for number in range(50):
        postgresql.execute(f"create table t{number:02d} (id int generated always as identity primary key, x int)")
        postgresql.execute(f"insert into t{number:02d} (x) values ({number})")
    config = config_of(postgresql, "incrementing", table_poll_interval_ms="50")
    with RunningSource(JdbcSourceConnector, config, tasks_max=4) as source:
        assert sorted(record.value["x"] for record in source.read(50, 30)) == list(range(50))
        before = source.connector.task_configs(4)
        postgresql.execute("create table t50 (id int generated always as identity primary key, x int)")
        context: Any = source.connector.context
        from support.eventually import eventually

        eventually(lambda: context.reconfigurations, what="a request for new task configs")
        after = source.connector.task_configs(4)
    assert len(before) == len(after) == 4
    assert sum(was != now for was, now in zip(before, after, strict=True)) == 1
    assert sum("t50" in config["tables"] for config in after) == 1


def test_a_query_becomes_a_subquery_with_conditions(database: DatabaseForTest) -> None:
    people(database, 5)
    query = "select p.id, p.name from people p where p.name <> 'n2' and p.name like 'n%'"
    config = config_of(database, "incrementing", incrementing_column_name="id", query=query)
    offsets = MemoryOffsets()
    records = run_source(JdbcSourceConnector, config, records=4, offsets=offsets)
    assert (ids(records), records[0].topic, records[0].source_partition) == ([1, 3, 4, 5], "t-", {"query": "query"})
    insert(database, 6)
    assert ids(run_source(JdbcSourceConnector, config, records=1, offsets=offsets)) == [6]


def test_deleted_rows_become_tombstones(database: DatabaseForTest) -> None:
    people(database, 4)
    config = config_of(database, "incrementing", incrementing_column_name="id", sluiceway_deletes_interval_ms="30")
    with RunningSource(JdbcSourceConnector, config) as source:
        records = source.read(4, 10)
        assert [record.key["id"] for record in records] == [1, 2, 3, 4]
        for _ in range(5):
            source.poll()
        database.execute("delete from people where id in (2, 3)")
        gone = source.read(2, 10)
        assert sorted((record.key["id"], record.value) for record in gone) == [(2, None), (3, None)]
        assert gone[0].source_offset == {"incrementing": 4}
        insert(database, 5)
        assert ids(source.read(1, 10)) == [5]


@pytest.mark.parametrize("mode", ["incrementing", "timestamp+incrementing", "timestamp", "bulk"])
def test_ranges_read_a_table_once_and_then_new_rows(postgresql: DatabaseForTest, mode: str) -> None:
    people(postgresql, 40)
    more = {"timestamp_column_name": "changed"} if "timestamp" in mode else {}
    config = config_of(postgresql, mode, sluiceway_snapshot_ranges="4", poll_interval_ms="30", **more)
    if "incrementing" in mode:
        config["incrementing.column.name"] = "id"
    offsets = MemoryOffsets()
    with RunningSource(JdbcSourceConnector, config, tasks_max=3, offsets=offsets) as source:
        first = source.read(13, 10)[:13]
        source.acknowledge(first)
    if mode == "bulk":
        with RunningSource(JdbcSourceConnector, config, tasks_max=3) as source:
            assert set(ids(source.read(60, 10))) == set(range(1, 41))
        return
    insert(postgresql, 41, "2024-01-02 10:00:00")
    with RunningSource(JdbcSourceConnector, config, tasks_max=3, offsets=offsets) as source:
        rest = until(source, lambda records: 41 in ids(records) and len(records) >= 28)
    assert sorted(ids(first) + ids(rest)) == list(range(1, 42))


def test_after_a_lost_connection_reading_continues_at_the_same_position(postgresql: DatabaseForTest) -> None:
    people(postgresql, 20)
    config = config_of(postgresql, "incrementing", incrementing_column_name="id")
    from sluiceway.errors import RetriableError

    with RunningSource(JdbcSourceConnector, config) as source:
        found = source.poll()
        postgresql.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sluiceway-jdbc-source'"
        )
        failures = 0
        for _ in range(200):
            try:
                found += source.poll()
            except RetriableError:
                failures += 1
            if len(found) >= 20:
                break
    assert (ids(found), failures) == (list(range(1, 21)), 1)


def test_missing_or_unusable_columns_are_named(database: DatabaseForTest) -> None:
    database.execute("create table people (id integer, name varchar(10))")
    for more, message in (
        ({"incrementing_column_name": "id"}, "column id of table .*people may be null.*validate.non.null"),
        ({"incrementing_column_name": "number"}, "no column number in table .*people; it has id, name"),
        ({"incrementing_column_name": "name", "validate_non_null": "false"}, "needs whole numbers"),
        ({}, "people has no auto-increment column"),
    ):
        with pytest.raises(ConnectError, match=message):
            run_source(JdbcSourceConnector, config_of(database, "incrementing", **more), records=1)


def test_validation_recommends_tables_and_checks_columns(database: DatabaseForTest) -> None:
    database.execute("create table people (id integer, name varchar(10))")
    found = JdbcSourceConnector.validate(config_of(database, "incrementing", incrementing_column_name="id"))
    [table] = found["table.whitelist"].recommended_values
    assert str(table).endswith("people")
    assert "may be null" in found["incrementing.column.name"].errors[0]
    found = JdbcSourceConnector.validate(config_of(database, "bulk", query="select nothing from nowhere"))
    assert "cannot be read" in found["query"].errors[0]


@pytest.mark.parametrize(
    ("more", "key", "message"),
    [
        ({"incrementing_column_name": "name", "validate_non_null": "false"}, "incrementing.column.name", "needs whole numbers"),
        ({"timestamp_column_name": "name", "validate_non_null": "false"}, "timestamp.column.name", "needs timestamps"),
        ({"timestamp_column_name": "later"}, "timestamp.column.name", "no column later in table"),
    ],
)
def test_validation_finds_unusable_columns(database: DatabaseForTest, more: dict[str, str], key: str, message: str) -> None:
    database.execute("create table people (id integer not null, name varchar(10))")
    mode = "incrementing" if "incrementing_column_name" in more else "timestamp"
    found = JdbcSourceConnector.validate(config_of(database, mode, **more))
    assert message in found[key].errors[0]


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
@pytest.mark.parametrize("connector", [JdbcSourceConnector, JdbcSinkConnector, DebeziumJdbcSinkConnector])
def test_validation_reports_a_refused_login_at_url_user_and_password(
    request: pytest.FixtureRequest, name: str, connector: type[Connector]
) -> None:
    database: DatabaseForTest = request.getfixturevalue(name)
    user = "connection.username" if connector is DebeziumJdbcSinkConnector else "connection.user"
    config = {**config_of(database, "bulk"), user: database.config["connection.user"], "name": "x", "topics": "t"}
    assert not [each.errors for each in connector.validate(config).values() if each.errors]
    found = connector.validate({**config, "connection.password": "wrong-one"})
    assert all("refuses" in found[key].errors[0] for key in ("connection.url", user, "connection.password"))
    assert "wrong-one" not in repr(found)


@pytest.mark.parametrize(("connector", "errors"), [(JdbcSourceConnector, 1), (JdbcSinkConnector, 0)])
def test_an_unreachable_database_fails_the_validation_of_sources_only(connector: type[Connector], errors: int) -> None:
    url = "jdbc:postgresql://127.0.0.1:1/db"
    config = {"name": "x", "topics": "t", "connection.url": url, "mode": "bulk", "topic.prefix": "t-"}
    assert len(connector.validate(config)["connection.url"].errors) == errors


def test_a_missing_driver_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymysql", None)
    config = {"connection.url": "jdbc:mysql://127.0.0.1:1/db", "mode": "bulk", "topic.prefix": "t-"}
    [error] = JdbcSourceConnector.validate(config)["connection.url"].errors
    assert install_command("jdbc") in error
    assert "pymysql" in error
