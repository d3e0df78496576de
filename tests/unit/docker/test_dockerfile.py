"""docker/Dockerfile: its lines, and what it copies."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatch
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

from .conftest import DOCKER, ROOT, dockerfile


def test_hadolint_has_nothing_to_say_against_it() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([str(hadolint), str(DOCKER / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_both_images_stand_on_one_base() -> None:
    bases = {each.stage: each.arguments.split()[0] for each in dockerfile() if each.name == "FROM"}
    assert bases["spark"] == bases["airflow"] == "base"
    assert bases["base"] == bases["wheel"] == "python:${PYTHON_VERSION}-slim-bookworm"


def test_nothing_runs_as_root() -> None:
    for stage in ("spark", "airflow"):
        assert [each.arguments for each in dockerfile() if each.stage == stage and each.name == "USER"] == ["50000:0"]


def test_what_is_copied_exists_and_is_sent_to_the_engine() -> None:
    allowed = [line[1:] for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    for each in dockerfile():
        if each.name != "COPY" or each.arguments.startswith("--from"):
            continue
        source = each.arguments.split()[0]
        assert (ROOT / source).exists(), source
        assert source == "." or source in allowed, source


def test_what_the_wheel_is_made_from_is_sent_to_the_engine() -> None:
    allowed = [line[1:] for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    for path in allowed:
        assert (ROOT / path).exists(), path
    needed = ["pyproject.toml", "setup.cfg", "README.md", "LICENSE", "plugin", "operators", "sensors", "dags"]
    assert [path for path in needed if not any(fnmatch(path, pattern) for pattern in allowed)] == []


def test_what_executors_get_is_among_the_packages_own_requirements() -> None:
    [install] = [each.arguments for each in dockerfile() if each.stage == "spark" and each.name == "RUN"]
    named = install.partition("constraints.txt ")[2].partition(" &&")[0].split()
    ours = {Requirement(text).name for text in requires("sluiceway") or ()}
    assert named == ["pyspark", "confluent-kafka", "orjson"]
    assert set(named) <= ours
