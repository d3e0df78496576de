"""Fixtures and the table of tests on real clusters. Each cluster runs for as long as the tests of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.clusters.daemons import running
from support.clusters.hadoop import Yarn
from support.clusters.scenario import Result, table
from support.clusters.standalone import SparkCluster

_RESULTS: list[Result] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _RESULTS:
        terminalreporter.section("kills on clusters: seconds to recover, longest false RUNNING in seconds, records")
        for line in table(_RESULTS):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def results() -> list[Result]:
    """The rows of the table."""
    return _RESULTS


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A standalone cluster with two workers of two slots each."""
    with running(SparkCluster(tmp_path_factory.mktemp("spark"), workers=2, cores=2)) as made:
        yield made


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    """A YARN with two NodeManagers on an HDFS with two DataNodes."""
    with running(Yarn(tmp_path_factory.mktemp("hadoop"))) as made:
        yield made
