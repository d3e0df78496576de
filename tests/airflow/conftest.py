"""One real stack for all tests of this folder: starting it takes half a minute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.airflow_home import isolate_airflow
from support.main_job import SINK, SOURCE, TOPIC, MainJob
from support.stack import RunningStack

isolate_airflow()

#: What shortens waits, in which an idle Airflow takes processor time: a paused task gives its slot back soon, and new files in
#: the DAGs folder are found soon.
SETTINGS = {"SLUICEWAY__PAUSE_LINGER": "2", "DAG_PROCESSOR__REFRESH_INTERVAL": "3"}

_RUNNING: list[RunningStack] = []


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack(tmp_path_factory.mktemp("stack"), settings=SETTINGS)
    _RUNNING.append(running)
    yield running
    _close_stack()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Stop the stack after the folder's last test, because its idle Airflow would take processor time from later tests."""
    if nextitem is None or not nextitem.path.is_relative_to(Path(__file__).parent):
        _close_stack()


def _close_stack() -> None:
    while _RUNNING:
        _RUNNING.pop().close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the connectors' files."""
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="session")
def job(stack: RunningStack, folder: Path) -> MainJob:
    """The main job, which lasts as long as the stack: each start of a driver takes seconds."""
    job = MainJob(stack, folder / "in.txt", folder / "out.txt")
    job.write(1000)
    # One request to each REST address: the REST server's and Airflow's.
    stack.connect.create(SOURCE, {"connector.class": "FileStreamSource", "file": str(job.source), "topic": TOPIC})
    stack.mounted.create(SINK, {"connector.class": "FileStreamSink", "file": str(job.copy), "topics": TOPIC})
    return job


@pytest.fixture
def running(job: MainJob) -> MainJob:
    """The main job, with both connectors RUNNING and every line copied."""
    for name in (SOURCE, SINK):
        job.stack.await_states(name, "RUNNING", "RUNNING")
    job.await_all()
    return job
