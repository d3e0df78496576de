"""The plugin.path that one JVM gets."""

from __future__ import annotations

import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluiceway.java_plugins.index import PluginIndex
from sluiceway.java_plugins.link_folders import link_folder
from support.java_classes import SOURCE, class_file, source_jar, write_jar


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_folder_links_the_jars_of_each_location_and_adds_missing_manifests(tmp_path: Path) -> None:
    listed = source_jar(tmp_path / "path/listed/lib/listed.jar")
    plain = write_jar(tmp_path / "path/plain.jar", {"a.B": class_file("a.B", SOURCE)})
    plugins = PluginIndex([tmp_path / "path"]).plugins()

    folder = link_folder(plugins)

    files = {str(each.relative_to(folder)): each.resolve() for each in folder.rglob("*") if each.is_file()}
    manifests = folder / "1-plain/sluiceway-manifests.jar"
    assert files == {"0-listed/listed.jar": listed, "1-plain/plain.jar": plain, "1-plain/sluiceway-manifests.jar": manifests}
    with zipfile.ZipFile(manifests) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {f"META-INF/services/{SOURCE}": b"a.B\n"}


def test_the_same_plugins_share_a_folder_also_at_once(tmp_path: Path) -> None:
    source_jar(tmp_path / "path/a/orders.jar")
    source_jar(tmp_path / "path/b/orders.jar")
    plugins = PluginIndex([tmp_path / "path"]).plugins()

    with ThreadPoolExecutor(8) as threads:
        folders = set(threads.map(lambda _: link_folder(plugins), range(16)))

    assert len(folders) == 1
    assert link_folder(plugins[:1]) not in folders
    assert [each.name for each in (tmp_path / "cache/sluiceway/java-plugins/links").iterdir() if each.name.startswith(".")] == []


def test_jars_of_one_name_in_several_folders_are_all_linked(tmp_path: Path) -> None:
    for name in ("x", "y"):
        source_jar(tmp_path / f"path/one/{name}/orders.jar", f"{name}.OrdersSourceConnector")

    folder = link_folder(PluginIndex([tmp_path / "path"]).plugins())

    assert sorted(each.name for each in (folder / "0-one").iterdir()) == ["1-orders.jar", "orders.jar"]


def test_a_cache_folder_that_cannot_be_written_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("no folder")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source_jar(tmp_path / "path/orders.jar")

    assert link_folder(PluginIndex([tmp_path / "path"]).plugins()).is_relative_to(tmp_path)
