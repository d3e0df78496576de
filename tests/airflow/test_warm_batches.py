"""Scheduled connectors that run in a shared application, on a real Airflow."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.eventually import eventually
from support.stack import RunningStack

pytestmark = pytest.mark.airflow

CAST = "org.apache.kafka.connect.transforms.Cast$Value"


def _run(stack: RunningStack, name: str, states: list[str]) -> None:
    stack.airflow.post(f"/dags/{name}/dagRuns", json={"logical_date": None}).raise_for_status()
    eventually(lambda: stack.task_states(name) == states, what=f"{states}, not {stack.task_states(name)}")


def _result(stack: RunningStack, name: str) -> dict[str, object]:
    run = stack.newest_run(name)["dag_run_id"]
    answer = stack.airflow.get(f"/dags/{name}/dagRuns/{run}/taskInstances/run/xcomEntries/return_value")
    result: dict[str, object] = answer.json()["value"]
    return result


@pytest.mark.long
def test_a_micro_batch_in_a_shared_application_moves_records_and_fails_with_its_trace(stack: RunningStack, folder: Path) -> None:
    source, copy = folder / "warm.txt", folder / "warm.copy"
    shared = {"airflow.mode": "micro-batch", "sluiceway.application": "warm", "airflow.retries": "0"}
    stack.connect.create("warm-in", {**shared, "connector.class": "FileStreamSource", "file": str(source), "topic": "warm"})
    stack.connect.create("warm-out", {**shared, "connector.class": "FileStreamSink", "file": str(copy), "topics": "warm"})
    for name in ("warm-in", "warm-out"):
        eventually(lambda name=name: stack.dag(name), what=f"DAG {name}")
    source.write_text("1a\n1b\n")
    for name in ("warm-in", "warm-out"):
        _run(stack, name, ["success"])
        assert _result(stack, name)["records"] == 2
        assert stack.driver(name) is None, "the application's driver runs it"
    assert copy.read_text() == source.read_text()
    stack.connect.patch_config("warm-in", {"transforms": "x", "transforms.x.type": CAST, "transforms.x.spec": "int8"})
    with source.open("a") as file:
        file.write("not a number\n")
    _run(stack, "warm-in", ["success", "failed"])
    log = next(stack.home.rglob(f"dag_id=warm-in/run_id={stack.newest_run('warm-in')['dag_run_id']}/**/*.log")).read_text()
    assert "its micro-batch in application warm failed" in log
    assert "DataException" in log or "DataError" in log
    for name in ("warm-in", "warm-out"):
        stack.connect.delete(name)
    eventually(lambda: stack.driver("warm") is None, what="the end of the application")
