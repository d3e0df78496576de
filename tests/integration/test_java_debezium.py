"""Debezium's PostgreSQL connector, the published Java plugin, on a real PostgreSQL: snapshot, stream, restarts, kills."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sluiceway import discovery
from sluiceway.herder.plugin_path import use_plugin_path
from support.database import HOST, DatabaseForTest
from support.engine import Offsets, RunningTask
from support.eventually import eventually
from support.exactly_once import exactly_once_worker, opened_stores
from support.java_plugins import DEBEZIUM_POSTGRES, fetch_runtime, first_task_config, java_processes, plugin_folder
from support.kafka import Kafka
from support.transactions import seen

pytestmark = [pytest.mark.kafka, pytest.mark.long]

_JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    plugin_folder(folder, "debezium-postgres", DEBEZIUM_POSTGRES)
    use_plugin_path({"plugin.path": str(folder)})
    yield folder
    discovery.use_finder(None)


@pytest.fixture
def slot(postgresql: DatabaseForTest, name: str) -> Iterator[str]:
    slot = name.replace("-", "_")
    yield slot
    postgresql.execute(
        "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s and not active", slot
    )


@pytest.fixture
def config(plugin_path: Path, postgresql: DatabaseForTest, name: str, slot: str) -> dict[str, str]:
    postgresql.execute("create table people (id int primary key, name text)")
    postgresql.execute("insert into people select n, 'name ' || n from generate_series(1, 500) n")
    config = {
        "name": name,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": HOST,
        "database.port": str(postgresql.port),
        "database.user": postgresql.user,
        "database.password": postgresql.password,
        "database.dbname": postgresql.name,
        "topic.prefix": name,
        "plugin.name": "pgoutput",
        "slot.name": slot,
        "publication.autocreate.mode": "filtered",
        "publication.name": slot,
        "table.include.list": "public.people",
        "poll.interval.ms": "50",
    }
    for part in ("key", "value"):
        config |= {f"{part}.converter": _JSON, f"{part}.converter.schemas.enable": "false"}
    return first_task_config(config)


def changes(kafka: Kafka, topic: str) -> list[tuple[str, int]]:
    """Return the operation and the row's id of each record; "t" for a tombstone."""
    found = []
    for message in seen(kafka.bootstrap, topic):
        value = message.value()
        row = json.loads(message.key() or b"")
        found.append((json.loads(value)["op"] if value else "t", row["id"]))
    return found


def test_snapshot_and_stream_arrive_the_slot_advances_and_a_restart_continues(
    config: dict[str, str], kafka: Kafka, name: str, slot: str, postgresql: DatabaseForTest
) -> None:
    topic = kafka.create(f"{name}.public.people")
    offsets, worker = Offsets(), kafka.worker(offset_flush_interval_ms="300")

    def flushed() -> object:
        return postgresql.execute("select confirmed_flush_lsn from pg_replication_slots where slot_name = %s", slot)[0][0]

    with RunningTask(config, worker, offsets=offsets) as task:
        eventually(lambda: changes(kafka, topic) == [("r", n) for n in range(1, 501)], within=60)
        before = flushed()
        postgresql.execute("update people set name = 'new' where id <= 2")
        postgresql.execute("delete from people where id = 500")
        eventually(lambda: changes(kafka, topic)[500:] == [("u", 1), ("u", 2), ("d", 500), ("t", 500)], within=60)

        def advances() -> bool:
            postgresql.execute("update people set name = name || '.' where id = 1")
            return flushed() != before

        eventually(advances, within=60, what="confirmed_flush_lsn to advance")
        result = task.stop()
    assert not result.failed, result.trace
    postgresql.execute("insert into people values (1000, 'later')")
    with RunningTask(config, worker, offsets=offsets) as task:
        eventually(lambda: ("c", 1000) in changes(kafka, topic), within=60)
        assert not task.stop().failed
    operations = [operation for operation, _ in changes(kafka, topic)]
    assert operations.count("r") == 500, "the snapshot is not read again"
    assert java_processes() == []


def _run_until_killed(config: dict[str, str], worker: dict[str, str], plugin_path: str) -> None:
    use_plugin_path({"plugin.path": plugin_path})
    with opened_stores(worker) as stores, RunningTask(config, worker, store=stores({})) as task:
        task.join(within=600)


@pytest.mark.parametrize("victim", ["task", "java"])
def test_killed_exactly_once_tasks_write_each_change_once(
    config: dict[str, str],
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    name: str,
    plugin_path: Path,
    postgresql: DatabaseForTest,
    victim: str,
) -> None:
    worker, topic = exactly_once_worker(kafka_bootstrap, unique), f"{name}.public.people"
    config |= {"snapshot.mode": "no_data", "max.batch.size": "20"}
    spawn = multiprocessing.get_context("spawn")

    def written() -> list[int]:
        return [json.loads(message.key() or b"")["id"] for message in seen(kafka_bootstrap, topic) if message.value()]

    rows = 10_000
    for _ in range(3):
        process = spawn.Process(target=_run_until_killed, args=(config, worker, str(plugin_path)))
        process.start()
        eventually(lambda: postgresql.execute("select 1 from pg_replication_slots where active") != [], within=90)
        for _ in range(300):
            rows += 1
            postgresql.execute("insert into people values (%s, 'x')", rows)
        if victim == "java":
            [pid] = java_processes()
            os.kill(pid, signal.SIGKILL)
        else:
            process.kill()
        process.join(60)
        eventually(lambda: java_processes() == [], within=10)
        eventually(lambda: postgresql.execute("select 1 from pg_replication_slots where active") == [], within=30)
    with opened_stores(worker) as stores, RunningTask(config, worker, store=stores({})) as task:
        eventually(lambda: rows in written(), within=120)
        assert not task.stop().failed
    assert written() == list(range(10_001, rows + 1))
