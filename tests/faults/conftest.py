"""Fixtures and hooks of the fault matrix: each test fills in a row of the table printed at the end of the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import support
from support.broker import READY_SECONDS
from support.faults.broker import FaultyBroker
from support.faults.cluster import Cluster
from support.faults.guarantee import Guarantee
from support.faults.row_report import pytest_runtest_makereport, row, rows_of, shown_by  # noqa: F401 (a hook and a fixture)
from support.faults.rows import table, without_a_line, without_a_test
from support.faults.worker_group import WorkerGroup, worker_group

if TYPE_CHECKING:
    from support.faults.airflow_job import Job
    from support.stack import RunningStack

#: What `make test` runs of the fault matrix beside tests with the mark ``slice``; the rest is for `make faults`.
#: tests/integration/test_exactly_once_failures.py kills tasks at the points of a commit in less time.
_SLICE = ("test_matrix.py", "test_rest.py")

_TESTED = pytest.StashKey[list[tuple[int, ...]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "matrix(*rows): the rows of the fault matrix that a test shows")
    config.addinivalue_line("markers", "slice: a short test of a long module, for `make test`")
    config.stash[_TESTED] = []


def pytest_itemcollected(item: pytest.Item) -> None:
    in_slice = item.nodeid.removeprefix("tests/faults/").startswith(_SLICE) or item.get_closest_marker("slice")
    if not in_slice:
        item.add_marker(pytest.mark.long)
    item.config.stash[_TESTED].append(shown_by(item))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of the whole matrix if a row was not confirmed, even if its test was skipped."""
    rows, tested = rows_of(session.config), session.config.stash[_TESTED]
    whole = without_a_test(tested) == "none" and session.testscollected == len(tested)
    if whole and not session.config.option.collectonly and without_a_line(rows) != "none":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows, tested = rows_of(config), config.stash[_TESTED]
    if config.option.collectonly:
        terminalreporter.write_line(f"rows without a test: {without_a_test(tested)}")
    elif rows:
        terminalreporter.section("faults")
        for line in table(rows):
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"rows without a line that holds: {without_a_line(rows)}")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyBroker]:
    """This module's own broker, behind a proxy."""
    made = FaultyBroker(tmp_path_factory.mktemp("broker"))
    try:
        made.start(timeout=READY_SECONDS)
        yield made
    finally:
        made.close()


@pytest.fixture
def guarantee() -> Guarantee:
    """The delivery guarantee of the worker's sources; modules that test both override it."""
    return Guarantee.AT_LEAST_ONCE


@pytest.fixture
def group(broker: FaultyBroker, guarantee: Guarantee, tmp_path: Path) -> Iterator[WorkerGroup]:
    """The test's own worker group."""
    with worker_group(broker.address, tmp_path, guarantee.worker) as made:
        yield made


@pytest.fixture
def cluster(broker: FaultyBroker) -> Cluster:
    """A client for the broker's topics and consumer groups."""
    return Cluster(broker.address)


@pytest.fixture
def new_job(stack: RunningStack, unique: Callable[[str], str]) -> Iterator[Job]:
    """Create a source on the module's stack without starting it."""
    from support.faults.airflow_job import Job

    made = Job(stack, unique("fault").replace("-", "_"))
    yield made
    made.close()


@pytest.fixture
def job(new_job: Job) -> Job:
    """A running source."""
    new_job.start()
    new_job.more()
    return new_job


@pytest.fixture
def own_connectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the connectors of tests/support/faults on the path of drivers started from now on."""
    paths = [str(Path(support.__file__).parent.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


@pytest.fixture
def rounds() -> int:
    """Number of repetitions of a fault within a test, from SLUICEWAY_FAULT_ROUNDS."""
    return int(os.environ.get("SLUICEWAY_FAULT_ROUNDS", "3"))
