"""Compares the reference pages about Airflow with the code."""

from __future__ import annotations

import re
from pathlib import Path

from airflow.cli.cli_config import GroupCommand

import sluiceway.dags
from sluiceway.cli.airflow_commands import get_cli_commands
from sluiceway.config.connector import CALLBACKS
from sluiceway.provider.dag_bundle import dag_keys
from sluiceway.provider.hooks.connection_type import CONN_TYPE
from sluiceway.provider.provider_info import get_provider_info
from sluiceway.provider.settings import OPTIONS

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
PAGE = (REFERENCE / "airflow-provider.md").read_text(encoding="utf-8")
KEYS = (REFERENCE / "airflow-keys.md").read_text(encoding="utf-8")


def test_every_option_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (?:`([^`]*)`)? ?\|", PAGE, re.MULTILINE))
    assert {option.name: option.default for option in OPTIONS}.items() <= rows.items()


def test_every_command_is_documented() -> None:
    named = re.search(r"`airflow sluiceway ([^`]*)`", PAGE)
    assert named is not None
    words = {word.strip() for word in PAGE[PAGE.index("`airflow sluiceway get") :].split("`")[1].split("|")}
    [group] = get_cli_commands()
    assert isinstance(group, GroupCommand)
    assert {word.removeprefix("airflow sluiceway ") for word in words} == {each.name for each in group.subcommands}


def test_connection_type_and_hook_are_documented() -> None:
    [told] = get_provider_info()["connection-types"]
    assert f"`{CONN_TYPE}`, hook `{told['hook-class-name']}`" in PAGE


def test_every_example_dag_is_documented_and_in_the_packages_docstring() -> None:
    examples = {path.stem for path in Path(sluiceway.dags.__path__[0]).glob("example_*.py")}
    assert examples == set(re.findall(r"^\| `(example_\w+)`", PAGE, re.MULTILINE))
    assert examples == set(re.findall(r"^``(example_\w+)``", sluiceway.dags.__doc__ or "", re.MULTILINE))


def test_every_airflow_key_is_documented() -> None:
    values = [str(value) for name, value in vars(dag_keys).items() if name.isupper() and not name.startswith("_")]
    keys = {value for value in values if value.startswith(("airflow.", "sluiceway."))} | set(CALLBACKS)
    cells = [line.split(" | ")[0] for line in KEYS.splitlines() if line.startswith("| `")]
    assert keys <= {key for each in cells for key in re.findall(r"`([\w.]+)`", each)}
