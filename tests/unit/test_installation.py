"""How messages say to install an extra, for each way in which Sluiceway can have been installed."""

from __future__ import annotations

import ast
import configparser
import json
import re
import shlex
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import sluiceway
from sluiceway import installation
from sluiceway.cli.main import _EXTRAS as OF_COMMANDS
from sluiceway.connectors.delta.config import PREFIX as DELTA
from sluiceway.connectors.files.filesystem.objects import _EXTRAS as OF_STORES
from sluiceway.connectors.iceberg.config import PREFIX as ICEBERG
from sluiceway.installation import install_command, is_editable

ROOT = Path(__file__).parents[2]
WHEEL = f"sluiceway-{sluiceway.__version__}-py3-none-any.whl"
MODULES = sorted(each for each in (ROOT / "plugin/sluiceway").rglob("*.py") if each.name != "installation.py")


def installed_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recorded: str | None) -> Distribution:
    """Let Sluiceway be installed with a ``direct_url.json``, or none, and return its distribution."""
    metadata = tmp_path / "sluiceway-1.dist-info"
    metadata.mkdir()
    if recorded is not None:
        (metadata / "direct_url.json").write_text(recorded)
    found = Distribution.at(metadata)
    monkeypatch.setattr(installation, "distribution", lambda name: found)
    return found


@pytest.mark.parametrize("folder", ["dist", "my wheels", "it's", "größe%20"])
def test_the_wheel_is_installed_from_where_it_was(folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = tmp_path / folder / WHEEL
    wheel.parent.mkdir()
    wheel.touch()
    installed_from(monkeypatch, tmp_path, json.dumps({"url": wheel.as_uri(), "archive_info": {}}))
    assert shlex.split(install_command("jdbc", "pymssql")) == ["pip", "install", f"{wheel}[jdbc]", "pymssql"]


def test_a_wheel_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed_from(monkeypatch, tmp_path, json.dumps({"url": (tmp_path / "gone" / WHEEL).as_uri(), "archive_info": {}}))
    assert install_command("jdbc") == f"pip install '{WHEEL}[jdbc]'"


@pytest.mark.parametrize(("editable", "options"), [(True, ["-e"]), (False, [])])
def test_a_checkout_is_installed_as_it_was(
    editable: bool, options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = installed_from(monkeypatch, tmp_path, json.dumps({"url": tmp_path.as_uri(), "dir_info": {"editable": editable}}))
    assert shlex.split(install_command("files")) == ["pip", "install", *options, f"{tmp_path}[files]"]
    assert is_editable(found) is editable


@pytest.mark.parametrize(
    ("recorded", "requirement"),
    [
        (None, "sluiceway[otel]"),
        ("{", "sluiceway[otel]"),
        ({"url": f"https://example.com/{WHEEL}", "archive_info": {}}, f"sluiceway[otel] @ https://example.com/{WHEEL}"),
        ({"url": "https://example.com/s.git", "vcs_info": {"vcs": "git"}}, "sluiceway[otel] @ git+https://example.com/s.git"),
    ],
)
def test_what_is_not_of_this_machine_is_a_requirement(
    recorded: dict[str, object] | str | None, requirement: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed_from(monkeypatch, tmp_path, json.dumps(recorded) if isinstance(recorded, dict) else recorded)
    [found] = shlex.split(install_command("otel"))[2:]
    assert found == requirement
    assert Requirement(found).extras == {"otel"}


def test_modules_that_were_not_installed_name_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", missing)
    assert install_command("s3") == f"pip install '{WHEEL}[s3]'"


def test_no_message_writes_the_command_itself() -> None:
    own = re.compile(r"sluiceway\[|pip install '?sluiceway")
    found = [f"{file.relative_to(ROOT)}: {text}" for file in MODULES for text in texts(file) if own.search(text)]
    assert found == []


def test_each_extra_that_a_message_names_exists() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    named = {extra for file in MODULES for extra in extras(file)}
    named |= {*OF_COMMANDS.values(), *OF_STORES.values(), DELTA.rstrip("."), ICEBERG.rstrip(".")}
    assert named - set(setup["options.extras_require"]) == set()
    assert len(named) > 10


def texts(file: Path) -> Iterator[str]:
    """Yield the texts of a module that are not documentation."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def extras(file: Path) -> Iterator[str]:
    """Yield the extras in a module's calls of ``install_command``."""
    text = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "install_command" in text else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "install_command":
            yield from (each.value for each in node.args[:1] if isinstance(each, ast.Constant) and isinstance(each.value, str))
