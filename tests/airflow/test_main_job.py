"""The main job on a real stack: a file through Kafka to a file, as two DAGs on Spark, paused, resumed and killed."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from sluiceway.rest.client import RestError
from support.eventually import eventually
from support.main_job import SINK, SOURCE, MainJob
from support.stack import START, RunningStack

pytestmark = pytest.mark.airflow

CLIENTS, WRITES = 4, 30


def test_connectors_created_by_rest_become_dags_that_copy_the_file(job: MainJob) -> None:
    for name in (SOURCE, SINK):
        eventually(lambda name=name: job.stack.dag(name), what=f"DAG {name}")
    job.await_equal()


def test_appended_lines_arrive(running: MainJob) -> None:
    running.write(10)
    running.await_equal()


def test_pausing_the_dag_stops_the_connector_and_resuming_by_rest_catches_up(running: MainJob) -> None:
    stack = running.stack
    stack.set_paused(SOURCE, True)
    stack.await_states(SOURCE, "PAUSED", "PAUSED")
    running.write(500)
    eventually(lambda: stack.driver(SOURCE) is None, what="the end of the driver")
    # The task keeps its slot for a while ([sluiceway] pause_linger), so that a resume need not wait for the scheduler.
    eventually(lambda: stack.task_states(SOURCE)[-1] == "up_for_reschedule", what="the slot given back")
    assert len(running.lines()) == running.written - 500
    stack.connect.resume(SOURCE)
    eventually(lambda: stack.is_paused(SOURCE) is False, what="the DAG unpaused")
    running.await_equal()
    assert stack.task_states(SOURCE) == ["running"], "the DAG run was kept"


@pytest.mark.long
def test_pausing_by_rest_pauses_the_dag_and_unpausing_the_dag_resumes_the_connector(running: MainJob) -> None:
    stack = running.stack
    stack.connect.pause(SINK)
    eventually(lambda: stack.is_paused(SINK), what="the DAG paused")
    stack.await_states(SINK, "PAUSED", "PAUSED")
    eventually(lambda: stack.driver(SINK) is None, what="the end of the driver")
    running.write(100)
    stack.set_paused(SINK, False)
    running.await_equal()
    stack.await_states(SINK, "RUNNING", "RUNNING")


def test_clients_that_write_at_once_do_not_block_the_api_server(running: MainJob) -> None:
    """Beside the heartbeats of the two tasks, which are requests that write as well."""

    def patch(_client: int) -> list[int]:
        body = {"is_paused": False}
        return [running.stack.airflow.patch(f"/dags/{SOURCE}", json=body).status_code for _ in range(WRITES)]

    with ThreadPoolExecutor(CLIENTS) as pool:
        assert list(pool.map(patch, range(CLIENTS))) == [[200] * WRITES] * CLIENTS


@pytest.mark.long
def test_a_stopped_connector_is_resumed_by_unpausing_its_dag(running: MainJob) -> None:
    stack = running.stack
    stack.mounted.stop(SOURCE)
    eventually(lambda: stack.is_paused(SOURCE), what="the DAG paused")
    stack.await_states(SOURCE, "STOPPED")
    eventually(lambda: stack.driver(SOURCE) is None, what="the end of the driver")
    running.write(100)
    stack.set_paused(SOURCE, False)
    running.await_equal()


@pytest.mark.parametrize(
    "victim", [*(pytest.param(each, marks=pytest.mark.long) for each in ("JVM", "Python driver")), "Airflow task"]
)
def test_after_kill_9_the_connector_restarts_and_no_line_is_lost(running: MainJob, victim: str) -> None:
    stack = running.stack
    driver, jvm = stack.driver(SOURCE), stack.jvm(SOURCE)
    assert driver is not None
    assert jvm is not None
    before = stack.worker_id(SOURCE)
    task = jvm.parent()
    assert task is not None
    doomed = {"JVM": jvm, "Python driver": driver, "Airflow task": task}[victim]
    running.write(200)
    doomed.send_signal(signal.SIGKILL)
    psutil.wait_procs([driver], timeout=30)
    assert not driver.is_running(), "the old driver is gone, however its death came about"
    eventually(lambda: stack.states(SOURCE)[0] != "RUNNING", what="a status that tells the truth")
    eventually(lambda: stack.states(SOURCE) == ("RUNNING", "RUNNING") and stack.worker_id(SOURCE) != before, within=START * 2)
    running.write(200)
    running.await_all()


def test_deleting_a_connector_deletes_its_dag_and_ends_its_run(stack: RunningStack, folder: Path) -> None:
    (folder / "gone.txt").write_text("a\n")
    config = {"connector.class": "FileStreamSource", "file": str(folder / "gone.txt"), "topic": "gone"}
    stack.connect.create("to be deleted", config)
    dag_id = "to_x20be_x20deleted"
    stack.await_states("to be deleted", "RUNNING", "RUNNING")
    stack.connect.delete("to be deleted")
    eventually(lambda: stack.driver("to be deleted") is None, what="the end of the driver")
    eventually(lambda: stack.task_states(dag_id) == ["success"], what="the end of the task")
    eventually(lambda: (stack.dag(dag_id) or {}).get("is_stale"), what="the end of the DAG")
    with pytest.raises(RestError, match="No status found"):
        stack.connect.status("to be deleted")
