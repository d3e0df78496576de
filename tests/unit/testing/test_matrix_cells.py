"""The cells of ``make test-matrix``: what they cover, and how their answers are told."""

from __future__ import annotations

import configparser
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("matrix_cells")


def test_the_cells_cover_each_python_that_the_package_declares(cells: ModuleType) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    declared = set(re.findall(r"Python :: (3\.\d+)", setup["metadata"]["classifiers"]))
    installed = {cell.python for cell in cells.CELLS if "install" not in cell.refused}
    assert installed == declared
    newest = {
        cell.python for cell in cells.CELLS if cell.name.startswith("newest-") and cell.checks == cells.ALL and not cell.pins
    }
    assert newest == declared


def test_the_cells_cover_each_minor_version_of_airflow_and_spark_and_both_ends(cells: ModuleType) -> None:
    assert len(cells.CELLS) >= 12
    assert len({cell.name for cell in cells.CELLS}) == len(cells.CELLS)
    pins = {pin.removesuffix(".*") for cell in cells.CELLS for pin in cell.pins}
    assert {"apache-airflow==3.0.6", "apache-airflow==3.1", "apache-airflow==3.2"} <= pins
    assert {"pyspark==3.5", "pyspark==4.0", "pyspark==4.1", "pyspark==4.2"} <= pins
    assert any(cell.floors for cell in cells.CELLS)
    assert {cell.beside for cell in cells.CELLS if cell.resolves} == {file.stem for file in cells.PINS.glob("*.txt")}


def test_each_direct_requirement_says_its_oldest_version() -> None:
    """The `floors` cells install it; without one they would try the newest."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    own = {"docs", "lint", "test", "test-gcs", "test-s3"}
    lines = [setup["options"]["install_requires"]]
    lines += [text for extra, text in setup["options.extras_require"].items() if extra not in own]
    requirements = [Requirement(line) for text in lines for line in text.splitlines() if line and not line.startswith("#")]
    without = {each.name for each in requirements if ">=" not in str(each.specifier)}
    assert without == {"sluiceway", "certifi"}  # certifi's versions are days


def test_an_answer_is_passed_refused_with_the_expected_sentence_or_a_failure(cells: ModuleType) -> None:
    cell = cells.Cell("old", "3.12", checks=("file", "spark", "cdc"), refused={"spark": "needs PySpark 4"})
    assert cells.verdict(cell, None) == "not run"
    assert cells.verdict(cell, {"answers": {"file": "", "spark": "SparkSink needs PySpark 4."}}) == (
        "passed: file; not run: cdc; spark refused: SparkSink needs PySpark 4."
    )
    assert cells.verdict(cell, {"answers": {"file": "no", "spark": "KeyError: 1"}}) == (
        "not run: cdc; file FAILED: no; spark FAILED: KeyError: 1"
    )
    assert cells.verdict(cell, {"answers": {"install": "no such version"}}) == "install FAILED: no such version"


def test_a_row_shows_installed_versions_or_else_those_asked_for(cells: ModuleType) -> None:
    cell = cells.Cell("one", "3.12", ("pyspark==4.0.*",))
    assert cells.describe(cell, None)[:4] == ("one", "3.12", "", "4.0.*")
    assert cells.describe(cell, {"versions": {"pyspark": "4.0.5"}, "answers": {}})[3] == "4.0.5"


def test_recorded_results_are_of_cells_and_checks_that_exist(cells: ModuleType) -> None:
    names = {cell.name: {*cell.checks, "install"} for cell in cells.CELLS}
    for name, result in cells.results().items():
        assert set(result["answers"]) <= names[name]
