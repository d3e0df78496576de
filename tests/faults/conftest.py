"""Runs the fault matrix: each test fills in a row, and the table stands at the end of the run."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import support
from support.faults.broker import FaultyBroker
from support.faults.cluster import Cluster
from support.faults.guarantee import Guarantee
from support.faults.rows import NewRow, Row, table
from support.faults.world import World, world

_ROWS = pytest.StashKey[list[Row]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_ROWS] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash[_ROWS]
    if rows:
        terminalreporter.section("faults")
        for line in table(rows):
            terminalreporter.write_line(line)


@pytest.fixture
def row(request: pytest.FixtureRequest) -> NewRow:
    """Open a row of the table: ``row(fault, expected)``."""

    def new(fault: str, expected: str) -> Row:
        made = Row(fault, expected)
        request.config.stash[_ROWS].append(made)
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
def own_connectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let drivers that are started from now on find the connectors in tests/support/faults."""
    paths = [str(Path(support.__file__).parent.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


@pytest.fixture
def chance() -> random.Random:
    """The source of random fault points; SLUICEWAY_FAULT_SEED repeats a run."""
    seed = int(os.environ.get("SLUICEWAY_FAULT_SEED", random.SystemRandom().randrange(10**6)))
    print(f"SLUICEWAY_FAULT_SEED={seed}")
    return random.Random(seed)  # noqa: S311 (where to kill)


@pytest.fixture
def rounds() -> int:
    """How often a fault is repeated within a test; SLUICEWAY_FAULT_ROUNDS sets it."""
    return int(os.environ.get("SLUICEWAY_FAULT_ROUNDS", "3"))
