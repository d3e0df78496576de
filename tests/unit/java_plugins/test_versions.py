"""Exact versions of Java plugins, from a Java process that is replaced here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.java_plugins import versions
from sluiceway.java_plugins.index import PluginIndex
from sluiceway.java_plugins.versions import check_versions
from support.java_classes import source_jar

ORDERS = "org.example.OrdersSourceConnector"

Answers = list[dict[str, str]]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PluginIndex:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(versions, "_tried", set())
    source_jar(tmp_path / "path/orders/orders-1.0.jar")
    (tmp_path / "path/empty").mkdir()
    return PluginIndex([tmp_path / "path"])


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[list[dict[str, Any]]]]:
    """Make Java processes answer so, or raise so. Returns what they are asked."""

    def answer_with(answer: Any) -> list[list[dict[str, Any]]]:
        asked: list[list[dict[str, Any]]] = []

        def ask(_slot: object, plugins: list[dict[str, Any]]) -> Any:
            asked.append(plugins)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(versions, "_ask", ask)
        return asked

    return answer_with


def test_versions_are_asked_once_for_each_state_of_the_jars(index: PluginIndex, java: Any, tmp_path: Path) -> None:
    asked = java([{"version": "1.0.1"}])

    for each in (index, PluginIndex([tmp_path / "path"])):
        check_versions(each, each.locations)
        assert [plugin.version for plugin in each.plugins()] == ["1.0.1"]

    assert [[plugin["class"] for plugin in plugins] for plugins in asked] == [[ORDERS]]


def test_a_class_that_cannot_be_created_is_not_listed(index: PluginIndex, java: Any) -> None:
    java([{"error": "java.lang.UnsupportedClassVersionError: too new"}])

    check_versions(index, index.locations)

    assert index.plugins() == []
    assert list(index.problems().values()) == [
        [f"{ORDERS} cannot be created: java.lang.UnsupportedClassVersionError: too new"],
    ]
    assert index.find(ORDERS) is not None  # whoever uses it gets the error of Java


@pytest.mark.parametrize("error", [ConnectError("exit code 1"), MissingToolError("no Java")])
def test_without_an_answer_the_jars_versions_stay(
    index: PluginIndex, java: Any, error: ConnectError, caplog: pytest.LogCaptureFixture
) -> None:
    asked = java(error)

    for _ in range(2):
        check_versions(index, index.locations)

    assert [plugin.version for plugin in index.plugins()] == ["1.0"]
    assert len(asked) == 1
    assert str(error) in caplog.text
