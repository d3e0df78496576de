"""The JDBC source with a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.runtime.task import TaskResult
from sluiceway.testing import MemoryConnectorContext
from sluiceway.worker.executor import TaskAssignment, Work
from sluiceway.worker.task_launcher import ThreadLauncher
from support.database import DatabaseForTest
from support.driver_bench import open_bench
from support.engine import Offsets, RunningTask
from support.eventually import eventually
from support.kafka import Kafka

pytestmark = pytest.mark.kafka


def test_a_run_in_micro_batch_mode_reads_all_tables_however_many_are_empty(
    postgresql: DatabaseForTest, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    for number in range(12):
        postgresql.execute(f"create table t{number:02d} (id int generated always as identity primary key, x int)")
    for number, rows in ((5, 250), (11, 2250)):
        postgresql.execute(f"insert into t{number:02d} (x) select generate_series(1, {rows})")
    prefix = unique("jdbc") + "-"
    converter = "org.apache.kafka.connect.json.JsonConverter"
    config = {
        "name": prefix,
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        **postgresql.config,
        "tasks.max": "1",
        "mode": "incrementing",
        "batch.max.rows": "2000",  # the first batch of the large table is columns
        "topic.prefix": prefix,
        "key.converter": converter,
        "value.converter": converter,
        "transforms": "origin",
        "transforms.origin.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.origin.static.field": "origin",
        "transforms.origin.static.value": "db",
    }
    connector = JdbcSourceConnector()
    connector.initialize(MemoryConnectorContext())
    connector.start(config)
    [task_config] = connector.task_configs(1)
    connector.stop()
    offsets = Offsets()
    for expected in (2500, 0, 1):
        with RunningTask(
            {**config, **task_config}, {"bootstrap.servers": kafka_bootstrap}, offsets=offsets, bounded=True
        ) as task:
            result = task.join()
        assert (result.trace, result.records) == (None, expected)
        if not expected:
            postgresql.execute("insert into t11 (x) values (0)")
    kafka = Kafka(kafka_bootstrap)
    assert kafka.end(f"{prefix}t05") == 250
    found = [json.loads(value)["payload"] for value in kafka.values(f"{prefix}t11", 2251)]
    assert found == [{"id": n, "x": n % 2251, "origin": "db"} for n in range(1, 2252)]


class Placings(ThreadLauncher):
    """Records which tasks were started, and with which tables."""

    def __init__(self) -> None:
        self.tables: list[tuple[int, list[str]]] = []

    def launch(self, work: Work) -> Future[TaskResult]:
        assert isinstance(work, TaskAssignment)
        tables = json.loads(work.spec.config["tables"])
        self.tables.append((work.id.task, [table.rpartition(".")[2].strip('"') for table in tables]))
        return super().launch(work)


def test_new_altered_and_dropped_tables_reconfigure_their_own_task_only(
    postgresql: DatabaseForTest, kafka_bootstrap: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    kafka, prefix, placings = Kafka(kafka_bootstrap), unique("db") + "-", Placings()

    def create(table: str) -> None:
        postgresql.execute(f"create table {table} (id int generated always as identity primary key, x int)")
        add(table)

    def add(table: str, columns: str = "x") -> None:
        postgresql.execute(f"insert into {table} ({columns}) select {', '.join(['1'] * len(columns.split(',')))}")

    def rows(table: str, count: int) -> list[object]:
        topic = f"{prefix}{table}"
        eventually(
            lambda: topic in kafka.admin.list_topics(timeout=10).topics and kafka.end(topic) >= count, what=f"{count} of {table}"
        )
        return [json.loads(value) for value in kafka.values(topic, count)]

    for table in ("a", "b", "c"):
        create(table)
    config = {
        "connector.class": "JdbcSource",
        **postgresql.config,
        "tasks.max": "2",
        "mode": "incrementing",
        "topic.prefix": prefix,
        "poll.interval.ms": "50",
        "table.poll.interval.ms": "200",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    with open_bench(kafka_bootstrap, unique("jdbc"), tmp_path) as bench:
        bench.herder.create(prefix, config)
        bench.driver(prefix, "one:1", placings)
        for table in ("a", "b", "c"):
            rows(table, 1)
        expected = [(0, ["a", "c"]), (1, ["b"])]
        assert sorted(placings.tables) == expected
        create("d")
        assert rows("d", 1) == [{"id": 1, "x": 1}]
        expected.append((1, ["b", "d"]))
        assert placings.tables[2:] == expected[2:]
        postgresql.execute("alter table a add column y int")
        add("a", "x, y")
        assert rows("a", 2) == [{"id": 1, "x": 1}, {"id": 2, "x": 1, "y": 1}]
        postgresql.execute("drop table b")
        expected.append((1, ["d"]))
        eventually(lambda: len(placings.tables) == len(expected), what="the task without the table that is gone")
        for table in ("c", "d"):
            add(table)
            rows(table, 2)
        assert placings.tables[2:] == expected[2:]
        eventually(lambda: bench.states(prefix) == ("RUNNING", ["RUNNING"] * 2), what="both tasks RUNNING")
