"""A poll that waits ends with the records for which it was woken, else the runtime waits again before it asks for them.

``make test`` runs it with PostgreSQL, ``make test-cdc`` with both databases.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cdc.configs import mariadb_config, postgres_config
from sluiceway.api import SourceTask
from sluiceway.connectors.cdc.mysql.task import MariaDbSourceTask
from sluiceway.connectors.cdc.postgres.task import PostgresTask
from sluiceway.testing import MemorySourceContext
from support.capture import TaskRun
from support.database import DatabaseForTest
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer

_ROWS = 40
_RUNTIME_SECONDS = 0.2

Case = tuple[type[SourceTask], DatabaseForTest, dict[str, str]]


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=[pytest.mark.long, pytest.mark.kafka])])
def case(request: pytest.FixtureRequest, unique: Callable[[str], str]) -> Iterator[Case]:
    name = unique("wakes")
    if request.param == "postgresql":
        with PostgresServer() as server:
            server.execute("create database shop")
            server.execute("alter database shop set synchronous_commit = on")
            yield PostgresTask, server.database("shop"), postgres_config(server.database("shop"), name)
    else:
        with MariaDbServer(binlog=True) as server:
            server.execute("create database shop")
            bootstrap = request.getfixturevalue("kafka_bootstrap")
            yield MariaDbSourceTask, server.database("shop"), mariadb_config(server.database("shop"), name, bootstrap)


def test_a_woken_poll_returns_records(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are late if they are there after a wait of the runtime that nothing has ended."""
    task, database, config = case
    woken: list[bool] = []

    def wait(context: Any, seconds: float) -> None:
        woken.append(context._woken.wait(seconds))
        context._woken.clear()

    monkeypatch.setattr(MemorySourceContext, "wait", wait)  # which does not wait that long
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (0)")
    with TaskRun(task, {**config, "poll.interval.ms": "500"}) as run:
        run.take(1)
        wanted = threading.Semaphore(0)

        def write() -> None:
            with database.connect() as connection, connection.cursor() as cursor:
                for number in range(1, _ROWS + 1):
                    wanted.acquire()
                    cursor.execute(f"insert into t values ({number})")  # noqa: S608

        writer = threading.Thread(target=write)
        writer.start()
        late = 0
        for _ in range(_ROWS):
            wanted.release()
            waits, missed = len(woken), False
            while not run.poll():
                run.wait(_RUNTIME_SECONDS)
                waits, missed = len(woken), not woken[-1]
            late += missed and len(woken) == waits
        writer.join()
    assert late < _ROWS // 4
