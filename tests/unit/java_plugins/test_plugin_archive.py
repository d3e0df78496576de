"""Java plugins and Kafka Connect's runtime in an archive for Spark."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from sluiceway.errors import ConfigError
from sluiceway.java_plugins import plugin_archive
from sluiceway.java_plugins.locations import plugin_locations
from sluiceway.java_plugins.plugin_archive import pack_plugins
from support.java_classes import source_jar, write_jar


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    runtime = write_jar(tmp_path / "libs" / "connect-api-4.3.0.jar", {})
    monkeypatch.setattr(plugin_archive, "runtime_jars", lambda: [runtime])
    source_jar(tmp_path / "plugins/orders/lib/orders.jar")
    source_jar(tmp_path / "plugins/alone.jar")
    (tmp_path / "plugins/orders/LICENSE").write_text("free")
    (tmp_path / "plugins/.installing-1").mkdir()
    (tmp_path / "plugins/.installing-1/half.jar").touch()
    (tmp_path / "plugins/plugins.lock").touch()
    return tmp_path / "plugins"


def test_an_archive_has_the_plugins_and_the_runtime(folder: Path, tmp_path: Path) -> None:
    packed = pack_plugins(folder, tmp_path)

    assert packed.names == ("alone.jar", "orders")
    with tarfile.open(packed.path) as archive:
        assert archive.getnames() == [
            "path/alone.jar",
            "path/orders/LICENSE",
            "path/orders/lib/orders.jar",
            "runtime/libs/connect-api-4.3.0.jar",
        ]
        archive.extractall(tmp_path / "there", filter="data")
    assert [place.name for place in plugin_locations([tmp_path / "there/path"])] == ["alone.jar", "orders"]
    assert packed.path.stat().st_mode & 0o777 == 0o644
    assert not list(tmp_path.glob(".sluiceway-plugins-*"))


def test_equal_plugins_give_an_equal_archive(folder: Path, tmp_path: Path) -> None:
    first = pack_plugins(folder, tmp_path)
    before = first.path.read_bytes()
    (folder / "orders/LICENSE").touch()
    assert pack_plugins(folder, tmp_path) == first
    assert first.path.read_bytes() == before
    (folder / "orders/LICENSE").write_text("other")
    assert pack_plugins(folder, tmp_path).path != first.path


def test_what_cannot_be_packed_is_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no plugins\. Install some"):
        pack_plugins(tmp_path / "none", tmp_path)
    with pytest.raises(ConfigError, match="cannot be written"):
        pack_plugins(folder, tmp_path / "none")
