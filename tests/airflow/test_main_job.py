"""The main job on a real Airflow: a file through Kafka to a file as two DAGs, paused from both sides, killed, deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sluiceway.rest.client import ConnectClient
from sluiceway.stack import demo
from sluiceway.stack.up import Addresses, down, ps, up

from support.driver import command_of
from support.eventually import eventually

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]


class Stack:
    """A running stack with the demo's two connectors, and what a person would look at."""

    def __init__(self, home: Path, addresses: Addresses) -> None:
        self.home = home
        self.connect = ConnectClient(addresses.rest)
        self.airflow = httpx.Client(base_url=f"{addresses.airflow}/api/v2", timeout=30)
        self.mounted = f"{addresses.airflow}/sluiceway"
        self.source, self.copy = home / "demo" / "access.log", home / "demo" / "copy.log"

    def append(self, line: str) -> None:
        with self.source.open("a") as file:
            file.write(f"{line}\n")

    def lines(self) -> list[str]:
        return self.copy.read_text().splitlines()

    def state(self, name: str) -> str:
        return str(self.connect.status(name)["connector"]["state"])

    def runs(self, name: str) -> bool:
        status = self.connect.status(name)
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])] == ["RUNNING", "RUNNING"]

    def is_paused(self, dag: str) -> bool:
        return bool(self.airflow.get(f"/dags/{dag}").raise_for_status().json()["is_paused"])

    def pause_dag(self, dag: str, *, paused: bool) -> None:
        self.airflow.patch(f"/dags/{dag}", json={"is_paused": paused}).raise_for_status()

    def drivers(self, name: str) -> list[psutil.Process]:
        """Return the processes of a connector's driver: Spark's JVM first, then the Python driver."""
        marks = ("driver_app.py", f"--connector {name} ")
        found = [process for process in psutil.process_iter() if all(mark in f"{command_of(process)} " for mark in marks)]
        return sorted(found, key=lambda process: process.create_time())


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    home = tmp_path_factory.mktemp("stack")
    try:
        made = Stack(home, up(None, home=home))
        demo.run_main_job(made.connect, home / "demo", print)
        yield made
    finally:
        down(home=home)
    left = [command for process in psutil.process_iter() if str(home) in (command := command_of(process))]
    assert not left, f"left behind: {left}"


def test_the_copy_equals_the_original_and_new_lines_follow_within_three_seconds(stack: Stack) -> None:
    assert stack.copy.read_bytes() == stack.source.read_bytes()
    assert all(stack.runs(name) for name in (demo.SOURCE, demo.SINK))
    stack.append("a new line")
    eventually(lambda: stack.copy.read_bytes() == stack.source.read_bytes(), within=3, what="the new line")


def test_everything_shows_as_running(stack: Stack) -> None:
    said: list[str] = []
    assert ps(said.append, home=stack.home) == 0
    assert {"kafka", "rest", "airflow-scheduler", "airflow-triggerer"} <= {line.split()[0] for line in said}


def test_pausing_the_dag_pauses_the_connector_and_resuming_the_connector_unpauses_the_dag(stack: Stack) -> None:
    stack.pause_dag(demo.SOURCE, paused=True)
    eventually(lambda: stack.state(demo.SOURCE) == "PAUSED", within=5, what="PAUSED")
    eventually(lambda: not stack.drivers(demo.SOURCE), within=30, what="the driver's end")
    before = len(stack.lines())
    stack.append("while paused")
    stack.connect.resume(demo.SOURCE)
    eventually(lambda: not stack.is_paused(demo.SOURCE), within=10, what="the unpaused DAG")
    eventually(lambda: stack.runs(demo.SOURCE), within=120, what="RUNNING")
    eventually(lambda: stack.copy.read_bytes() == stack.source.read_bytes(), within=20, what="the missing line, once")
    assert len(stack.lines()) == before + 1


def test_pausing_the_connector_pauses_the_dag_and_unpausing_the_dag_resumes_the_connector(stack: Stack) -> None:
    stack.connect.pause(demo.SINK)
    eventually(lambda: stack.is_paused(demo.SINK), within=10, what="the paused DAG")
    eventually(lambda: stack.state(demo.SINK) == "PAUSED", within=5, what="PAUSED")
    stack.append("while the sink was paused")
    stack.pause_dag(demo.SINK, paused=False)
    eventually(lambda: stack.runs(demo.SINK), within=120, what="RUNNING")
    eventually(lambda: stack.copy.read_bytes() == stack.source.read_bytes(), within=20, what="the missing line, once")


@pytest.mark.parametrize("which", [0, -1], ids=["jvm", "python"])
def test_a_killed_driver_is_started_again_and_loses_nothing(stack: Stack, which: int) -> None:
    eventually(lambda: len(stack.drivers(demo.SOURCE)) >= 2 and stack.runs(demo.SOURCE), within=120, what="a driver")
    stack.drivers(demo.SOURCE)[which].kill()
    stack.append(f"after kill {which}")
    eventually(lambda: stack.state(demo.SOURCE) != "RUNNING", within=30, what="a status that tells the truth")
    eventually(lambda: stack.runs(demo.SOURCE), within=180, what="RUNNING again")
    eventually(lambda: set(stack.lines()) == set(stack.source.read_text().splitlines()), within=30, what="every line")
    assert len(stack.drivers(demo.SOURCE)) <= 2


def test_the_rest_api_under_airflow_answers_too(stack: Stack) -> None:
    answer = httpx.get(f"{stack.mounted}/connectors", timeout=30)
    assert answer.headers["content-type"].startswith("application/json")
    assert sorted(answer.json()) == sorted([demo.SOURCE, demo.SINK])


def test_a_deleted_connectors_driver_and_dag_go(stack: Stack) -> None:
    stack.connect.delete(demo.SINK)
    eventually(lambda: not stack.drivers(demo.SINK), within=30, what="the driver's end")

    def gone() -> bool:
        answer: Any = stack.airflow.get("/dags").raise_for_status().json()
        return demo.SINK not in [dag["dag_id"] for dag in answer["dags"] if not dag.get("is_stale")]

    eventually(gone, within=60, what="the DAG's end")
    assert demo.SINK not in stack.connect.connectors()
