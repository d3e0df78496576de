"""Runs the fault matrix: each test fills in a row, and the table stands at the end of the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import support
from support.faults.broker import FaultyBroker
from support.faults.cluster import Cluster
from support.faults.guarantee import Guarantee
from support.faults.rows import NewRow, Row, table, without_a_line, without_a_test
from support.faults.world import World, world

if TYPE_CHECKING:
    from support.faults.airflow_job import Job
    from support.stack import RunningStack

_ROWS = pytest.StashKey[list[Row]]()
_TESTED = pytest.StashKey[list[tuple[int, ...]]]()
_ROW = pytest.StashKey[Row]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "matrix(*rows): the rows of the fault matrix that a test shows")
    config.stash[_ROWS] = []
    config.stash[_TESTED] = []


def pytest_itemcollected(item: pytest.Item) -> None:
    item.config.stash[_TESTED].append(shown_by(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A line holds if its test has passed."""
    report = yield
    if report.when == "call" and (row := item.stash.get(_ROW, None)) is not None:
        row.holds = report.passed
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run of the whole matrix in which a row has not been seen to hold has failed, also if its test was skipped."""
    rows, tested = session.config.stash[_ROWS], session.config.stash[_TESTED]
    whole = without_a_test(tested) == "none" and session.testscollected == len(tested)
    if whole and not session.config.option.collectonly and without_a_line(rows) != "none":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows, tested = config.stash[_ROWS], config.stash[_TESTED]
    if config.option.collectonly:
        terminalreporter.write_line(f"rows without a test: {without_a_test(tested)}")
    elif rows:
        terminalreporter.section("faults")
        for line in table(rows):
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"rows without a line that holds: {without_a_line(rows)}")


def shown_by(item: pytest.Item) -> tuple[int, ...]:
    """Return the rows of the matrix that a test shows; the mark of a parameter stands for the whole test's."""
    marks = [mark for mark in item.own_markers if mark.name == "matrix"]
    return marks[-1].args if marks else ()


@pytest.fixture
def row(request: pytest.FixtureRequest) -> NewRow:
    """Open the test's line of the table: ``row(fault, expected)``."""

    def new(fault: str, expected: str) -> Row:
        made = Row(shown_by(request.node), fault, expected)
        request.config.stash[_ROWS].append(made)
        request.node.stash[_ROW] = made
        return made

    return new


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyBroker]:
    """A broker of this module's own, behind a proxy."""
    made = FaultyBroker(tmp_path_factory.mktemp("broker"))
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def guarantee() -> Guarantee:
    """What the test's worker promises of sources; a module that tests both overrides this."""
    return Guarantee.AT_LEAST_ONCE


@pytest.fixture
def place(broker: FaultyBroker, guarantee: Guarantee, tmp_path: Path) -> Iterator[World]:
    """A worker group of the test's own."""
    with world(broker.address, tmp_path, guarantee.worker) as made:
        yield made


@pytest.fixture
def cluster(broker: FaultyBroker) -> Cluster:
    """The broker's topics and groups, seen from outside."""
    return Cluster(broker.address)


@pytest.fixture
def new_job(stack: RunningStack, unique: Callable[[str], str]) -> Iterator[Job]:
    """A source on the module's stack, not started yet."""
    from support.faults.airflow_job import Job

    made = Job(stack, unique("fault").replace("-", "_"))
    yield made
    made.close()


@pytest.fixture
def job(new_job: Job) -> Job:
    """A job under way."""
    new_job.start()
    new_job.more()
    return new_job


@pytest.fixture
def own_connectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let drivers that are started from now on find the connectors in tests/support/faults."""
    paths = [str(Path(support.__file__).parent.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


@pytest.fixture
def rounds() -> int:
    """How often a fault is repeated within a test; SLUICEWAY_FAULT_ROUNDS sets it."""
    return int(os.environ.get("SLUICEWAY_FAULT_ROUNDS", "3"))
