"""Statements and logins that a server refuses end a task of change data capture: it does not try them again for ever."""

from __future__ import annotations

from functools import partial

import pytest

from cdc.captured import Captured
from sluiceway.connectors.cdc import missing_tables
from sluiceway.connectors.cdc.mysql.connector import MariaDbConnector
from sluiceway.connectors.cdc.mysql.task import MariaDbSourceTask
from sluiceway.connectors.cdc.postgres.connector import PostgresConnector
from sluiceway.errors import ConnectError, RetriableError, TemporaryProblem
from sluiceway.stack.ports import free_port
from support.capture import TaskRun
from support.database import HOST
from support.eventually import eventually

_REFUSED = {
    "unknown function": "select id, nosuch(v) as v from {t}",
    "unknown column": "select id, nosuch as v from {t}",
    "ambiguous column": "select id, v from {t} join {t} u on true",
    "several rows": "select id, (select v from {t}) as v from {t}",
    "syntax": "selec id, v from {t}",
    "missing table": "select id, v from {t}x",
}


def _failure(run: TaskRun) -> ConnectError | None:
    """Return the error of a poll that ends the task."""
    try:
        run.poll()
    except RetriableError:
        return None
    except ConnectError as error:
        return error
    return None


@pytest.mark.parametrize("statement", _REFUSED.values(), ids=_REFUSED)
def test_a_statement_that_the_server_refuses_ends_the_task(source: Captured, statement: str) -> None:
    source.fill("t", 3)
    table, key = f"{source.schema}.t", "snapshot.select.statement.overrides"
    config = {**source.config, key: table, f"{key}.{table}": statement.format(t=table)}
    with TaskRun(source.task, config) as run:
        assert eventually(lambda: _failure(run)) is not None


@pytest.mark.parametrize(
    ("change", "kind", "advice"),
    [
        ({"database.password": "wrong"}, str, "Check database.user"),
        ({"database.user": "nobody"}, str, "Check database.user"),
        ({"database.port": "1"}, TemporaryProblem, "Check database.hostname and database.port."),
    ],
    ids=str,
)
def test_validation_names_the_keys_of_a_failed_login(
    source: Captured, change: dict[str, str], kind: type[str], advice: str
) -> None:
    connector = PostgresConnector if source.is_postgres else MariaDbConnector
    values = connector.validate({**source.config, **change})
    (error,) = values["database.hostname"].errors
    assert (type(error), advice in error) == (kind, True), error


@pytest.mark.parametrize("change", [{"database.password": "wrong"}, {"database.user": "nobody"}], ids=str)
def test_a_login_that_the_server_refuses_ends_the_task(source: Captured, change: dict[str, str]) -> None:
    with TaskRun(source.task, {**source.config, **change}) as run:
        assert eventually(lambda: _failure(run)) is not None


@pytest.mark.long
@pytest.mark.kafka
def test_a_log_that_the_user_may_not_read_ends_the_task(mariadb_source: Captured) -> None:
    mariadb_source.fill("t", 1)
    database = mariadb_source.database
    database.execute("create user reader@'%' identified by 'secret'")
    database.execute("grant select, reload, binlog monitor, show databases, lock tables on *.* to reader@'%'")
    config = {**mariadb_source.config, "database.user": "reader", "database.password": "secret"}
    try:
        with TaskRun(MariaDbSourceTask, config) as run:
            error = eventually(lambda: _failure(run))
    finally:
        database.execute("drop user reader@'%'")
    assert "REPLICATION SLAVE" in str(error)


def test_a_server_that_cannot_be_reached_is_tried_again_and_shown(source: Captured) -> None:
    config = {**source.config, "database.port": str(free_port(HOST)), "retriable.restart.connector.wait.ms": "10"}

    def shown() -> bool:
        try:
            run.poll()
        except RetriableError:  # the runtime shows its text in the task's status
            return True
        return False

    with TaskRun(source.task, config) as run:
        assert eventually(shown)
        assert eventually(shown)


def _waits_with_an_offset(run: TaskRun) -> bool:
    return not run.poll() and bool(run.offset and run.waits_for)


def test_a_table_that_does_not_exist_is_shown_until_it_does_at_each_start(
    source: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing_tables, "_SECONDS", 0.1)
    source.fill("t", 3)
    config = {**source.config, "table.include.list": f"{source.schema}.t,{source.schema}.late"}
    offset = None
    for _ in range(2):  # the second start has an offset, and reads no tables for a snapshot
        with TaskRun(source.task, config, offset) as run:
            eventually(partial(_waits_with_an_offset, run), what="the wait, and an offset")
            assert f"no table fits {source.schema}.late. " in str(run.waits_for[-1])
            offset = run.offset
    with TaskRun(source.task, config, offset) as run:
        eventually(lambda: run.poll() or run.waits_for, what="the wait")
        source.fill("late", 1)
        eventually(lambda: run.poll() is not None and run.waits_for[-1] is None, what="the end of the wait")
