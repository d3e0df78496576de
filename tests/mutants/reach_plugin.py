"""A pytest plugin that records which test functions execute which lines of the product.

``make mutants-map`` loads it. It gives coverage a context for each test function, whatever the function's parameters.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import coverage
import pytest

from mutants.reach import DATA, MODULES


class _ReachPlugin:
    """Records one process. xdist's workers write a file each."""

    def __init__(self, modules: list[str]) -> None:
        self._coverage = coverage.Coverage(
            data_file=str(DATA), data_suffix=str(os.getpid()), config_file=False, include=modules, messages=False
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid.partition("[")[0])
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()


def pytest_configure(config: pytest.Config) -> None:
    """Start recording, but not in the process that only gives tests to xdist's workers."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(_ReachPlugin(os.environ[MODULES].split(os.pathsep)))
