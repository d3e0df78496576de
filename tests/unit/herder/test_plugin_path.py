"""Plugins in the folders of ``plugin.path`` can be used in configs and are listed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway import discovery
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.herder.validation import installed

MODULE = """
from sluiceway.connectors.file.source import FileStreamSourceConnector

class Mine(FileStreamSourceConnector):
    java_class = None

    @classmethod
    def version(cls):
        return "7.1"
"""


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("plugin_path_"):
            del sys.modules[name]
    discovery.plugins.cache_clear()


def package(folder: Path, name: str, *, entry_point: str | None = None) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(MODULE)
    if entry_point:
        info = folder / f"{name}-7.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 7.1\n")
        (info / "entry_points.txt").write_text(f"[sluiceway.connectors]\n{entry_point} = {name}:Mine\n")


def test_packages_in_a_folder_and_in_its_subfolders_are_found(tmp_path: Path) -> None:
    package(tmp_path / "one", "plugin_path_a")
    package(tmp_path / "two" / "b-1.0", "plugin_path_b", entry_point="MineB")
    (tmp_path / "two" / "java-thing").mkdir()
    (tmp_path / "two" / "java-thing" / "x.jar").write_text("")
    assert "plugin_path_b.Mine" not in {each.name for each in installed()}  # which is remembered
    added = use_plugin_path({"plugin.path": f"{tmp_path}/one, {tmp_path}/two"})
    assert added == [tmp_path / "one", tmp_path / "two" / "b-1.0"]
    assert discovery.connector_class("plugin_path_a.Mine").version() == "7.1"
    assert discovery.connector_class("MineB").__module__ == "plugin_path_b"
    assert ("plugin_path_b.Mine", "source", "7.1") in {(each.name, each.type, each.version) for each in installed()}


def test_a_folder_is_added_once_and_after_installed_packages(tmp_path: Path) -> None:
    package(tmp_path, "plugin_path_c")
    before = list(sys.path)
    assert use_plugin_path({"plugin.path": str(tmp_path)}) == [tmp_path]
    assert use_plugin_path({"plugin.path": str(tmp_path)}) == []
    assert sys.path == [*before, str(tmp_path)]


def test_a_missing_folder_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert use_plugin_path({"plugin.path": f"{tmp_path}/none"}) == []
    assert f"{tmp_path}/none" in caplog.text


def test_without_a_plugin_path_nothing_changes() -> None:
    assert use_plugin_path({}) == []
