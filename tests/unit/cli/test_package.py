"""Tests of ``sluiceway package``: which environment it packs, and what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluiceway.cli.main import main
from sluiceway.java_plugins import plugin_archive
from sluiceway.java_plugins.plugin_archive import PluginArchive
from sluiceway.spark import python_archive
from sluiceway.spark.python_archive import PythonArchive


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """Record the calls that pack; the archive has a plugin in editable mode."""
    calls: list[Any] = []
    file = tmp_path / "env.tar.gz"
    file.write_bytes(bytes(1_500_000))

    def pack(what: Any, **options: Any) -> PythonArchive:
        calls.append((what, options))
        return PythonArchive(file, "3.11.7", "/usr", ("orjson 3.13.0",), ("mine",))

    monkeypatch.setattr(python_archive, "pack_new", pack)
    monkeypatch.setattr(python_archive, "pack_venv", pack)
    monkeypatch.setattr(python_archive, "plugin_distributions", lambda: ["orjson", "their-connectors"])
    return calls


def test_it_prints_the_archive_and_the_settings(packed: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["package", "my-connectors==1.2", "--extra", "jdbc", "--python-prefix", "/usr"]) == 0
    what, options = packed[0]
    assert what == ["my-connectors==1.2"]
    assert (options["extras"], options["python_prefix"], options["output"]) == (["jdbc"], "/usr", None)
    out = capsys.readouterr().out
    assert f"Packed {tmp_path}/env.tar.gz (1.5 MB): Python 3.11.7, orjson 3.13.0" in out
    assert "needs /usr/bin/python3.11" in out
    assert f"spark.yarn.dist.archives={tmp_path}/env.tar.gz#environment" in out
    assert f"spark.archives={tmp_path}/env.tar.gz#environment" in out
    assert "spark.pyspark.python=./environment/bin/python" in out


def test_it_names_plugins_that_are_missing_in_the_archive(packed: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["package"]) == 0
    out = capsys.readouterr().out
    assert "although they have plugins: their-connectors. To add them" in out
    assert "installation is editable: mine." in out


def test_an_existing_environment_is_packed_as_it_is(packed: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["package", "--venv", "/my/venv"]) == 0
    assert packed[0][0] == Path("/my/venv")
    assert main(["package", "--venv", "/my/venv", "more"]) == 1
    assert "install the requirements into it" in capsys.readouterr().err


def test_java_plugins_are_packed_beside_it(
    packed: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICEWAY_HOME", str(tmp_path / "home"))
    archive, folders = tmp_path / "plugins.tar.gz", []
    archive.write_bytes(bytes(2_000_000))

    def pack(folder: Path, target: Path) -> PluginArchive:
        folders.append((folder, target))
        return PluginArchive(archive, ("orders", "timer"))

    monkeypatch.setattr(plugin_archive, "pack_plugins", pack)
    assert main(["package", "--plugins"]) == 0
    assert main(["package", "--plugins", "/opt/plugins", "--output", f"{tmp_path}/env.tar.gz"]) == 0
    assert folders == [(tmp_path / "home" / "plugins", Path()), (Path("/opt/plugins"), tmp_path)]
    lines = capsys.readouterr().out.splitlines()
    assert f"Packed {archive} (2.0 MB): orders, timer" in lines
    for key in ("spark.yarn.dist.archives", "spark.archives"):
        assert f"  {key}={tmp_path}/env.tar.gz#environment,{archive}#plugins" in lines
    assert "  spark.executorEnv.KAFKA_HOME=./plugins/runtime" in lines
    assert "  plugin.path=...,./plugins/path" in lines
