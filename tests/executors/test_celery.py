"""Connectors under CeleryExecutor while each part of Airflow, of Celery, and of the connectors is killed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import psutil
import pytest

from sluiceway.stack.airflow import COMPONENTS, airflow_process
from sluiceway.stack.process import BackgroundProcess
from support.celery_stack import WORKERS, CeleryStack
from support.eventually import LIMIT, eventually
from support.faults.airflow_job import Job, await_exit
from support.faults.rows import NewRow
from support.pipe import EXACTLY_ONCE, WORKER, Pipe

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(7200)]

#: How long systemd waits between SIGTERM and SIGKILL, less than its default.
GRACE_SECONDS = 5

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


def replace_workers(stack: CeleryStack, settings: Mapping[str, str]) -> None:
    """Start workers with more settings of Airflow instead of those that run, whose tasks end with them."""
    for name in WORKERS:
        stack.celery(name).stop(GRACE_SECONDS)
        worker = stack.celery(name, settings)
        worker.start()
        stack.await_ready(worker)


def _component(name: str) -> Find:
    return lambda stack, _job: [process_of(airflow_process(name, stack.home))]


def _ancestor(generation: int) -> Find:
    return lambda _stack, job: [job.driver().parents()[generation]]


def _machine(stack: CeleryStack, job: Job) -> list[psutil.Process]:
    worker = process_of(worker_of(stack, job))
    return [worker, *worker.children(recursive=True)]


#: Functions that find the processes of each part, and whether drivers survive its end.
PARTS: Mapping[str, tuple[Find, bool | None]] = {
    "driver": (lambda _stack, job: [job.driver()], False),
    "driver's JVM": (_ancestor(0), False),
    "task's process": (_ancestor(1), False),
    "task's supervisor": (_ancestor(2), False),
    "Celery worker": (lambda stack, job: [process_of(worker_of(stack, job))], None),
    "Celery worker with its tasks": (_machine, False),
    "scheduler": (_component("scheduler"), True),
    "DAG processor": (_component("dag-processor"), True),
    "triggerer": (_component("triggerer"), True),
    "API server": (_component("api-server"), True),
    "Redis": (lambda stack, _job: [process_of(stack.redis.process)], True),
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CeleryStack]:
    running = CeleryStack(tmp_path_factory.mktemp("stack"), worker=WORKER)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def own_drivers(stack: CeleryStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipe]:
    """A source and a sink whose drivers are their tasks' children; they are paused between two tests."""
    with closing(Pipe(stack, "own_drivers", tmp_path_factory.mktemp("sink") / "results")) as made:
        yield made


@pytest.fixture
def pipe(own_drivers: Pipe) -> Pipe:
    """The same, running."""
    own_drivers.start()
    return own_drivers


def test_connectors_survive_a_limit_for_the_time_of_tasks(stack: CeleryStack, pipe: Pipe, row: NewRow) -> None:
    made = row("Celery: the time of tasks is over (20 s instead of 12 h), for each connector", EXACTLY_ONCE)
    before = pipe.steady()
    limit = {"CELERY__EXTRA_CELERY_CONFIG": '{"task_time_limit": 20}'}
    replace_workers(stack, limit)
    for driver in before:
        await_exit(driver)
    limited = pipe.steady()
    for driver in limited:
        await_exit(driver)
    replace_workers(stack, {})
    pipe.steady()
    pipe.more()
    pipe.judge(made)


def test_tasks_that_redis_delivers_again_start_no_second_driver(stack: CeleryStack, pipe: Pipe, row: NewRow) -> None:
    made = row("Celery: Redis delivers each task again after 20 s (instead of a day)", EXACTLY_ONCE)
    pipe.steady()
    replace_workers(stack, {"CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "20"})
    before = pipe.steady()

    def delivered_again() -> bool:
        logs = "".join(stack.celery(name).log.read_text(errors="replace") for name in WORKERS)
        deliveries = Counter(re.findall(r"Task execute_workload\[(\S+)\] received", logs))
        return sum(count > 1 for count in deliveries.values()) >= len(pipe.jobs)

    eventually(delivered_again, what="a second delivery of a task of each connector")
    assert pipe.steady() == before
    pipe.more()
    replace_workers(stack, {})
    pipe.judge(made)


def test_connectors_survive_a_rolling_upgrade(stack: CeleryStack, pipe: Pipe, row: NewRow) -> None:
    made = row("Celery: each component and worker ended as systemd does, and started again, in turn", EXACTLY_ONCE)
    before = pipe.steady()
    for component in COMPONENTS:
        process = airflow_process(component, stack.home)
        process.stop(GRACE_SECONDS)
        stack.up()
        assert pipe.steady() == before, f"{process.name} has ended a driver"
        pipe.more()
    for name in WORKERS:
        stack.celery(name).stop(GRACE_SECONDS)
        stack.up()
        pipe.steady()
        pipe.more()
    assert not set(pipe.steady()) & set(before)
    pipe.judge(made)


@pytest.mark.parametrize("part", PARTS)
def test_connectors_recover_from_the_kill_of_any_part(stack: CeleryStack, pipe: Pipe, row: NewRow, kills: int, part: str) -> None:
    find, outlived = PARTS[part]

    def kill(job: Job) -> None:
        doomed = find(stack, job)
        for process in doomed:
            process.kill()
        psutil.wait_procs(doomed, LIMIT)
        stack.up()

    made = row(f"Celery: {part} killed (-9), {kills} times", EXACTLY_ONCE)
    pipe.survives(made, part, kills, kill, outlived=outlived)
