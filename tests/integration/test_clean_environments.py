"""The wheel in clean environments: with the newest packages that pip finds today, and with the oldest that it accepts.

All other tests run with the project's constraints, which a user's environment does not have. ``make test-matrix`` tries more.
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from matrix_cells import Cell
from matrix_environment import UNREACHABLE, Environment

from support.wheel import ROOT, build_wheel

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
CHECKS = ("imports", "file")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), java=False)


def test_the_wheel_has_each_template_of_a_new_connector(wheel: Path) -> None:
    package = ROOT / "plugin"
    files = (package / "sluiceway/cli/templates").rglob("*")
    templates = {each.relative_to(package).as_posix() for each in files if each.is_file() and each.suffix != ".pyc"}
    with ZipFile(wheel) as archive:
        assert templates - set(archive.namelist()) == set()
    assert len(templates) > 15


@pytest.mark.parametrize("floors", [False, pytest.param(True, marks=pytest.mark.long)], ids=["newest", "floors"])
def test_the_wheel_copies_a_file_beside(floors: bool, wheel: Path, tmp_path: Path, kafka_bootstrap: str) -> None:
    cell = Cell("clean", PYTHON, extras=("standalone",), floors=floors, checks=CHECKS)
    environment = Environment(cell, Path(sys.executable), tmp_path / "environment", uv=False)
    problem = environment.install(wheel, within=200)  # a minute, unless PySpark is downloaded
    if UNREACHABLE in problem:  # says nothing about a change; the environment of the tests was installed before
        pytest.skip(f"Nothing was tried beside {'the oldest' if floors else 'the newest'} packages: {problem}")
    assert not problem
    assert environment.run(CHECKS, bootstrap=kafka_bootstrap) == dict.fromkeys(CHECKS, "")
