"""The folder of installed plugins and its lock file, also after a command that was killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sluiceway.errors import ConnectError, NotFoundError
from sluiceway.folders import write_atomically
from sluiceway.java_plugins import installed
from sluiceway.java_plugins.installed import LockedPlugin, PluginFolder, folder_name, read_lock
from sluiceway.java_plugins.locations import plugin_locations
from support.java_classes import source_jar


@pytest.fixture
def folder(tmp_path: Path) -> PluginFolder:
    return PluginFolder(tmp_path / "plugins")


def plugin(name: str, hash_: str = "ab") -> LockedPlugin:
    return LockedPlugin(name, f"org.example:{name}:1.0", {f"org.example:{name}:1.0": hash_})


def put(folder: PluginFolder, one: LockedPlugin, jar: str = "a.jar") -> None:
    with folder.changing() as work:
        source_jar(work / "content" / jar)
        folder.place(work / "content", one, work)


def state(folder: PluginFolder) -> dict[str, list[str]]:
    """Return the jars of each location that workers see."""
    return {place.name: [jar.name for jar in jars] for place, jars in plugin_locations([folder.path]).items()}


def test_a_plugin_is_there_and_in_the_lock_file(folder: PluginFolder) -> None:
    put(folder, plugin("orders"))
    put(folder, plugin("billing"))

    assert state(folder) == {"orders": ["a.jar"], "billing": ["a.jar"]}
    document = json.loads((folder.path / "plugins.lock").read_text())
    assert list(document["plugins"]) == ["billing", "orders"]
    assert document["plugins"]["orders"] == {"source": "org.example:orders:1.0", "sha256": {"org.example:orders:1.0": "ab"}}
    assert folder.has(plugin("orders"))
    assert not folder.has(plugin("orders", "cd"))
    assert folder.location("orders").stat().st_mode & 0o777 == 0o755


def test_a_plugin_that_is_there_is_replaced(folder: PluginFolder) -> None:
    put(folder, plugin("orders"))
    put(folder, plugin("orders", "cd"), "b.jar")

    assert state(folder) == {"orders": ["b.jar"]}
    assert folder.has(plugin("orders", "cd"))


def test_a_removed_plugin_leaves_nothing(folder: PluginFolder) -> None:
    put(folder, plugin("orders"))
    with folder.changing() as work:
        folder.remove("orders", work)

    assert (state(folder), folder.plugins()) == ({}, {})
    assert sorted(each.name for each in folder.path.iterdir()) == [".lock", "plugins.lock"]
    with folder.changing() as work, pytest.raises(NotFoundError, match=r"no installed plugin orders. None is installed"):
        folder.remove("orders", work)


def test_what_was_not_installed_is_left_alone(folder: PluginFolder) -> None:
    source_jar(folder.path / "orders" / "mine.jar")

    with pytest.raises(ConnectError, match="orders was not installed by this command"):
        put(folder, plugin("orders"))
    assert state(folder) == {"orders": ["mine.jar"]}


class _Killed(BaseException):
    """Ends a command where it is."""


def _first(folder: PluginFolder) -> None:
    put(folder, plugin("orders"))


def _second(folder: PluginFolder) -> None:
    put(folder, plugin("orders", "cd"), "b.jar")


def _remove(folder: PluginFolder) -> None:
    with folder.changing() as work:
        folder.remove("orders", work)


@pytest.mark.parametrize("command", [_first, _second, _remove])
@pytest.mark.parametrize("step", range(4))
def test_a_killed_command_leaves_each_plugin_whole_or_away_and_can_be_repeated(
    folder: PluginFolder, command: Callable[[PluginFolder], None], step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command is not _first:
        put(folder, plugin("orders"))
    steps = 0

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def counting(*args: object, **options: object) -> object:
            nonlocal steps
            steps += 1
            if steps > step:
                raise _Killed
            return call(*args, **options)

        return counting

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", counted(Path.rename))
        patch.setattr(installed, "write_atomically", counted(write_atomically))
        patch.setattr("tempfile.TemporaryDirectory.cleanup", lambda _: None)
        patch.setattr("tempfile.TemporaryDirectory.__exit__", lambda *_: None)
        try:
            command(folder)
        except _Killed:
            pass
        else:
            assert steps <= step

    locked = folder.plugins().get("orders")
    if "orders" in state(folder):
        assert state(folder)["orders"] == (["a.jar"] if locked == plugin("orders") else ["b.jar"])
    if command is _remove and locked is None:
        return
    command(folder)
    assert state(folder) == ({} if command is _remove else {"orders": ["a.jar" if command is _first else "b.jar"]})
    assert not list(folder.path.glob(".installing-*"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 2, "plugins": {}}',
        '{"version": 1, "plugins": []}',
        '{"version": 1, "plugins": {"a": {}}}',
        '{"version": 1, "plugins": {"../a": {"source": "x", "sha256": {}}}}',
        '{"version": 1, "plugins": {".a": {"source": "x", "sha256": {}}}}',
    ],
)
def test_a_damaged_lock_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "plugins.lock").write_text(text)

    with pytest.raises(ConnectError, match=r"plugins\.lock"):
        read_lock(tmp_path / "plugins.lock")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("camel-timer-0.7.2", "camel-timer-0.7.2"),
        ("../../etc", "etc"),
        (".hidden", "hidden"),
        ("a b/c", "a_b_c"),
        ("...", "plugin"),
        ("kafka+x_1", "kafka+x_1"),
    ],
)
def test_names_of_folders(text: str, name: str) -> None:
    assert folder_name(text) == name


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConnectError, match="cannot be changed"), PluginFolder(tmp_path / "file").changing():
        pass
