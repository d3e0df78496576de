"""Levels of Java loggers in processes that run, and in those that start later."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sluiceway.herder.loggers import Loggers
from sluiceway.java_plugins import log_levels
from sluiceway.java_plugins.log_levels import follow_java_levels, set_java_levels


class Process:
    def __init__(self) -> None:
        self.levels: dict[str, str] = {}

    def set_levels(self, levels: Mapping[str, str]) -> None:
        self.levels |= levels


@pytest.fixture(autouse=True)
def no_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_levels, "_levels", {})


def test_a_level_reaches_processes_that_run_and_later_ones() -> None:
    first, second = Process(), Process()
    follow_java_levels(first)
    assert first.levels == {}
    set_java_levels({"org.a": "DEBUG"})
    follow_java_levels(second)
    set_java_levels({"root": "WARN"})
    assert first.levels == second.levels == {"org.a": "DEBUG", "root": "WARN"}


def test_levels_of_the_rest_api_reach_java_processes() -> None:
    process = Process()
    follow_java_levels(process)
    loggers = Loggers("orders")
    loggers.set("org.test.a.b", "WARN")
    assert loggers.set("org.test.a", "trace") == ["org.test.a", "org.test.a.b"]
    assert process.levels == {"org.test.a": "TRACE", "org.test.a.b": "TRACE"}


def test_the_level_of_a_connector_is_that_of_all_loggers_in_its_java_processes() -> None:
    process = Process()
    follow_java_levels(process)
    Loggers("orders").set("connector.orders", "DEBUG")
    Loggers("orders").set("connector.other", "ERROR")
    assert process.levels == {"root": "DEBUG", "connector.other": "ERROR"}
    Loggers("orders").set("connector.orders", "INFO")
