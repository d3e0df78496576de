"""Connectors whose log is gone: they fail at once and say what is missing; ``when_needed`` takes a new snapshot instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cdc.configs import JSON, mariadb_config, postgres_config
from sluiceway.storage.model import State
from support.database import DatabaseForTest
from support.engine import Offsets, RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer, drop_slots

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]


class Capture:
    """One connector's config, offsets and topic, and how to run its task."""

    def __init__(self, kafka: Kafka, database: DatabaseForTest, config: dict[str, str], schema: str) -> None:
        self.offsets = Offsets()
        self.config = config
        self._kafka = kafka
        self._database = database
        self._topic = f"{config['name']}.{schema}.t"
        self._rows = 0
        database.execute("create table t (id int primary key)")
        kafka.create(self._topic)

    def insert(self, rows: int = 1) -> None:
        for _ in range(rows):
            self._rows += 1
            self._database.execute(f"insert into t values ({self._rows})")  # noqa: S608

    def task(self, **config: str) -> RunningTask:
        worker = {"bootstrap.servers": self._kafka.bootstrap, **JSON, "offset.flush.interval.ms": "300"}
        changed = {**self.config, **{key.replace("_", "."): value for key, value in config.items()}}
        return RunningTask(changed, worker, offsets=self.offsets)

    def run(self, records: int, **config: str) -> None:
        """Run the task until the topic has so many records in all."""
        with self.task(**config) as task:
            eventually(lambda: self._kafka.count(self._topic) >= records or task.result, what=f"{records} records")
            assert not task.stop().failed, task.result

    def capture_some(self) -> None:
        """Capture one row by a snapshot, and one by the log."""
        self.insert()
        with self.task() as task:
            eventually(lambda: self._kafka.count(self._topic) == 1, what="the snapshot")
            self.insert()
            eventually(lambda: self._kafka.count(self._topic) == 2, what="the second row")
            assert not task.stop().failed

    def fails(self, *texts: str, **config: str) -> None:
        """Run the task, which must fail with an error that matches all of the texts."""
        with self.task(**config) as task:
            task.wait_for(State.FAILED)
        trace = (task.reports.trace or "").splitlines()[0]
        for text in (*texts, "no longer available on the server", "snapshot.mode=when_needed", "execute-snapshot"):
            assert re.search(text, trace), (text, trace)

    def repairs(self) -> None:
        """Run the task with ``when_needed``: a snapshot has all rows, and the log goes on."""
        self.run(2 + self._rows, snapshot_mode="when_needed")
        self.insert()
        self.run(2 + self._rows)
        found = [json.loads(message.value()) for message in self._kafka.read(self._topic, 2 + self._rows)]
        assert [event["op"] for event in found] == ["r", "c", *"r" * (self._rows - 1), "c"]
        assert [event["after"]["id"] for event in found[2:]] == list(range(1, self._rows + 1))


@pytest.fixture
def postgres(kafka: Kafka, unique: Callable[[str], str]) -> Iterator[tuple[PostgresServer, Capture]]:
    with PostgresServer() as server:
        made = Capture(kafka, server.first, postgres_config(server.first, unique("lost")), "public")
        made.capture_some()
        yield server, made


def test_a_dropped_slot(postgres: tuple[PostgresServer, Capture]) -> None:
    server, capture = postgres
    drop_slots(server.first)
    capture.insert(2)
    capture.fails("does not exist. Changes from .* to .* bytes of log. are missing")
    capture.repairs()


def test_a_slot_that_was_created_again(postgres: tuple[PostgresServer, Capture]) -> None:
    server, capture = postgres
    drop_slots(server.first)
    capture.insert(2)
    server.execute(f"select pg_create_logical_replication_slot('{capture.config['slot.name']}', 'pgoutput')")
    capture.fails("created again. Changes between them .* are missing")
    capture.repairs()


def test_a_slot_that_the_server_gave_up(postgres: tuple[PostgresServer, Capture]) -> None:
    server, capture = postgres
    for setting in ("max_slot_wal_keep_size = '1MB'", "max_wal_size = '32MB'", "min_wal_size = '32MB'"):
        server.execute(f"alter system set {setting}")
    server.execute("select pg_reload_conf()")
    capture.insert(2)
    for _ in range(8):
        server.execute("create table if not exists noise as select 1")
        server.execute("select pg_switch_wal()")
    server.execute("checkpoint")
    eventually(lambda: server.execute("select 1 from pg_replication_slots where wal_status = 'lost'"), what="a lost slot")
    capture.fails("given up the replication slot .*max_slot_wal_keep_size.*are missing")
    capture.repairs()


def test_a_postgresql_server_restored_from_a_backup(postgres: tuple[PostgresServer, Capture]) -> None:
    _, capture = postgres
    moved: dict[Any, Any] = {}
    for key, offset in capture.offsets.stored.items():
        assert offset is not None
        moved[key] = {
            name: value + (1 << 40) if name.startswith("lsn") and value > 1 else value for name, value in offset.items()
        }
    capture.offsets.stored = moved
    capture.fails("ahead of the end of the server's log.*restored from a backup")
    capture.repairs()


@pytest.fixture
def mariadb(kafka: Kafka, unique: Callable[[str], str]) -> Iterator[tuple[MariaDbServer, Capture]]:
    with MariaDbServer(binlog=True) as server:
        server.execute("create database lost")
        database = server.database("lost")
        made = Capture(kafka, database, mariadb_config(database, unique("lost"), kafka.bootstrap), "lost")
        made.capture_some()
        yield server, made


def test_a_purged_log(mariadb: tuple[MariaDbServer, Capture]) -> None:
    server, capture = mariadb
    server.execute("flush binary logs")
    capture.insert(2)
    server.execute("flush binary logs")
    current = server.execute("show master status")[0][0]

    def purged() -> bool:  # the server keeps a log as long as it sends it to a replica, such as the task that has just ended
        server.execute(f"purge binary logs to '{current}'")
        return len(server.execute("show binary logs")) == 1

    eventually(purged, what="the purge")
    capture.fails(r"purged its log before .*Transactions 0-\*-\d+ to 0-\*-\d+ are missing")
    capture.repairs()


def test_a_log_that_was_reset(mariadb: tuple[MariaDbServer, Capture]) -> None:
    server, capture = mariadb
    server.execute("reset master")
    capture.insert(2)
    capture.fails("before the stored offset .*log was reset")
    capture.repairs()
