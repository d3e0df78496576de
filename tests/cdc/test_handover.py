"""Connectors handed over in the middle of a load, between Debezium in real Kafka Connect and ours, both ways.

Both go on at the offsets of the other, in the same offsets topic. Nothing may be lost, and at most one commit interval repeated.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cdc.configs import JSON, mariadb_config, postgres_config
from sluiceway.config.worker import WorkerConfig
from sluiceway.storage.factory import open_source_offsets
from support import peer
from support.database import DatabaseForTest
from support.engine import RunningTask
from support.eventually import eventually
from support.faults.cdc_load import ROWS, Load, differences, fold
from support.faults.worker_group import Progress, read
from support.java_plugins import DEBEZIUM_MARIADB, DEBEZIUM_POSTGRES, fetch_runtime, plugin_folder
from support.kafka import Kafka, worker_for
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(3600)]

_ROUNDS = 2
_TRANSACTIONS = 150
_REPEATED = 1000  # of about 100 transactions of 4 changes a second: those of one commit interval, on a busy machine


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    plugin_folder(folder, "debezium-postgres", DEBEZIUM_POSTGRES)
    plugin_folder(folder, "debezium-mariadb", DEBEZIUM_MARIADB)
    return folder


@pytest.fixture
def worker(kafka_bootstrap: str, unique: Callable[[str], str]) -> WorkerConfig:
    return worker_for(kafka_bootstrap, unique, **JSON, **{"offset.flush.interval.ms": "1000"})


@pytest.fixture
def connect(worker: WorkerConfig, plugin_path: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a real Kafka Connect worker with Debezium, on the internal topics of ``worker``."""
    topics = (worker.config_topic, worker.offset_topic, worker.status_topic)
    extra = {"plugin.path": str(plugin_path), **JSON}
    with peer.PeerDistributed(str(worker.raw["bootstrap.servers"]), worker.group_id, tmp_path / "peer", topics, extra) as made:
        yield made.rest


def number_of(_key: bytes | None, value: bytes | None) -> int:
    return int(json.loads(value or b"")["after"]["n"])


def check(kafka: Kafka, worker: WorkerConfig, rest: str, database: DatabaseForTest, config: dict[str, str], schema: str) -> None:
    name = config["name"]
    marks, things = (kafka.create(f"{name}.{schema}.{table}") for table in ("marks", "things"))
    load = Load(database, random.Random(1), pause=0.02)  # noqa: S311 (test data)
    load.create()
    with ExitStack() as stack:
        progress = Progress(kafka.bootstrap, marks, number_of)
        stack.callback(progress.close)
        peer.put_config(rest, name, config)
        peer.wait_for_state(rest, name, "RUNNING")
        eventually(lambda: kafka.count(things) >= ROWS, what="the snapshot")  # later changes are in the log
        with load.running():
            for turn in range(_ROUNDS):
                if turn:
                    peer.change_state(rest, name, "resume")
                _wait(progress, rest, name)
                peer.change_state(rest, name, "stop")
                eventually(lambda: peer.get_status(rest, name)["connector"]["state"] == "STOPPED", what="STOPPED")
                print(f"Debezium stopped at transaction {progress.highest}", flush=True)
                store = open_source_offsets(worker, config)
                store.start()
                stack.callback(store.stop)
                with RunningTask(config, dict(worker.raw), store=store) as task:
                    last = turn == _ROUNDS - 1
                    progress.more(_TRANSACTIONS)
                    if last:
                        load.stop()
                        _wait_for_last(progress, database)
                    result = task.stop()
                    assert not result.failed, result.trace
                print(f"ours stopped at transaction {progress.highest}", flush=True)
        peer.delete_connector(rest, name)
    found = fold(
        (each.value for each in read(kafka.bootstrap, marks)), ((each.key, each.value) for each in read(kafka.bootstrap, things))
    )
    wrong = differences(found, load, database)
    seen = f"{len(found.marks)} transactions, {len(found.numbers)} changes, {load.statements} x DDL"
    print(f"{database.dialect}: {seen}, {found.duplicated} repeated", flush=True)
    assert wrong == []
    assert found.duplicated <= _REPEATED
    if not found.duplicated:
        assert found.disorder == []


def _wait(progress: Progress, rest: str, name: str) -> None:
    """Wait for further transactions; fail with the trace of a task that fails."""
    wanted = progress.highest + _TRANSACTIONS

    def arrived() -> bool:
        failed = [task for task in peer.get_status(rest, name)["tasks"] if task["state"] == "FAILED"]
        assert not failed, failed[0].get("trace")
        return progress.highest >= wanted

    eventually(arrived, what=f"transaction {wanted}")


def _wait_for_last(progress: Progress, database: DatabaseForTest) -> None:
    last = database.execute("select max(n) from marks")[0][0]
    eventually(lambda: progress.highest >= last, what=f"transaction {last}")


def test_postgresql(kafka: Kafka, worker: WorkerConfig, connect: str, unique: Callable[[str], str]) -> None:
    with PostgresServer() as server:
        config = postgres_config(server.first, unique("handpg"), table_include_list="public.marks,public.things")
        check(kafka, worker, connect, server.first, config, "public")


def test_mariadb(kafka: Kafka, worker: WorkerConfig, connect: str, unique: Callable[[str], str]) -> None:
    with MariaDbServer(binlog=True) as server:
        server.execute("create database shop")
        config = mariadb_config(
            server.database("shop"), unique("handmy"), kafka.bootstrap, table_include_list="shop.marks,shop.things"
        )
        check(kafka, worker, connect, server.database("shop"), config, "shop")
