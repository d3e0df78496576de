"""Connectors of a DAG file on a real Airflow: who may change their configs, what a restart clears, and a file that is removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluiceway.rest.client import RestError
from support.eventually import eventually
from support.stack import START, RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(1500)]

DAG = "two_of_a_file"
_DAG = """
from airflow.sdk import DAG, task
from sluiceway.operators import SourceConnectorOperator

COMMON = {{"connector.class": "FileStreamSource", "topic": {topic!r}}}


@task
def check():
    raise ValueError("not a connector's task")


@task
def after():
    pass


with DAG({dag!r}, schedule=None, max_active_runs=1, is_paused_upon_creation=False):
    for name in ("one", "two"):
        config = {{**COMMON, "name": f"file-{{name}}", "file": f"{folder}/{{name}}.txt"}}
        load = SourceConnectorOperator(task_id=name, config=config, mode="micro-batch", retries=0)
    check()
    load >> after()
"""


@pytest.fixture
def file(stack: RunningStack, folder: Path) -> Iterator[Path]:
    path = stack.home / "airflow" / "dags" / f"{DAG}.py"
    path.write_text(_DAG.format(dag=DAG, folder=folder, topic="file-lines"))
    eventually(lambda: stack.dag(DAG), within=START, what="the DAG")
    yield path
    path.unlink(missing_ok=True)
    for name in ("file-one", "file-two"):
        if stack.states(name):
            stack.connect.delete(name)


def _page(stack: RunningStack, name: str) -> dict[str, Any]:
    rows = stack.airflow.get(f"{stack.addresses.airflow}/sluiceway/ui/api/overview").json()["connectors"]
    return next((row for row in rows if row["name"] == name), {})


def _tasks(stack: RunningStack, run: str) -> dict[str, tuple[str, int]]:
    found = stack.airflow.get(f"/dags/{DAG}/dagRuns/{run}/taskInstances").json()["task_instances"]
    return {each["task_id"]: (each["state"], each["try_number"]) for each in found}


def test_a_dag_file_sets_its_connectors_configs_and_its_tasks_are_restarted_one_by_one(
    stack: RunningStack, folder: Path, file: Path
) -> None:
    (folder / "one.txt").write_text("1\n")  # the other file does not exist yet
    run = stack.airflow.post(f"/dags/{DAG}/dagRuns", json={"logical_date": None}).json()["dag_run_id"]
    ended = {"one": ("success", 1), "two": ("failed", 1), "check": ("failed", 1), "after": ("upstream_failed", 0)}
    eventually(lambda: _tasks(stack, run) == ended, within=3 * START, what=f"the tasks' ends, are {_tasks(stack, run)}")
    eventually(
        lambda: (_page(stack, "file-two")["schedule"]["last"] or {}).get("run_id") == run, within=START, what="the run's end"
    )
    assert (_page(stack, "file-two")["shown"], _page(stack, "file-one")["schedule"]["last"]["state"]) == ("FAILED", "failed")

    for client in (stack.connect, stack.mounted):
        with pytest.raises(RestError, match=f"set by DAG {DAG}, task two"):
            client.put_config("file-two", {"connector.class": "FileStreamSource", "file": "/elsewhere", "topic": "t"})

    (folder / "two.txt").write_text("2\n")
    stack.mounted.restart("file-two")
    restarted = {**ended, "two": ("success", 2), "after": ("success", 1)}
    eventually(lambda: _tasks(stack, run) == restarted, within=3 * START, what=f"the restart, is {_tasks(stack, run)}")

    file.write_text(file.read_text().replace("file-lines", "other-lines"))
    details = f"{stack.addresses.airflow}/sluiceway/ui/api/connectors/file-two"
    drift = [{"key": "topic", "before": "file-lines", "after": "other-lines"}]
    eventually(lambda: stack.airflow.get(details).json()["drift"] == drift, within=START, what="the drift")

    file.unlink()
    eventually(lambda: _page(stack, "file-two")["schedule"]["gone"], within=3 * START, what="the DAG's end")
    log = stack.home / "airflow-api-server.log"
    eventually(
        lambda: f"DAG {DAG} is gone, but its connectors are not: file-one, file-two" in log.read_text(), what="the warning"
    )
    stack.mounted.delete("file-two")
    assert _page(stack, "file-two") == {}
