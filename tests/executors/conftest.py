"""Fixtures of executors on real stacks, and the table of what was killed, printed at the end of the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from support.airflow_home import isolate_airflow
from support.celery_stack import CeleryStack
from support.faults.row_report import pytest_runtest_makereport, row, rows_of  # noqa: F401 (a hook and a fixture)
from support.faults.rows import table
from support.pipe import WORKER, Pipe

isolate_airflow()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if rows := rows_of(config):
        terminalreporter.section("executors")
        for line in table(rows):
            terminalreporter.write_line(line)


@pytest.fixture
def kills() -> int:
    """Return how often each part is killed, from KILLS."""
    return int(os.environ.get("KILLS", "2"))


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CeleryStack]:
    running = CeleryStack(tmp_path_factory.mktemp("stack"), worker=WORKER)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def own_drivers(stack: CeleryStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipe]:
    """A source and a sink whose drivers are their tasks' children; they are paused between two tests."""
    with closing(Pipe(stack, "own_drivers", tmp_path_factory.mktemp("sink") / "results")) as made:
        yield made


@pytest.fixture
def pipe(own_drivers: Pipe) -> Pipe:
    """The same, running."""
    own_drivers.start()
    return own_drivers
