"""A task that waits for its system says so in its status, and no longer once the system answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from cdc.configs import JSON, mariadb_config, postgres_config
from sluiceway.stack.ports import free_port
from support.database import DatabaseForTest
from support.engine import RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.postgres import PostgresServer

pytestmark = pytest.mark.kafka

JDBC = {"mode": "incrementing", "incrementing.column.name": "id", "connection.attempts": "2", "connection.backoff.ms": "300"}


def jdbc_source(database: DatabaseForTest, name: str) -> dict[str, str]:
    tables = {"topic.prefix": f"{name}-", "tables": json.dumps(['"public"."t"']), "poll.interval.ms": "20"}
    return {"name": name, "connector.class": "JdbcSource", "tasks.max": "1", **database.config, **JDBC, **tables, **JSON}


def jdbc_sink(database: DatabaseForTest, name: str) -> dict[str, str]:
    keys = {
        "topics": name,
        "auto.create": "true",
        "retry.backoff.ms": "300",
        "max.retries": "1000",
        "value.converter.schemas.enable": "true",
    }
    return {"name": name, "connector.class": "JdbcSink", "tasks.max": "1", **database.config, **JSON, **keys}


def waiting(task: RunningTask) -> bool:
    trace = task.reports.trace
    return trace is not None and trace.startswith("Waiting since ") and ", next try within 10 s. " in trace


def test_a_stopped_postgresql_is_in_the_status_until_it_answers_again(
    kafka: Kafka, unique: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    worker = {"bootstrap.servers": kafka.bootstrap, "offset.flush.interval.ms": "3600000", **JSON}
    with PostgresServer() as server, ExitStack() as stack:
        server.execute("create table t (id int primary key)")
        name = unique("waits")
        server.execute(f'create table "{name}-sink" (id int)')
        for topic in (f"{name}-cdc.public.t", f"{name}-jdbc-t", f"{name}-sink"):
            kafka.create(topic)
        configs = [
            postgres_config(server.first, f"{name}-cdc", table_include_list="public.t"),
            jdbc_source(server.first, f"{name}-jdbc"),
            jdbc_sink(server.first, f"{name}-sink"),
        ]
        tasks = [stack.enter_context(RunningTask(config, worker)) for config in configs]
        record = '{"schema": {"type": "struct", "fields": [{"type": "int32", "field": "id"}]}, "payload": {"id": 1}}'
        kafka.produce(f"{name}-sink", record)
        server.execute("insert into t values (1)")
        eventually(lambda: kafka.end(f"{name}-cdc.public.t") == kafka.end(f"{name}-jdbc-t") == 1)
        eventually(lambda: server.execute(f'select count(*) from "{name}-sink"') == [(1,)])  # noqa: S608 (ours)
        assert [task.reports.trace for task in tasks] == [None] * 3
        server.shut_down()
        kafka.produce(f"{name}-sink", record.replace("1}}", "2}}"))
        eventually(lambda: all(map(waiting, tasks)), what="three tasks that wait")
        # A server ends once its log is stored as read. That neither waits for the next regular commit nor ends by a time limit.
        assert "has sent nothing" not in caplog.text
        server.run()
        eventually(lambda: [task.reports.trace for task in tasks] == [None] * 3, what="three tasks that wait no longer")
        eventually(lambda: server.execute(f'select count(*) from "{name}-sink"') == [(2,)])  # noqa: S608 (ours)


@pytest.mark.parametrize("connector", ["mariadb", "postgresql", "jdbc", "file"])
def test_a_system_that_was_never_there_is_in_the_status(
    connector: str, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path, postgresql: DatabaseForTest
) -> None:
    name = unique("waits")
    port = free_port("127.0.0.1")
    url = f"jdbc:postgresql://127.0.0.1:{port}/none"
    away = dataclasses.replace(postgresql, jdbc_url=url, port=port)
    config = {
        "mariadb": lambda: mariadb_config(away, name, kafka.bootstrap),
        "postgresql": lambda: postgres_config(away, name),
        "jdbc": lambda: jdbc_source(away, name),
        "file": lambda: {
            "name": name,
            "connector.class": "FileStreamSource",
            "file": str(tmp_path / "none"),
            "topic": name,
            **JSON,
        },
    }[connector]()
    with RunningTask(config, {"bootstrap.servers": kafka.bootstrap, **JSON}) as task:
        eventually(lambda: waiting(task), what=f"a {connector} task that waits")
