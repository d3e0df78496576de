"""Two DAGs, and two runs of one DAG, with the same long-running connector on a real Airflow: one driver runs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.eventually import eventually
from support.kafka import Kafka
from support.stack import START, RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]

NAME = "wanted-twice"
FIRST, SECOND = "wants_it_first", "wants_it_too"
_DAG = """
from datetime import timedelta

from airflow.sdk import DAG
from sluiceway.operators import SourceConnectorOperator

with DAG({dag!r}, schedule=None, max_active_runs=2, is_paused_upon_creation=False):
    SourceConnectorOperator(task_id="load", config={config!r}, retries=3, retry_delay=timedelta(seconds=1))
"""


@pytest.fixture
def source(stack: RunningStack, folder: Path) -> Iterator[Path]:
    """The connector's file, after both DAGs have been written."""
    file = folder / "wanted-twice.txt"
    file.write_text("1\n")
    config = {"name": NAME, "connector.class": "FileStreamSource", "file": str(file), "topic": NAME}
    config["value.converter"] = "StringConverter"
    dags = [stack.home / "airflow" / "dags" / f"{dag}.py" for dag in (FIRST, SECOND)]
    for path in dags:
        path.write_text(_DAG.format(dag=path.stem, config=config))
    for path in dags:
        eventually(lambda path=path: stack.dag(path.stem), what=f"DAG {path.stem}")
    yield file
    for path in dags:
        path.unlink()
    if stack.states(NAME):
        stack.connect.delete(NAME)
    eventually(lambda: stack.driver(NAME) is None, what="the end of the driver")


def trigger(stack: RunningStack, dag: str) -> str:
    answer = stack.airflow.post(f"/dags/{dag}/dagRuns", json={"logical_date": None})
    answer.raise_for_status()
    return str(answer.json()["dag_run_id"])


def task(stack: RunningStack, dag: str, run: str) -> dict[str, Any]:
    found = stack.airflow.get(f"/dags/{dag}/dagRuns/{run}/taskInstances/load").json()
    return {key: found[key] for key in ("state", "try_number")}


def logged(stack: RunningStack, dag: str, run: str) -> str:
    log = stack.home / "airflow" / "logs" / f"dag_id={dag}" / f"run_id={run}" / "task_id=load" / "attempt=1.log"
    return "\n".join(str(json.loads(line)) for line in log.read_text().splitlines())


def test_a_connector_that_runs_is_taken_neither_by_another_dag_nor_by_another_run(stack: RunningStack, source: Path) -> None:
    run = trigger(stack, FIRST)
    stack.await_states(NAME, "RUNNING", "RUNNING", within=START)
    worker = stack.worker_id(NAME)

    other = trigger(stack, SECOND)
    failed = {"state": "failed", "try_number": 1}
    eventually(lambda: task(stack, SECOND, other) == failed, what="the failure of the other DAG's task, without a retry")
    assert f"Connector {NAME}: DAG {FIRST}, run {run}, task load runs it, and its driver lives" in logged(stack, SECOND, other)

    later = trigger(stack, FIRST)
    eventually(lambda: task(stack, FIRST, later)["state"] == "deferred", what="the later run's wait in the triggerer")

    with source.open("a") as file:
        file.write("2\n")
    assert Kafka(stack.addresses.bootstrap).values(NAME, 2) == ["1", "2"]
    assert (stack.worker_id(NAME), task(stack, FIRST, run)) == (worker, {"state": "running", "try_number": 1})
    assert stack.connect.config(NAME)["airflow.dag"] == FIRST

    stack.airflow.patch(f"/dags/{FIRST}/dagRuns/{later}", json={"state": "failed"}).raise_for_status()
    stack.connect.delete(NAME)
    eventually(lambda: task(stack, FIRST, run)["state"] == "success", what="the end of the first run")
