"""Fixtures of executors on real stacks, and the table of what was killed, printed at the end of the run."""

from __future__ import annotations

import os

import pytest

from support.airflow_home import isolate_airflow
from support.faults.row_report import pytest_runtest_makereport, row, rows_of  # noqa: F401 (a hook and a fixture)
from support.faults.rows import table

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
