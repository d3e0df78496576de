"""Fixtures and the table of tests that kill parts of sinks to files and tables. Each cluster runs for one test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clusters.daemons import end_all, running
from support.clusters.deployments import Deployment, local
from support.clusters.hadoop import Yarn
from support.clusters.standalone import SparkCluster
from support.frames.scenario import SinkResult, table
from support.guard import Guard

_RESULTS: list[SinkResult] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _RESULTS:
        terminalreporter.section("kills of sinks to files and tables")
        for line in table(_RESULTS):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def results() -> list[SinkResult]:
    """The rows of the table."""
    return _RESULTS


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Deployment]:
    """Spark in local mode."""
    guard = Guard(end_all, tmp_path)
    yield local(tmp_path)
    guard.close()


@pytest.fixture
def two_workers(tmp_path: Path) -> Iterator[SparkCluster]:
    """A standalone cluster with two workers, each of which has slots for all tasks."""
    with running(SparkCluster(tmp_path / "spark", workers=2, cores=10)) as made:
        yield made


@pytest.fixture
def hadoop(tmp_path: Path) -> Iterator[Yarn]:
    """A YARN with two NodeManagers on an HDFS with two DataNodes."""
    with running(Yarn(tmp_path / "hadoop")) as made:
        yield made
