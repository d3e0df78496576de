"""A pytest plugin for runs on a mutant: writes down the first failed test, shortens waits, and lets Hypothesis find the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

_WAIT_SECONDS = 10.0

FAILURES = "MUTANTS_FAILURES"
"""The environment variable with the path of the file to which the ids of failed tests are appended."""


def pytest_collection() -> None:
    """Try the same examples in each run, and do not spend time on simpler ones for the report; wait for seconds only."""
    from support import eventually  # from the copy of the tree: this module is also loaded by what makes the copy

    eventually.most = _WAIT_SECONDS
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", settings.default, derandomize=True, database=None, phases=phases)
    settings.load_profile("mutants")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write down a module that cannot be imported."""
    _write(report)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down a test that failed."""
    _write(report)


def _write(report: pytest.CollectReport | pytest.TestReport) -> None:
    if report.failed:
        with Path(os.environ[FAILURES]).open("a", encoding="utf-8") as failures:
            failures.write(f"{report.nodeid}\n")
