"""Tests the installation of Singer plugins from wheels of this machine, with a real pip and no index."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from sluiceway.cli.main import main
from sluiceway.errors import ConnectError, MissingToolError, NotFoundError
from sluiceway.java_plugins.installed import read_lock
from sluiceway.java_plugins.locations import plugin_locations
from sluiceway.java_plugins.plugin_archive import pack_plugins
from sluiceway.singer_plugins import install, programs
from sluiceway.singer_plugins.cached import cached_program
from sluiceway.singer_plugins.programs import find_program, find_python, read_plugin, use_singer_plugins

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
TAP = "import json, sys\n\ndef main():\n    import helper\n    print(json.dumps([sys.argv[1:], helper.NAME, sys.path]))\n"


def wheel(folder: Path, name: str, version: str = "1.0", *, script: str = "", needs: str = "", module: str = "") -> Path:
    """Write a wheel of one module, with a script, and return its path."""
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + (f"Requires-Dist: {needs}\n" if needs else "")
    files = {
        f"{name.replace('-', '_')}.py": module or TAP,
        f"{about}/METADATA": metadata,
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if script:
        files[f"{about}/entry_points.txt"] = f"[console_scripts]\n{script} = {name.replace('-', '_')}:main\n"
    record = "".join(f"{path},sha256={digest(text)},{len(text)}\n" for path, text in files.items())
    made = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**files, f"{about}/RECORD": f"{record}{about}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return made


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the package index, with a tap and what it needs."""
    folder = tmp_path / "index"
    folder.mkdir()
    wheel(folder, "helper", module="NAME = 'helper'\n")
    wheel(folder, "acme-tap-shop", script="tap-shop", needs="helper")
    wheel(folder, "no-program", needs="helper")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(install, "_OLD_NEEDS", ())
    monkeypatch.setattr(programs, "_folders", [])
    return folder


def run(command: list[str], *arguments: str) -> tuple[list[str], str, list[str]]:
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True, cwd="/")
    arguments_, name, path = json.loads(done.stdout)
    return arguments_, name, path


def test_a_tap_is_installed_by_one_command_and_runs_with_its_own_packages_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plugins"
    assert main(["plugins", "install", "--to", str(folder), "singer:acme-tap-shop"]) == 0
    printed = capsys.readouterr().out
    assert f"Installed acme-tap-shop-1.0 in {folder}/acme-tap-shop-1.0" in printed
    assert '"singer.tap": "tap-shop"' in printed
    use_singer_plugins([folder])
    arguments, name, path = run(find_program("tap-shop"), "--config", "a b")
    assert (arguments, name) == (["--config", "a b"], "helper")
    packages = str(folder / "acme-tap-shop-1.0" / "packages")
    assert path[0] == packages
    assert not [each for each in path if "site-packages" in each or "dist-packages" in each]
    assert main(["plugins", "install", "--to", str(folder), "singer:acme-tap-shop==1.0"]) == 0
    assert "is installed already" in capsys.readouterr().out
    assert not plugin_locations([folder])


def test_a_target_is_installed_with_a_config_of_a_sink_to_begin_with(
    tmp_path: Path, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel(index, "acme-target-shop", script="target-shop", needs="helper")
    assert main(["plugins", "install", "--to", str(tmp_path / "plugins"), "singer:acme-target-shop"]) == 0
    config = json.JSONDecoder().raw_decode(capsys.readouterr().out.partition("A config to begin with:\n")[2])[0]["config"]
    assert config == {
        "connector.class": "SingerSink",
        "topics": "orders",
        "singer.target": "target-shop",
        "singer.config": "{}",
    }


def test_the_lock_has_each_package_and_repeats_the_installation(tmp_path: Path, index: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert main(["plugins", "install", "--to", str(here), "singer:acme-tap-shop"]) == 0
    lock = read_lock(here / "plugins.lock")["acme-tap-shop-1.0"]
    hashes = {
        f"{name}==1.0": hashlib.sha256((index / f"{name.replace('-', '_')}-1.0-py3-none-any.whl").read_bytes()).hexdigest()
        for name in ("acme-tap-shop", "helper")
    }
    assert (lock.source, lock.python, lock.sha256) == ("singer:acme-tap-shop==1.0", VERSION, hashes)
    wheel(index, "helper", "2.0", module="NAME = 'new'\n")
    assert main(["plugins", "install", "--to", str(there), "--locked", str(here / "plugins.lock")]) == 0
    assert (there / "plugins.lock").read_bytes() == (here / "plugins.lock").read_bytes()
    use_singer_plugins([there])
    assert run(find_program("tap-shop"))[1] == "helper"
    wheel(index, "helper", module="NAME = 'changed'\n")
    assert main(["plugins", "install", "--to", str(tmp_path / "third"), "--locked", str(here / "plugins.lock")]) == 1
    assert not list((tmp_path / "third").glob("acme*"))


def test_an_upgrade_installs_the_newest_version(tmp_path: Path, index: Path) -> None:
    folder = tmp_path / "plugins"
    assert main(["plugins", "install", "--to", str(folder), "singer:acme-tap-shop"]) == 0
    wheel(index, "acme-tap-shop", "2.0", script="tap-shop", needs="helper")
    assert main(["plugins", "upgrade", "--to", str(folder), "acme-tap-shop-1.0"]) == 0
    assert list(read_lock(folder / "plugins.lock")) == ["acme-tap-shop-2.0"]
    assert not (folder / "acme-tap-shop-1.0").exists()
    assert main(["plugins", "remove", "--from", str(folder), "acme-tap-shop-2.0"]) == 0
    assert not (folder / "acme-tap-shop-2.0").exists()


def test_a_wheel_of_this_machine_is_installed_and_repeated_but_not_upgraded(tmp_path: Path, index: Path) -> None:
    folder, file = tmp_path / "plugins", index / "acme_tap_shop-1.0-py3-none-any.whl"
    assert main(["plugins", "install", "--to", str(folder), f"singer:{file}"]) == 0
    lock = folder / "plugins.lock"
    assert read_lock(lock)["acme-tap-shop-1.0"].source == f"singer:{file}"
    assert main(["plugins", "install", "--to", str(tmp_path / "there"), "--locked", str(lock)]) == 0
    assert main(["plugins", "upgrade", "--to", str(folder), "acme-tap-shop-1.0"]) == 1


@pytest.mark.parametrize("source", ["singer:", "singer: ", "singer:none-such", "singer:no-program", "singer:/none.whl"])
def test_what_is_no_tap_leaves_nothing(tmp_path: Path, source: str) -> None:
    folder = tmp_path / "plugins"
    assert main(["plugins", "install", "--to", str(folder), source]) == 1
    assert [each.name for each in folder.iterdir() if not each.name.startswith(".")] == []


def test_a_python_that_is_missing_is_named(tmp_path: Path) -> None:
    assert main(["plugins", "install", "--to", str(tmp_path), "--python", "/none/python", "singer:acme-tap-shop"]) == 1
    with pytest.raises(MissingToolError, match=r"This machine has no Python 3\.1"):
        find_python("3.1")


def test_an_installed_tap_runs_with_another_python_of_its_version(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    assert main(["plugins", "install", "--to", str(folder), "singer:acme-tap-shop"]) == 0
    file = folder / "acme-tap-shop-1.0" / "singer.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "executable": "/none/python"}))
    use_singer_plugins([folder])
    assert run(find_program("tap-shop"))[1] == "helper"
    file.write_text("{")
    with pytest.raises(ConnectError, match=r"singer.json cannot be read"):
        read_plugin(file.parent)


def test_a_program_of_two_plugins_is_refused(tmp_path: Path, index: Path) -> None:
    wheel(index, "other-tap", script="tap-shop")
    sources = ["singer:acme-tap-shop", "singer:other-tap"]
    assert main(["plugins", "install", "--to", str(tmp_path / "plugins"), *sources]) == 0
    use_singer_plugins([tmp_path / "plugins"])
    with pytest.raises(ConnectError, match="Several plugins have the program tap-shop"):
        find_program("tap-shop")


def test_requirements_of_a_connector_are_installed_once(tmp_path: Path) -> None:
    told: list[str] = []
    for _ in range(2):
        command = cached_program("tap-shop", " acme-tap-shop ", None, told.append)
        assert run(command)[1] == "helper"
    assert len(told) == 1
    assert str(tmp_path / "cache") in command[-2]
    with pytest.raises(NotFoundError, match=r"acme-tap-shop has no program tap-none\. It has: tap-shop"):
        cached_program("tap-none", "acme-tap-shop", None, told.append)


def test_a_packed_tap_runs_where_it_is_unpacked(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    assert main(["plugins", "install", "--to", str(folder), "singer:acme-tap-shop"]) == 0
    packed = pack_plugins(folder, tmp_path)
    assert (packed.names, packed.in_java) == (("acme-tap-shop-1.0",), False)
    assert pack_plugins(folder, tmp_path) == packed
    with tarfile.open(packed.path) as archive:
        archive.extractall(tmp_path / "there", filter="data")
    use_singer_plugins([tmp_path / "there" / "path"])
    _, name, path = run(find_program("tap-shop"))
    assert (name, path[0]) == ("helper", str(tmp_path / "there" / "path" / "acme-tap-shop-1.0" / "packages"))
