"""A source on a real Airflow while Airflow's processes are killed and users change its state. All tests share one stack."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from support.airflow_home import isolate_airflow
from support.eventually import eventually
from support.faults.airflow_job import AT_LEAST_ONCE, Job, await_exit, kill
from support.faults.rows import NewRow
from support.stack import RunningStack

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
def test_a_killed_scheduler_stops_no_data_and_the_next_one_starts_no_second_driver(job: Job, row: NewRow) -> None:
    made = row("scheduler killed (-9) and started again", f"records continue; {AT_LEAST_ONCE}, one driver")
    kill(job.stack, "scheduler")
    job.more(10)
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
    await_exit(driver)
    eventually(lambda: job.stack.worker_id(job.name) != before, what="another driver")
    job.running()
    job.more()
    made.recovered(time.monotonic() - killed)
    assert len(job.drivers()) == 1
    job.judge(made)


@pytest.mark.matrix(13)
def test_a_killed_triggerer_does_not_affect_the_connector(job: Job, row: NewRow) -> None:
    """No task of ours is deferred to it."""
    made = row("triggerer killed (-9) and started again; paused and resumed meanwhile", f"{GENTLE}, one driver before the pause")
    driver = job.driver()
    kill(job.stack, "triggerer")
    job.more(5)
    job.stack.set_paused(job.name, True)
    job.stack.await_states(job.name, "PAUSED", "PAUSED")
    await_exit(driver)
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
def test_a_paused_dag_stays_paused_over_restarts_and_resumes_without_a_gap(job: Job, row: NewRow) -> None:
    made = row("DAG paused, scheduler and API server killed and started, resumed", f"{GENTLE}; nothing written while paused")
    paused = time.monotonic()
    job.stack.set_paused(job.name, True)
    job.stack.await_states(job.name, "PAUSED", "PAUSED")
    seconds = time.monotonic() - paused
    eventually(lambda: not job.drivers(), what="the end of the driver")
    end = job.cluster.end(job.topic)
    for component in ("scheduler", "api-server"):
        kill(job.stack, component)
    job.stack.up()
    assert job.stack.is_paused(job.name)
    assert job.stack.states(job.name) == ("PAUSED", "PAUSED")
    assert not job.drivers()
    assert job.cluster.end(job.topic) == end
    # By REST: a toggle in the API server's first seconds, before its pause sync has read the flags, is reverted.
    job.stack.connect.resume(job.name)
    resumed = time.monotonic()
    eventually(lambda: job.stack.is_paused(job.name) is False, what="the DAG unpaused")
    job.more()
    made.recovered(time.monotonic() - resumed)
    job.judge(made, faults=0)
    made.seen += f"; PAUSED after {seconds:.1f} s"


@pytest.mark.matrix(15)
@pytest.mark.parametrize("how", ["broken import", "deleted"])
def test_deleting_a_hand_written_dag_keeps_its_connector(new_job: Job, row: NewRow, how: str) -> None:
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
            eventually(lambda: (stack.dag(job.name) or {"is_stale": True})["is_stale"], what="a stale DAG")
        else:
            file.write_text(text.replace("sluiceway.operators", "sluiceway.no_such_module"))
            eventually(lambda: file.name in stack.airflow.get("/importErrors").text, what="the import error")
        assert stack.connect.config(job.name) == config
        file.write_text(text)
        back = time.monotonic()
        eventually(lambda: not (stack.dag(job.name) or {"is_stale": True})["is_stale"], what="the DAG again")
        eventually(lambda: file.name not in stack.airflow.get("/importErrors").text, what="no import error")
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
def test_clearing_or_marking_a_task_ends_its_driver(job: Job, row: NewRow, button: str) -> None:
    made = row(f"{button} in Airflow", f"{AT_LEAST_ONCE}, the old driver gone within 30 s, then one again")
    driver = job.driver()
    job.press(button)
    seconds = await_exit(driver)
    job.more()
    job.running()
    made.recovered(seconds)
    job.more()
    assert len(job.drivers()) == 1
    job.judge(made)
    made.seen += f"; the driver was gone after {seconds:.1f} s"
