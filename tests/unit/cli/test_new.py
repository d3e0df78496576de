"""Tests of ``sluiceway new``: which names it takes, what it writes, and that this is code that its reader can keep."""

from __future__ import annotations

import ast
import keyword
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from sluiceway.cli import new
from sluiceway.cli.main import main
from sluiceway.config.connector_files import read_connector_file
from sluiceway.config.properties import read_properties
from sluiceway.errors import ConfigError

ROOT = Path(__file__).parents[3]
SOURCE, SINK, BOTH = ("source",), ("sink",), ("source", "sink")
LONGEST = f"x9{'-9z' * 10}"
TAKEN = {*keyword.kwlist, *sys.stdlib_module_names}
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,12}(-[a-z0-9]{1,12}){0,3}", fullmatch=True).filter(
    lambda name: len(name) <= len(LONGEST) and new.module_name(name) not in TAKEN
)


def files(name: str, kinds: Sequence[str]) -> dict[str, str]:
    return dict(new.rendered(name, kinds))


def run(folder: Path, *command: str) -> str:
    """Run a Python module in a folder and return its output. It must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugin"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "kinds"), [((), SOURCE), (("--source",), SOURCE), (("--sink",), SINK), (("--sink", "--source"), BOTH)]
)
def test_the_options_choose_the_connectors(
    here: Path, options: Sequence[str], kinds: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "connector", "acme-orders", *options]) == 0
    written = {path.relative_to(here / "acme-orders").as_posix() for path in (here / "acme-orders").rglob("*") if path.is_file()}
    assert written == set(files("acme-orders", kinds))
    modules = {f"{kind}.py" for kind in BOTH} & {path.name for path in (here / "acme-orders/acme_orders").iterdir()}
    assert modules == {f"{kind}.py" for kind in kinds}
    assert f"Wrote {len(written)} files to acme-orders. Next" in capsys.readouterr().out


@pytest.mark.parametrize("kinds", [SOURCE, SINK, BOTH])
def test_the_printed_commands_name_files_that_are_written(
    here: Path, kinds: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "connector", "acme", "--to", "the folder/made", *(f"--{kind}" for kind in kinds)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  cd 'the folder/made'" in lines
    named = set(re.findall(r"examples/\S+", "\n".join(lines)))
    assert {each for each in named if not (here / "the folder/made" / each).exists()} == set()
    [standalone] = [line.split() for line in lines if "sluiceway standalone" in line]
    assert read_properties(here / "the folder/made" / standalone[2])["bootstrap.servers"] == "localhost:9092"
    configs = [read_connector_file(here / "the folder/made" / each) for each in standalone[3:]]
    assert [config["connector.class"] for config in configs] == {
        SOURCE: ["AcmeSource"],
        SINK: ["FileStreamSource", "AcmeSink"],
        BOTH: ["AcmeSource", "AcmeSink"],
    }[tuple(kinds)]


@pytest.mark.parametrize("name", ["", "-a", "a-", "a--b", "Acme", "2go", "a_b", "a.b", "a b", "a/b", "ä", f"{LONGEST}x", "a\n"])
def test_what_is_no_name_of_a_package_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="lower-case letters"):
        new.check_name(name, SOURCE)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("class", "a keyword of Python"),
        ("import", "a keyword of Python"),
        ("json", "Python has a module json"),
        ("sluiceway", "a module of Sluiceway"),
        ("tests", "a module of Sluiceway or of the generated package"),
        ("service", "a module of Sluiceway or of the generated package"),
        ("httpx", "httpx is installed in this environment"),
        ("pyyaml", "pyyaml is installed in this environment"),
        ("yaml", "PyYAML is installed in this environment"),
        ("confluent-kafka", "confluent-kafka is installed in this environment"),
        ("jdbc", "Sluiceway has a connector JdbcSource"),
        ("iceberg", "Sluiceway has a connector IcebergSource"),
    ],
)
def test_a_name_that_is_taken_is_refused(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        new.check_name(name, SOURCE)


@pytest.mark.parametrize("name", [each for each in keyword.kwlist if each.islower()])
def test_no_keyword_becomes_a_package(name: str) -> None:
    with pytest.raises(ConfigError, match="a keyword of Python"):
        new.check_name(name, SOURCE)


def test_a_built_in_connector_of_the_other_kind_takes_no_name() -> None:
    new.check_name("mirror", SINK)
    with pytest.raises(ConfigError, match="MirrorSource"):
        new.check_name("mirror", BOTH)


def test_a_package_that_is_installed_for_editing_may_be_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "acme_orders-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-orders\nVersion: 0.1.0\n")
    (installed / "top_level.txt").write_text("acme_orders\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="acme-orders is installed"):
        new.check_name("acme-orders", SOURCE)
    (installed / "direct_url.json").write_text('{"url": "file:///tmp/acme-orders", "dir_info": {"editable": true}}')
    new.check_name("acme-orders", SOURCE)


def test_a_folder_with_files_is_left_as_it_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "acme").mkdir()
    (here / "acme/pyproject.toml").write_text("mine")
    assert main(["new", "connector", "acme"]) == 1
    assert "acme exists and is not empty. Remove it, or choose another folder with --to." in capsys.readouterr().err
    assert [path.name for path in (here / "acme").iterdir()] == ["pyproject.toml"]
    assert (here / "acme/pyproject.toml").read_text() == "mine"
    assert main(["new", "connector", "acme", "--to", "other"]) == 0


def test_a_file_is_no_folder_to_write_to_but_an_empty_folder_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="exists and is not empty"):
        new.write("acme", SOURCE, tmp_path / "file")
    with pytest.raises(ConfigError, match=r"Cannot write to .*/file/below: Not a directory"):
        new.write("acme", SOURCE, tmp_path / "file/below")
    (tmp_path / "empty").mkdir()
    assert new.write("acme", SOURCE, tmp_path / "empty") == len(files("acme", SOURCE))


@given(name=NAMES, kinds=st.sampled_from((SOURCE, SINK, BOTH)))
def test_each_name_gives_modules_classes_and_entry_points_that_fit(name: str, kinds: Sequence[str]) -> None:
    written = files(name, kinds)
    module, prefix = new.module_name(name), new.class_prefix(name)
    assert module.isidentifier()
    assert prefix.isidentifier()
    assert not keyword.iskeyword(module)
    trees = {path: ast.parse(text) for path, text in written.items() if path.endswith(".py")}
    entry_points = re.findall(r'^(\w+) = "(\w+)\.(\w+):(\w+)"$', written["pyproject.toml"], re.MULTILINE)
    assert [alias for alias, *_ in entry_points] == [f"{prefix}{kind.title()}" for kind in kinds]
    for _alias, package, part, found in entry_points:
        defined = {each.name for each in trees[f"{package}/{part}.py"].body if isinstance(each, ast.ClassDef)}
        assert found in defined
    assert [line for text in written.values() for line in text.splitlines() if line.startswith(("#if", "#end"))] == []


@example(name=LONGEST, kinds=BOTH)
@example(name="z" * 32, kinds=BOTH)
@example(name="a", kinds=BOTH)
@settings(max_examples=5, deadline=None, phases=(Phase.explicit, Phase.generate))  # each takes a second
@given(name=NAMES, kinds=st.sampled_from((SOURCE, SINK, BOTH)))
def test_ruff_has_nothing_to_say(tmp_path_factory: pytest.TempPathFactory, name: str, kinds: Sequence[str]) -> None:
    folder = tmp_path_factory.mktemp("made")
    new.write(name, kinds, folder)
    assert run(folder, "ruff", "check", "--no-cache") == "All checks passed!\n"
    assert run(folder, "ruff", "format", "--no-cache", "--check").endswith(" files already formatted\n")


def test_its_tests_and_its_types_hold(tmp_path: Path) -> None:
    new.write("a-1", BOTH, tmp_path)
    assert run(tmp_path, "mypy", "--cache-dir", str(tmp_path.parent / "types")).startswith("Success: no issues found")
    told = run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    assert int(re.findall(r"(\d+) passed", told)[0]) > 60
    assert "failed" not in told
