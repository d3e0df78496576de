"""Hooks and a fixture for a table row for each test, which a conftest imports: the row holds if its test passes."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from support.faults.rows import NewRow, Row

_ROWS = pytest.StashKey[list[Row]]()
_ROW = pytest.StashKey[Row]()


def rows_of(config: pytest.Config) -> list[Row]:
    """Return the run's rows so far."""
    return config.stash.setdefault(_ROWS, [])


def shown_by(item: pytest.Item) -> tuple[int, ...]:
    """Return the rows of the fault matrix that a test covers; a parameter's mark overrides the test's."""
    marks = [mark for mark in item.own_markers if mark.name == "matrix"]
    return marks[-1].args if marks else ()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mark the row of a passed test as held."""
    report = yield
    if report.when == "call" and (row := item.stash.get(_ROW, None)) is not None:
        row.holds = report.passed
    return report


@pytest.fixture
def row(request: pytest.FixtureRequest) -> NewRow:
    """Add the test's row to the table: ``row(fault, expected)``."""

    def new(fault: str, expected: str) -> Row:
        made = Row(shown_by(request.node), fault, expected)
        rows_of(request.config).append(made)
        request.node.stash[_ROW] = made
        return made

    return new
