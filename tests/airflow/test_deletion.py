"""Deleting a connector ends its DAG's run on a real Airflow, whatever its task waits for; the next one has a run of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.eventually import eventually
from support.stack import RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]


@pytest.fixture
def config(stack: RunningStack, folder: Path) -> Iterator[dict[str, str]]:
    (folder / "deleted.txt").touch()
    yield {"connector.class": "FileStreamSource", "file": str(folder / "deleted.txt"), "topic": "deleted"}
    if stack.states("deleted"):
        stack.connect.delete("deleted")


def run_of(stack: RunningStack, dag: str) -> dict[str, Any]:
    """Return the DAG's newest run, with its task's state and try number."""
    run = dict(stack.newest_run(dag))
    tasks = stack.airflow.get(f"/dags/{dag}/dagRuns/{run['dag_run_id']}/taskInstances").json()["task_instances"]
    return {"id": run["dag_run_id"], "state": run["state"], "task": tasks[0]["state"], "try": tasks[0]["try_number"]}


def delete_and_create_again(stack: RunningStack, dag: str, config: dict[str, str]) -> None:
    """Delete the connector, await the end of its DAG's run, create it again, and check that a new run starts at once."""
    before = run_of(stack, dag)
    stack.connect.delete("deleted")
    eventually(lambda: run_of(stack, dag)["state"] == "success", what=f"the end of the run, is {run_of(stack, dag)}")
    assert run_of(stack, dag)["task"] == "success"
    eventually(lambda: (stack.dag(dag) or {"is_stale": True})["is_stale"], what="no DAG")
    assert run_of(stack, dag)["state"] == "success", "Airflow created no other run meanwhile, or it has ended too"
    ended = run_of(stack, dag)["id"]
    created = time.monotonic()
    stack.connect.create("deleted", config)
    eventually(lambda: run_of(stack, dag)["id"] != ended, what="a new run")
    print(f"new run after {time.monotonic() - created:.1f} s")
    stack.await_states("deleted", "RUNNING", "RUNNING")
    after = run_of(stack, dag)
    print(f"{before} became {after}; RUNNING after {time.monotonic() - created:.1f} s")
    assert after["state"] == "running"
    assert after["try"] == 1


def test_a_running_connector(stack: RunningStack, config: dict[str, str]) -> None:
    stack.connect.create("deleted", config)
    stack.await_states("deleted", "RUNNING", "RUNNING")
    delete_and_create_again(stack, "deleted", config)


def test_a_paused_connector_whose_task_has_released_its_slot(stack: RunningStack, config: dict[str, str]) -> None:
    stack.connect.create("deleted", config)
    stack.await_states("deleted", "RUNNING", "RUNNING")
    stack.connect.pause("deleted")
    eventually(lambda: run_of(stack, "deleted")["task"] == "up_for_reschedule", what="the released slot")
    delete_and_create_again(stack, "deleted", config)


def test_a_connector_of_a_shared_application_whose_task_is_deferred(stack: RunningStack, config: dict[str, str]) -> None:
    shared = {**config, "sluiceway.application": "deletions"}
    stack.connect.create("deleted", shared)
    stack.await_states("deleted", "RUNNING", "RUNNING")
    eventually(lambda: run_of(stack, "deleted")["task"] == "deferred", what="the deferred task")
    delete_and_create_again(stack, "deleted", shared)
    stack.connect.delete("deleted")
    application = "application_x7Edeletions"
    eventually(lambda: run_of(stack, application)["state"] == "success", what="the end of the application's run")
    for dag in ("deleted", application):
        assert set(stack.task_states(dag)) == {"success"}
