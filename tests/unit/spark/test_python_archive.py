"""Tests of packing a Python environment, without an index of packages: what is installed, and how the archive is named."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

from sluiceway.errors import ConfigError, MissingToolError
from sluiceway.installation import install_command
from sluiceway.spark import python_archive
from sluiceway.spark.python_archive import pack_new, pack_venv

pytest.importorskip("venv_pack", reason="venv-pack is in the extra 'package'")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    _distribution(folder, "My_Connectors", "1.2")
    return folder


def _distribution(environment: Path, name: str, release: str, *, editable: bool = False, code: str = "x") -> None:
    site = next(environment.glob("lib/python*/site-packages"))
    folder = site / f"{name}-{release}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n")
    (folder / "RECORD").write_text(f"{name}.py,sha256={code},1\n../../../bin/tool,sha256=varies,1\n")
    if editable:
        (folder / "direct_url.json").write_text('{"url": "file:///src", "dir_info": {"editable": true}}')
    (site / f"{name}.py").touch()


def test_an_environment_is_packed_with_its_modules_and_a_link_to_python(environment: Path, tmp_path: Path) -> None:
    archive = pack_venv(environment, output=tmp_path / "env.tar.gz")
    assert archive.distributions == ("my-connectors 1.2",)
    assert archive.python_version == ".".join(map(str, sys.version_info[:3]))
    with tarfile.open(archive.path) as packed:
        names = packed.getnames()
        link = packed.getmember("bin/python")
    assert any(name.endswith("My_Connectors.py") for name in names)
    assert link.issym()
    assert archive.path.stat().st_mode & 0o777 == 0o644


def test_the_link_leads_to_the_clusters_python(environment: Path, tmp_path: Path) -> None:
    archive = pack_venv(environment, python_prefix="/opt/py", output=tmp_path / "env.tar.gz")
    assert archive.python_prefix == "/opt/py"
    with tarfile.open(archive.path) as packed:
        links = {packed.getmember(name).linkname for name in packed.getnames() if name.startswith("bin/python")}
    assert any(link.startswith("/opt/py/bin/") for link in links)


def test_the_default_name_follows_from_the_contents(environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = pack_venv(environment).path
    assert first.parent == tmp_path
    assert first.name.startswith("sluiceway-env-")
    assert pack_venv(environment).path == first
    _distribution(environment, "My_Connectors", "1.2", code="y")
    try:
        assert pack_venv(environment).path != first
    finally:
        _distribution(environment, "My_Connectors", "1.2")
    assert pack_venv(environment, python_prefix="/opt/py").path != first


def test_editable_distributions_are_reported(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    _distribution(folder, "mine", "1", editable=True)
    assert pack_venv(folder, output=tmp_path / "env.tar.gz").editable == ("mine",)


def test_a_folder_without_an_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a virtual environment"):
        pack_venv(tmp_path)


def test_an_output_with_an_unknown_suffix_is_refused(environment: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be written: Unknown file extension"):
        pack_venv(environment, output=tmp_path / "env.rar")


def test_an_unknown_extra_is_refused() -> None:
    with pytest.raises(ConfigError, match="jdbx for configuration --extra"):
        pack_new([], extras=["jdbx"])


def test_a_python_that_does_not_exist_is_reported() -> None:
    with pytest.raises(MissingToolError, match="/none/python cannot be started"):
        pack_new([], python="/none/python")


def test_without_venv_pack_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "venv_pack", None)
    with pytest.raises(MissingToolError, match=re.escape(install_command("package"))):
        pack_new([])


def test_versions_are_those_installed_here_unless_a_requirement_has_its_own() -> None:
    here = f"orjson=={version('orjson')}"
    assert here in python_archive._constraints([])
    assert here in python_archive._constraints(["orjson", "other==1"])
    for own in ("orjson==1", "orjson>=3", "orjson @ https://h/o.whl", "./dist/orjson-1.0-py3-none-any.whl"):
        assert here not in python_archive._constraints([own])
    assert not any(line.startswith("sluiceway==") for line in python_archive._constraints([]))


def test_an_extra_is_the_one_in_the_distributions_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["orjson>=3.10", "pymysql; extra == 'jdbc'", 'sqlalchemy>=2.0.40; extra == "jdbc"', 'pytest; extra == "test"']
    monkeypatch.setattr(python_archive, "requires", lambda name: lines)
    assert python_archive._extra("jdbc") == ["pymysql", "sqlalchemy>=2.0.40"]
