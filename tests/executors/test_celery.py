"""Connectors under CeleryExecutor while each part of Airflow, of Celery, and of the connectors is killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import psutil
import pytest

from sluiceway.stack.airflow import airflow_process
from sluiceway.stack.process import BackgroundProcess
from support.celery_stack import WORKERS, CeleryStack
from support.eventually import LIMIT
from support.faults.airflow_job import Job, await_exit
from support.faults.rows import NewRow
from support.pipe import Pipe

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(7200)]

EXACTLY_ONCE = "one driver each, 0 lost, 0 duplicated"

Find = Callable[[CeleryStack, Job], list[psutil.Process]]


def process_of(process: BackgroundProcess) -> psutil.Process:
    pid = process.status().pid
    assert pid is not None, f"{process.name} does not run"
    return psutil.Process(pid)


def worker_of(stack: CeleryStack, job: Job) -> BackgroundProcess:
    """Return the Celery worker that runs the task of a connector's driver; any, if the task has outlived its worker."""
    above = {each.pid for each in job.driver().parents()}
    workers = [stack.celery(name) for name in WORKERS]
    return next((each for each in workers if each.status().pid in above), workers[0])


def _component(name: str) -> Find:
    return lambda stack, _job: [process_of(airflow_process(name, stack.home))]


def _ancestor(generation: int) -> Find:
    return lambda _stack, job: [job.driver().parents()[generation]]


def _machine(stack: CeleryStack, job: Job) -> list[psutil.Process]:
    worker = process_of(worker_of(stack, job))
    return [worker, *worker.children(recursive=True)]


#: Functions that find the processes of each part, and whether drivers survive its end.
PARTS: Mapping[str, tuple[Find, bool]] = {
    "driver": (lambda _stack, job: [job.driver()], False),
    "driver's JVM": (_ancestor(0), False),
    "task's process": (_ancestor(1), False),
    "task's supervisor": (_ancestor(2), False),
    "Celery worker": (lambda stack, job: [process_of(worker_of(stack, job))], True),
    "Celery worker with its tasks": (_machine, False),
    "scheduler": (_component("scheduler"), True),
    "DAG processor": (_component("dag-processor"), True),
    "triggerer": (_component("triggerer"), True),
    "API server": (_component("api-server"), True),
    "Redis": (lambda stack, _job: [process_of(stack.redis.process)], True),
}


@pytest.mark.parametrize("part", PARTS)
def test_connectors_recover_from_the_kill_of_any_part(stack: CeleryStack, pipe: Pipe, row: NewRow, kills: int, part: str) -> None:
    find, outlived = PARTS[part]
    made = row(f"{part} killed (-9), {kills} times", EXACTLY_ONCE)
    for number in range(kills):
        before = pipe.steady()
        chosen = number % len(before)
        killed = time.monotonic()
        doomed = find(stack, pipe.jobs[chosen])
        for process in doomed:
            process.kill()
        psutil.wait_procs(doomed, LIMIT)
        if not outlived:
            await_exit(before[chosen])
        stack.up()
        after = pipe.steady()
        pipe.more()
        made.recovered(time.monotonic() - killed)
        print(f"{part} killed: {time.monotonic() - killed:.1f} s until both connectors move records", flush=True)
        assert (after == before) is outlived
    pipe.judge(made)
