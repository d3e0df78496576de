"""A task that Airflow ends while its connector runs: the driver drains and commits, and no second one runs beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.eventually import eventually
from support.faults.airflow_job import Job, await_exit
from support.stack import RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(1800)]

APPLICATION = "ends"
OWN = {"long-running": {}, "micro-batch": {"airflow.mode": "micro-batch"}}
SHARED = {mode: {**keys, "sluiceway.application": APPLICATION} for mode, keys in OWN.items()}
BUTTONS = ("clear", "mark success", "mark failed")
#: Seconds after which Airflow ends the task: the connector runs by then, also on a busy machine.
TIMEOUT = 150

_DAG = """
import datetime
from airflow.sdk import DAG
from sluiceway.operators import SourceConnectorOperator

with DAG({dag!r}, schedule=None, is_paused_upon_creation=False, max_active_runs=1):
    SourceConnectorOperator(task_id="run", config={config!r}, retries=0, execution_timeout={timeout})
"""

Start = Callable[..., Job]


@pytest.fixture
def start(stack: RunningStack, unique: Callable[[str], str]) -> Iterator[Start]:
    """Start a source by an operator in a DAG of its own, and wait until it moves records."""
    made: list[Job] = []

    def run(keys: dict[str, str], timeout: str = "None") -> Job:
        job = Job(stack, unique("ends").replace("-", "_"))
        made.append(job)
        text = _DAG.format(dag=job.name, config={**job.config, **keys}, timeout=timeout)
        file(job).write_text(text)
        eventually(lambda: stack.dag(job.name), what="the DAG")
        stack.airflow.post(f"/dags/{job.name}/dagRuns", json={"logical_date": None}).raise_for_status()
        job.running()
        job.more()
        return job

    def file(job: Job) -> Any:
        return stack.home / "airflow" / "dags" / f"{job.name}.py"

    yield run
    for job in made:
        file(job).unlink(missing_ok=True)
        job.close()


def end(job: Job, how: str) -> None:
    """Make Airflow end the task. An execution_timeout comes by itself."""
    if how == "SIGTERM":
        job.driver().parents()[1].terminate()
    elif how in BUTTONS:
        job.press(how)


def drained(job: Job) -> None:
    """Check that the stored offset is that of the topic's last record, and that no record is there twice."""
    verdict = job.verdict()
    assert verdict.exactly_once, verdict
    [stored] = job.stack.connect.offsets(job.name)
    assert stored["offset"]["seqno"] == verdict.tasks[0].last


@pytest.mark.parametrize("how", [*BUTTONS, "execution_timeout", "SIGTERM"])
@pytest.mark.parametrize("mode", OWN)
def test_a_task_with_a_driver_of_its_own(start: Start, mode: str, how: str) -> None:
    job = start(OWN[mode], f"datetime.timedelta(seconds={TIMEOUT})" if how == "execution_timeout" else "None")
    driver, seen = job.driver(), []
    end(job, how)
    seconds = await_exit(driver)
    print(f"{mode}, {how}: the driver was gone after {seconds:.1f} s", flush=True)
    if how == "clear":
        eventually(lambda: seen.append(len(job.drivers())) or job.steady(), what="the next try's driver")
        job.more()
        assert max(seen) == 1, "two drivers at once"
        job.stack.connect.pause(job.name)
        job.stack.await_states(job.name, "PAUSED", "PAUSED")
    else:
        wanted = "success" if how == "mark success" else "failed"
        eventually(lambda: job.stack.task_states(job.name) == [wanted], what=f"the task {wanted}")
        assert job.drivers() == []
        assert job.stack.states(job.name) == ("UNASSIGNED", "UNASSIGNED")
    drained(job)


@pytest.mark.parametrize("how", [*BUTTONS, "execution_timeout"])
def test_a_task_that_waits_for_its_batch_in_a_shared_application(start: Start, how: str) -> None:
    timeout = f"datetime.timedelta(seconds={TIMEOUT})" if how == "execution_timeout" else "None"
    job = start(SHARED["micro-batch"], timeout)
    driver = job.stack.driver(APPLICATION)
    end(job, how)
    if how == "clear":
        eventually(
            lambda: job.stack.task_states(job.name) == ["deferred"] and job.stack.states(job.name) == ("RUNNING",) * 2,
            what="another batch",
        )
        job.more()
        job.press("mark failed")
    eventually(lambda: job.stack.states(job.name) == ("UNASSIGNED", "UNASSIGNED"), what="the end of the batch")
    assert job.stack.driver(APPLICATION) == driver, "other connectors run on"
    drained(job)


@pytest.mark.parametrize("how", [*BUTTONS, "execution_timeout"])
def test_a_task_whose_connector_runs_in_a_shared_application_leaves_it_there(start: Start, how: str) -> None:
    timeout = f"datetime.timedelta(seconds={TIMEOUT})" if how == "execution_timeout" else "None"
    job = start(SHARED["long-running"], timeout)
    before = job.stack.worker_id(job.name)
    end(job, how)
    wanted = {"clear": "deferred", "mark success": "success"}.get(how, "failed")
    eventually(lambda: job.stack.task_states(job.name) == [wanted], what=f"the task {wanted}")
    job.more()
    assert job.stack.worker_id(job.name) == before
    job.stack.connect.pause(job.name)
    job.stack.await_states(job.name, "PAUSED", "PAUSED")
    drained(job)
