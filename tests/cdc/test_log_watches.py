"""The watches of databases' logs: a commit moves them, and neither an idle server nor a run of the connector does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from cdc.captured import Captured
from cdc.configs import JSON
from sluiceway.api import SourceConnector, SourceWatch
from sluiceway.connectors.cdc.mysql.connector import MariaDbConnector, MySqlConnector
from sluiceway.connectors.cdc.mysql.task import MariaDbSourceTask, MySqlSourceTask
from sluiceway.connectors.cdc.postgres.connector import PostgresConnector
from sluiceway.connectors.cdc.postgres.task import PostgresTask
from sluiceway.errors import ConnectError, RetriableError
from support.engine import Offsets, RunningTask
from support.kafka import Kafka

KINDS: dict[type, type[SourceConnector]] = {
    PostgresTask: PostgresConnector,
    MariaDbSourceTask: MariaDbConnector,
    MySqlSourceTask: MySqlConnector,
}


@pytest.fixture(
    params=[
        "postgres",
        pytest.param("mariadb_source", marks=[pytest.mark.long, pytest.mark.kafka]),
        pytest.param("mysql_source", marks=[pytest.mark.long, pytest.mark.kafka]),
    ]
)
def source(request: pytest.FixtureRequest) -> Captured:
    found: Captured = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def watch(source: Captured) -> Iterator[SourceWatch]:
    source.execute("create table t (id int primary key, v int)")
    with closing(KINDS[source.task].watch(source.config)) as made:
        yield made


def test_each_commit_moves_the_mark_and_a_query_does_not(source: Captured, watch: SourceWatch) -> None:
    source.execute("insert into t values (1, 0)")
    seen = watch.mark()
    source.execute("select * from t")
    assert watch.mark() == seen, "a query"
    marks = [seen]
    for statement in (
        "insert into t values (2, 0)",
        "update t set v = 1",
        "delete from t",
        "create table u (id int primary key)",
    ):
        source.execute(statement)
        marks.append(watch.mark())
    assert len(set(marks)) == len(marks), marks


def test_a_transaction_counts_when_it_is_committed(source: Captured, watch: SourceWatch) -> None:
    with closing(source.database.connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("begin")
        cursor.execute("insert into t values (1, 0)")
        source.execute("insert into t values (2, 0)")
        seen = watch.mark()
        assert watch.mark() == seen
        cursor.execute("commit")
        assert watch.mark() != seen, "also one that is older than another"


@pytest.mark.long
@pytest.mark.kafka
def test_a_run_starts_no_other_one(source: Captured, watch: SourceWatch, kafka: Kafka, unique: Callable[[str], str]) -> None:
    name, offsets = unique("watched"), Offsets()
    config = {
        **source.config,
        "name": name,
        "connector.class": str(KINDS[source.task].java_class),
        "airflow.mode": "micro-batch",
        "topic.prefix": name,
        "heartbeat.interval.ms": "100",
    }
    worker = {"bootstrap.servers": kafka.bootstrap, **JSON}
    topic = kafka.create(f"{name}.{source.schema}.t")

    def run() -> None:
        with RunningTask(config, worker, offsets=offsets, bounded=True) as task:
            task.join()

    source.execute("insert into t values (1, 0)")
    run()  # creates a slot and a publication
    for number in range(2, 5):
        source.execute(f"insert into t values ({number}, 0)")  # noqa: S608 (a number)
        before = watch.mark()
        run()
        assert kafka.count(topic) == number
        assert watch.mark() == before
    if source.is_postgres:
        source.execute("checkpoint")
    time.sleep(2)
    assert watch.mark() == before, "an idle server"


def test_a_server_that_refuses_the_login_or_is_away_is_an_error_without_the_password(source: Captured) -> None:
    for changes, error in (({"database.password": "wr0ng-one"}, ConnectError), ({"database.port": "1"}, RetriableError)):
        if source.is_postgres and "database.password" in changes:
            changes = {"database.user": "nobody-here"}  # the test server trusts everybody whom it knows
        with closing(KINDS[source.task].watch({**source.config, **changes})) as watch, pytest.raises(error) as raised:
            watch.mark()
        assert type(raised.value) is error
        assert "wr0ng-one" not in str(raised.value)


def test_a_lost_connection_is_opened_again(source: Captured, watch: SourceWatch) -> None:
    seen = watch.mark()
    if source.is_postgres:
        source.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
    else:
        own = [row[0] for row in source.database.execute("select id from information_schema.processlist")]
        for number in own:
            try:
                source.database.execute(f"kill {number}")
            except Exception:  # noqa: BLE001, S112 (the one that asks)
                continue
    with pytest.raises(RetriableError):
        watch.mark()
    assert watch.mark() == seen
