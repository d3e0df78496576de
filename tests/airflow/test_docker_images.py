"""The pip steps of docker/Dockerfile, run in virtual environments of its Python version.

Takes some minutes: the second image contains all of Airflow and Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from support.wheel import ROOT, build_wheel

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(1800)]


def _steps(stage: str) -> list[str]:
    """Return the pip commands of a stage of the Dockerfile."""
    text = (ROOT / "docker" / "Dockerfile").read_text()
    body = re.search(rf"^FROM \S+ AS {stage}\n(.*?)(?=^FROM |\Z)", text, re.DOTALL | re.MULTILINE)
    assert body is not None
    joined = re.sub(r"\\\n\s*", " ", body[1])
    return [step for step in re.findall(r"^RUN (.*)$", joined, re.MULTILINE) if step.startswith("pip ")]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the layout of the images' /build."""
    folder = tmp_path_factory.mktemp("image")
    build_wheel(folder)
    for name in ("constraints.txt", "docker/requirements.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def _install(build: Path, stage: str) -> Path:
    """Run a stage's pip steps; return the environment's bin folder."""
    home = build / f"venv-{stage}"
    venv.create(home, with_pip=True)
    steps = _steps(stage)
    assert steps
    for step in steps:
        # Cached wheels reduce the run to minutes; the images need no cache.
        command = step.replace("/build/", f"{build}/").replace(" --no-cache-dir", "")
        _run(home / "bin", "sh", "-ec", command)
    return home / "bin"


def _run(binaries: Path, *command: str) -> str:
    path = os.pathsep.join((str(binaries), os.environ["PATH"]))
    given = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "PYTHON"))}
    done = subprocess.run(command, env={**given, "PATH": path}, capture_output=True, text=True, cwd=binaries, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def same_python() -> None:
    wanted = re.search(r"PYTHON_VERSION=([\d.]+)", (ROOT / "docker" / "Dockerfile").read_text())
    assert wanted is not None
    if wanted[1] != ".".join(map(str, sys.version_info[:2])):
        pytest.skip(f"the images have Python {wanted[1]}")


@pytest.mark.usefixtures("same_python")
def test_sparks_image_has_the_executors_imports_and_no_airflow(build: Path) -> None:
    binaries = _install(build, "spark")
    assert "version 4.0.0" in _run(binaries, "spark-submit", "--version")
    _run(binaries, "python", "-c", "import sluiceway.worker.executor, sluiceway.kafka.clients, sluiceway.connectors.file, orjson")
    _run(binaries, "sh", "-ec", "! python -c 'import airflow'")


@pytest.mark.usefixtures("same_python")
def test_airflows_image_has_airflow_the_command_and_the_drivers_of_its_database(build: Path) -> None:
    binaries = _install(build, "airflow")
    _run(binaries, "pip", "check")
    versions = dict(line.split("==") for line in _run(binaries, "pip", "freeze").splitlines() if "==" in line)
    assert (versions["apache-airflow"], versions["pyspark"], versions["pyspark-client"]) == ("3.3.2", "4.0.0", "4.0.0")
    _run(binaries, "python", "-c", "import psycopg2, asyncpg")
    assert "create connectors from files" in _run(binaries, "sluiceway", "--help")
    assert (binaries / "spark-submit").exists()
