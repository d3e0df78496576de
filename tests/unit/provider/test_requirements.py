"""What operators and sensors say where Airflow is missing, too old, or without its Spark provider."""

from __future__ import annotations

import configparser
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from sluiceway.installation import install_command
from sluiceway.provider.requirements import AIRFLOW, SPARK_PROVIDER, missing

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("airflow", "absent", "said"),
    [
        (None, [], "need Apache Airflow 3.0.6 or newer, which is not installed. Run: "),
        ("2.11.0", [SPARK_PROVIDER], "this is 2.11.0. Upgrade Airflow, or run connectors beside it with 'sluiceway standalone'"),
        ("3.0.5", [], "this is 3.0.5"),
        ("3.0.6", [SPARK_PROVIDER], "need the Python package apache-airflow-providers-apache-spark. Run: "),
        ("3.0.6", [], ""),
        ("3.10.0rc1", [], ""),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(airflow: str | None, absent: list[str], said: str) -> None:
    found = missing(airflow, absent)
    assert said in found
    assert bool(said) == bool(found)
    assert ("Run: " in said) == (f"Run: {install_command('airflow')} where" in found)


def test_the_oldest_airflow_is_that_of_the_extra() -> None:
    [airflow] = [each for each in installed_with_airflow() if each.name == "apache-airflow"]
    assert f">={AIRFLOW}" in str(airflow.specifier).split(",")


def test_what_airflow_bounds_the_extra_bounds_or_leaves_to_airflow() -> None:
    """Otherwise uv takes the newest first, and then an older Airflow, which bounds nothing and does not start beside it."""
    required = (importlib.metadata.requires(f"apache-airflow-{part}") or () for part in ("core", "task-sdk"))
    bounded = {each.name.lower() for lines in required for each in map(Requirement, lines) if is_bounded(each)}
    assert bounded
    ours = [each for each in installed_with_airflow() if each.name.lower() in bounded]
    assert [str(each) for each in ours if not is_bounded(each)] == []


def installed_with_airflow() -> list[Requirement]:
    """Return the direct requirements of the package with the extra ``airflow``."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = ["airflow"]
    found = parsed(setup["options"]["install_requires"])
    for extra in extras:  # grows by the extras that an extra needs
        requirements = parsed(setup["options.extras_require"][extra])
        extras += [more for each in requirements if each.name == "sluiceway" for more in each.extras if more not in extras]
        found += requirements
    return found


def parsed(text: str) -> list[Requirement]:
    return [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]


def is_bounded(requirement: Requirement) -> bool:
    return any(each.operator in {"<", "<=", "~=", "==", "==="} for each in requirement.specifier)


@pytest.mark.parametrize("package", ["operators", "sensors"])
def test_a_dag_of_an_environment_without_airflow_gets_the_sentence(package: str) -> None:
    code = (
        "import importlib.metadata as metadata\n"
        "def version(name):\n    raise metadata.PackageNotFoundError(name)\n"
        "metadata.version = version\n"
        f"import sluiceway.{package}"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT / "plugin")}, capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("sluiceway.errors.MissingToolError: Operators and sensors need Apache Airflow"), done.stderr
