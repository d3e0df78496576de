"""Fixtures and the table of tests on real clusters. Each cluster runs for as long as the tests of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.clusters.hadoop import Yarn
from support.clusters.scenario import Result, table
from support.clusters.standalone import SparkCluster

_RESULTS = pytest.StashKey[list[Result]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_RESULTS] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if results := config.stash[_RESULTS]:
        terminalreporter.section("kills on clusters: seconds to recover, longest false RUNNING in seconds, records")
        for line in table(results):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def results(pytestconfig: pytest.Config) -> list[Result]:
    """The rows of the table."""
    return pytestconfig.stash[_RESULTS]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A standalone cluster with two workers of two slots each."""
    made = SparkCluster(tmp_path_factory.mktemp("spark"), workers=2, cores=2)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    """A YARN with two NodeManagers on an HDFS with two DataNodes."""
    made = Yarn(tmp_path_factory.mktemp("hadoop"))
    try:
        made.start()
        yield made
    finally:
        made.stop()
