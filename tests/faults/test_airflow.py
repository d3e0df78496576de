"""A source that a real Airflow runs, while parts of Airflow die and people press its buttons. One stack for all of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.airflow_home import isolate_airflow
from support.eventually import eventually
from support.faults.airflow_job import AT_LEAST_ONCE, Job, gone, kill
from support.faults.rows import NewRow
from support.stack import START, RunningStack

isolate_airflow()
pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.timeout(900)]

GENTLE = "0 lost, 0 duplicated"
HAND_WRITTEN = """
from airflow.sdk import DAG  # an Airflow DAG
import pendulum
from sluiceway.operators import SourceConnectorOperator

with DAG({dag!r}, schedule="@continuous", start_date=pendulum.datetime(2024, 1, 1, tz="UTC"), catchup=False, max_active_runs=1,
         is_paused_upon_creation=False):
    SourceConnectorOperator(task_id="run", config={config!r})
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack(tmp_path_factory.mktemp("stack"))
    try:
        yield running
    finally:
        running.close()


@pytest.mark.matrix(11)
def test_a_killed_scheduler_stops_no_data_and_its_successor_runs_no_second_driver(job: Job, row: NewRow) -> None:
    made = row("scheduler killed (-9) and started again", f"data flows on; {AT_LEAST_ONCE}, one driver")
    kill(job.stack, "scheduler")
    job.more(10, within=20)
    restarted = time.monotonic()
    job.stack.up()
    job.more()
    job.running()
    job.more()
    made.recovered(time.monotonic() - restarted)
    assert len(job.drivers()) == 1
    job.judge(made)


@pytest.mark.matrix(12)
@pytest.mark.parametrize("victim", ["task", "supervisor"])
def test_after_the_airflow_task_is_killed_its_retry_runs_the_only_driver(job: Job, row: NewRow, victim: str) -> None:
    made = row(f"Airflow {victim} killed (-9), task retried", f"{AT_LEAST_ONCE}, the old driver gone, one driver")
    driver = job.driver()
    _jvm, task, supervisor = driver.parents()[:3]
    doomed = task if victim == "task" else supervisor
    before = job.stack.worker_id(job.name)
    os.kill(doomed.pid, signal.SIGKILL)
    killed = time.monotonic()
    gone(driver, within=120)
    eventually(lambda: job.stack.worker_id(job.name) != before, within=3 * START, what="another driver")
    job.running()
    job.more()
    made.recovered(time.monotonic() - killed)
    assert len(job.drivers()) == 1
    job.judge(made)


@pytest.mark.matrix(13)
def test_a_killed_triggerer_does_no_harm(job: Job, row: NewRow) -> None:
    """Nothing of ours waits in it."""
    made = row("triggerer killed (-9) and started again; paused and resumed meanwhile", f"{GENTLE}, one driver before the pause")
    driver = job.driver()
    kill(job.stack, "triggerer")
    job.more(5, within=15)
    job.stack.set_paused(job.name, True)
    job.stack.await_states(job.name, "PAUSED", "PAUSED", within=15)
    gone(driver, within=30)
    job.stack.set_paused(job.name, False)
    resumed = time.monotonic()
    job.more()
    made.recovered(time.monotonic() - resumed)
    second = job.driver()
    job.stack.up()
    job.more()
    assert job.driver() == second
    job.judge(made, faults=0)


@pytest.mark.matrix(14)
def test_a_paused_dag_rests_whatever_is_restarted_and_goes_on_without_a_gap(job: Job, row: NewRow) -> None:
    made = row("DAG paused, scheduler and API server killed and started, resumed", f"{GENTLE}; nothing written while paused")
    paused = time.monotonic()
    job.stack.set_paused(job.name, True)
    job.stack.await_states(job.name, "PAUSED", "PAUSED", within=15)
    told = time.monotonic() - paused
    eventually(lambda: not job.drivers(), within=30, what="the end of the driver")
    end = job.cluster.end(job.topic)
    for component in ("scheduler", "api-server"):
        kill(job.stack, component)
    job.stack.up()
    assert job.stack.is_paused(job.name)
    assert job.stack.states(job.name) == ("PAUSED", "PAUSED")
    assert not job.drivers()
    assert job.cluster.end(job.topic) == end
    # By REST: what a person toggles in the API server's first seconds, before its pause sync has read it, is undone.
    job.stack.connect.resume(job.name)
    resumed = time.monotonic()
    eventually(lambda: job.stack.is_paused(job.name) is False, within=30, what="the DAG unpaused")
    job.more()
    made.recovered(time.monotonic() - resumed)
    job.judge(made, faults=0)
    made.seen += f"; PAUSED after {told:.1f} s"


@pytest.mark.matrix(15)
@pytest.mark.parametrize("how", ["broken import", "deleted"])
def test_a_hand_written_dag_that_goes_keeps_its_connector(new_job: Job, row: NewRow, how: str) -> None:
    made = row(f"hand-written DAG's file: {how}; put back", f"{AT_LEAST_ONCE}; config and offsets kept, one driver")
    job, stack = new_job, new_job.stack
    file = stack.home / "airflow" / "dags" / f"{job.name}.py"
    text = HAND_WRITTEN.format(dag=job.name, config=job.config)
    file.write_text(text)
    try:
        job.running()
        job.more()
        config = stack.connect.config(job.name)
        if how == "deleted":
            file.unlink()
            eventually(lambda: (stack.dag(job.name) or {"is_stale": True})["is_stale"], within=120, what="a stale DAG")
        else:
            file.write_text(text.replace("sluiceway.operators", "sluiceway.no_such_module"))
            eventually(lambda: file.name in stack.airflow.get("/importErrors").text, within=60, what="the import error")
        assert stack.connect.config(job.name) == config
        file.write_text(text)
        back = time.monotonic()
        eventually(lambda: not (stack.dag(job.name) or {"is_stale": True})["is_stale"], within=120, what="the DAG again")
        eventually(lambda: file.name not in stack.airflow.get("/importErrors").text, within=60, what="no import error")
        job.running()
        job.more()
        made.recovered(time.monotonic() - back)
        assert len(job.drivers()) == 1
        assert stack.connect.config(job.name) == config
        job.judge(made)
    finally:
        file.unlink(missing_ok=True)


@pytest.mark.matrix(16)
@pytest.mark.parametrize("button", ["clear", "mark success", "mark failed"])
def test_a_task_that_is_cleared_or_marked_ends_its_driver_within_30_seconds(job: Job, row: NewRow, button: str) -> None:
    made = row(f"{button} in Airflow", f"{AT_LEAST_ONCE}, the old driver gone within 30 s, then one again")
    driver, run = job.driver(), job.run_id()
    press(job, run, button)
    seconds = gone(driver, within=30)
    job.more()
    job.running()
    made.recovered(seconds)
    job.more()
    assert len(job.drivers()) == 1
    job.judge(made)
    made.seen += f"; the driver was gone after {seconds:.1f} s"


def press(job: Job, run: str, button: str) -> None:
    """Do what Airflow's page does for a button."""
    client = job.stack.airflow
    if button == "clear":
        body: dict[str, Any] = {"dry_run": False, "dag_run_id": run, "task_ids": ["run"], "only_failed": False}
        client.post(f"/dags/{job.name}/clearTaskInstances", json=body).raise_for_status()
        return
    state = {"mark success": "success", "mark failed": "failed"}[button]
    client.patch(f"/dags/{job.name}/dagRuns/{run}/taskInstances/run", json={"new_state": state}).raise_for_status()
