"""docker/Dockerfile and the build context that it needs."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatch
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

from support.docker_files import DOCKER, ROOT, dockerfile


def test_hadolint_finds_no_problem() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([str(hadolint), str(DOCKER / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_both_images_have_the_same_base() -> None:
    bases = {each.stage: each.arguments.split()[0] for each in dockerfile() if each.name == "FROM"}
    assert bases["spark"] == bases["airflow"] == "base"
    assert bases["base"] == bases["wheel"] == "python:${PYTHON_VERSION}-slim-bookworm"


def test_nothing_runs_as_root() -> None:
    for stage in ("spark", "airflow"):
        assert [each.arguments for each in dockerfile() if each.stage == stage and each.name == "USER"] == ["50000:0"]


def test_copied_files_exist_and_are_part_of_the_build_context() -> None:
    allowed = [line[1:] for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    for each in dockerfile():
        if each.name != "COPY" or each.arguments.startswith("--from"):
            continue
        source = each.arguments.split()[0]
        assert (ROOT / source).exists(), source
        assert source == "." or source in allowed, source


def test_the_sources_of_the_wheel_are_part_of_the_build_context() -> None:
    allowed = [line[1:] for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    for path in allowed:
        assert (ROOT / path).exists(), path
    needed = ["pyproject.toml", "setup.cfg", "README.md", "LICENSE", "plugin", "operators", "sensors", "dags"]
    assert [path for path in needed if not any(fnmatch(path, pattern) for pattern in allowed)] == []


def test_links_in_the_source_root_lead_to_folders_of_the_build_context() -> None:
    """Docker copies links as links, so the folders they point to must be copied too."""
    allowed = {line[1:] for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}
    links = {
        path.name: path.resolve().relative_to(ROOT) for path in (ROOT / "plugin" / "sluiceway").iterdir() if path.is_symlink()
    }
    assert {name: str(target) for name, target in links.items()} == {name: name for name in ("operators", "sensors", "dags")}
    assert set(links) <= allowed


def test_packages_installed_for_executors_are_requirements_of_this_package() -> None:
    [install] = [each.arguments for each in dockerfile() if each.stage == "spark" and each.name == "RUN"]
    named = install.partition("constraints.txt ")[2].partition(" &&")[0].split()
    ours = {Requirement(text).name for text in requires("sluiceway") or ()}
    assert named == ["pyspark", "confluent-kafka", "orjson", "regex"]
    assert set(named) <= ours
