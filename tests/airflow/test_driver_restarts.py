"""A driver that is killed again and again on a real Airflow: its own task starts it, and no retry of the run is used up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.eventually import eventually
from support.stack import RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]

NAME = "restarted"


@pytest.fixture
def running(stack: RunningStack, folder: Path) -> Iterator[RunningStack]:
    (folder / "restarted.txt").touch()
    stack.connect.create(NAME, {"connector.class": "FileStreamSource", "file": str(folder / "restarted.txt"), "topic": NAME})
    try:
        stack.await_states(NAME, "RUNNING", "RUNNING")
        yield stack
    finally:
        if stack.states(NAME):
            stack.connect.delete(NAME)
        eventually(lambda: stack.newest_run(NAME)["state"] == "success", what="the end of the run")


def task(stack: RunningStack) -> dict[str, Any]:
    run = stack.newest_run(NAME)["dag_run_id"]
    found = stack.airflow.get(f"/dags/{NAME}/dagRuns/{run}/taskInstances/run").json()
    return {key: found[key] for key in ("dag_run_id", "state", "try_number")}


def kill_driver(stack: RunningStack) -> str:
    """Kill the driver's JVM with SIGKILL; return the trace that its connector then has."""
    jvm = stack.jvm(NAME)
    assert jvm is not None
    jvm.kill()
    return eventually(lambda: stack.connect.status(NAME)["connector"].get("trace"), what="the trace of the restart")


def test_drivers_killed_in_a_row_are_started_again_by_the_same_try(running: RunningStack) -> None:
    before = task(running)
    for number in range(1, 5):
        worker = running.worker_id(NAME)
        killed = time.monotonic()
        trace = kill_driver(running)
        assert f"starts it again in {2 ** (number - 1)} s (restart {number} " in trace
        eventually(lambda worker=worker: running.worker_id(NAME) != worker, what="another driver")
        running.await_states(NAME, "RUNNING", "RUNNING")
        print(f"restart {number}: RUNNING after {time.monotonic() - killed:.1f} s")
    assert task(running) == before
    assert before["try_number"] == 1
    assert "trace" not in running.connect.status(NAME)["connector"]


def test_a_request_to_restart_a_connector_ends_its_back_off(running: RunningStack) -> None:
    for number in range(1, 5):
        trace = kill_driver(running)
        assert f"(restart {number} " in trace
        asked = time.monotonic()
        running.connect.restart(NAME)
        running.await_states(NAME, "RUNNING", "RUNNING")
        print(f"restart {number}: RUNNING {time.monotonic() - asked:.1f} s after the request")


def test_a_connector_deleted_during_the_back_off_ends_its_run(running: RunningStack) -> None:
    for _ in range(3):
        kill_driver(running)
        running.await_states(NAME, "RUNNING", "RUNNING")
    kill_driver(running)
    running.connect.delete(NAME)
    eventually(lambda: task(running)["state"] == "success", what="the end of the task")
    eventually(lambda: running.newest_run(NAME)["state"] == "success", what="the end of the run")
