"""Connectors on YARN through Airflow's operators: micro-batches, deferred and durable tasks, a shipped Python environment."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.airflow_home import isolate_airflow
from support.clusters.airflow import AirflowOnYarn, airflow_on_yarn
from support.clusters.connector import on_cluster
from support.clusters.daemons import kill
from support.clusters.deployments import yarn
from support.clusters.hadoop import Yarn
from support.clusters.kills import Kill, airflow_task, kills_of
from support.clusters.scenario import Result, run
from support.eventually import eventually
from support.faults.cluster import Cluster

isolate_airflow()
pytestmark = [
    pytest.mark.clusters,
    pytest.mark.airflow,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(1800),
]

LINES = 1000


@pytest.fixture(scope="module")
def airflow(hadoop: Yarn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowOnYarn]:
    with airflow_on_yarn(hadoop, tmp_path_factory.mktemp("stack")) as made:
        yield made


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings for containers that run the Python of an archive which ``sluiceway package`` makes."""
    pytest.importorskip("venv_pack")
    archive = tmp_path_factory.mktemp("archive") / "environment.tar.gz"
    command = [sys.executable, "-m", "sluiceway.cli.main", "package", "--extra", "jdbc", "--output", str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    python = "./environment/bin/python"
    return {
        "spark.yarn.dist.archives": f"{archive}#environment",
        "spark.pyspark.python": python,
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": python,
    }


def verifiable(name: str, records: int = 500) -> dict[str, str]:
    return {
        "name": name,
        "connector.class": "VerifiableSource",
        "topic": name,
        "tasks.max": "2",
        "records.max": str(records),
        "complete.record.data": "true",
    }


@pytest.mark.parametrize("mode", ["client", "cluster", "deferrable"])
def test_a_micro_batch_moves_each_record_once(airflow: AirflowOnYarn, unique: Callable[[str], str], mode: str) -> None:
    name = unique(f"batch-{mode}").replace("-", "_")
    airflow.run(name, verifiable(name), mode="micro-batch", conn_id=airflow.connection(mode), deferrable=mode == "deferrable")
    values = airflow.values(name)
    assert sorted((each["task"], each["seqno"]) for each in values) == [(task, n) for task in (0, 1) for n in range(500)]


def test_a_durable_task_finds_its_driver_after_the_airflow_worker_was_killed(
    airflow: AirflowOnYarn, hadoop: Yarn, unique: Callable[[str], str]
) -> None:
    name = unique("durable").replace("-", "_")
    airflow.start(
        name,
        config={**verifiable(name, -1), "throughput": "50"},
        mode="long-running",
        conn_id=airflow.connection("cluster"),
        yarn_track_via_rm_api=True,
        durable=True,
    )
    stack = airflow.stack
    stack.await_states(name, "RUNNING", "RUNNING", "RUNNING", within=300)
    driver, application = stack.worker_id(name), hadoop.application(f"sluiceway-{name}")
    # Airflow's worker is the scheduler with its local executor, and the tasks' processes.
    scheduler = airflow.scheduler()
    kill(*scheduler.children(recursive=True), scheduler)
    stack.up()
    eventually(lambda: airflow.tries(name) >= 2, what="the task's next try")
    before = Cluster(stack.addresses.bootstrap).end(name)
    eventually(lambda: Cluster(stack.addresses.bootstrap).end(name) > before + 100, what="more records")
    assert (stack.worker_id(name), hadoop.application(f"sluiceway-{name}")) == (driver, application)
    assert len([each for each in hadoop.applications() if each["name"] == f"sluiceway-{name}"]) == 1
    stack.connect.pause(name)
    stack.await_states(name, "PAUSED", "PAUSED", "PAUSED")
    numbers = sorted((each["task"], each["seqno"]) for each in airflow.values(name))
    assert numbers == [(task, n) for task in (0, 1) for n in range(sum(1 for each in numbers if each[0] == task))]
    stack.set_paused(name, True)


def test_a_file_and_a_database_are_read_in_cluster_mode_with_a_shipped_environment(
    airflow: AirflowOnYarn, unique: Callable[[str], str], tmp_path: Path, environment: dict[str, str]
) -> None:
    file, topic = tmp_path / "lines.txt", unique("lines").replace("-", "_")
    file.write_text("".join(f"line {n}\n" for n in range(LINES)))
    config = {"name": topic, "connector.class": "FileStreamSource", "file": str(file), "topic": topic}
    airflow.run(topic, config, mode="micro-batch", conn_id=airflow.connection("cluster"), conf=environment)
    assert airflow.values(topic) == [f"line {n}" for n in range(LINES)]

    database, name = tmp_path / "rows.db", unique("jdbc").replace("-", "_")
    with sqlite3.connect(database) as connection:
        connection.execute("create table people (id integer primary key, name text)")
        connection.executemany("insert into people values (?, ?)", [(n, f"name {n}") for n in range(1, LINES + 1)])
    config = {
        "name": name,
        "connector.class": "JdbcSource",
        "connection.url": f"jdbc:sqlite:{database}",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": f"{name}-",
    }
    airflow.run(name, config, mode="micro-batch", conn_id=airflow.connection("cluster"), conf=environment)
    assert [(each["id"], each["name"]) for each in airflow.values(f"{name}-people")] == [
        (n, f"name {n}") for n in range(1, LINES + 1)
    ]


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_each_kill(
    airflow: AirflowOnYarn, hadoop: Yarn, unique: Callable[[str], str], tmp_path: Path, results: list[Result], mode: str
) -> None:
    name, mine = unique(f"kills_{mode}").replace("-", "_"), list[Result]()
    deployment = replace(yarn(hadoop, mode), name=f"Airflow, YARN {mode}")
    bootstrap = airflow.stack.addresses.bootstrap
    with on_cluster(deployment, bootstrap, tmp_path, name, exactly_once=True, submitter=airflow.submitter) as source:
        kills = [*kills_of(source), *([Kill("Airflow task", airflow_task)] if mode == "client" else [])]
        try:
            run(source, kills, mine)
        finally:
            results += mine
    assert [f"{each.kill}: {each.judge()}" for each in mine if each.judge()] == []
