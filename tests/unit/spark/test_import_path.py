"""Removal of Spark's archives from the import path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sluiceway.spark.import_path import without_archives


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder of packages as pip makes it, with PySpark and Py4J."""
    for name in ("pyspark", "py4j"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    return tmp_path


def _from_spark(packages: Path) -> list[str]:
    lib = packages / "pyspark" / "python" / "lib"
    jar = packages / "pyspark" / "jars" / "spark-core_2.13-4.0.0.jar"
    return [str(lib / "pyspark.zip"), str(lib / "py4j-0.10.9.9-src.zip"), str(jar)]


def test_archives_of_packages_that_are_installed_on_the_same_path_are_removed(packages: Path) -> None:
    path = ["/ours.zip", *_from_spark(packages), "/usr/lib/python3", "", str(packages)]
    assert without_archives(path) == ["/ours.zip", "/usr/lib/python3", "", str(packages)]


def test_archives_of_a_spark_that_is_not_installed_on_the_path_stay(packages: Path, tmp_path: Path) -> None:
    path = [*_from_spark(packages), "/usr/lib/python3"]
    assert without_archives(path) == path


def test_py4j_stays_if_it_is_not_installed(packages: Path) -> None:
    (packages / "py4j" / "__init__.py").unlink()
    _, py4j, _ = path = _from_spark(packages)
    assert without_archives([*path, str(packages)]) == [py4j, str(packages)]


def test_pyspark_is_imported_without_numpy_which_later_imports_find() -> None:
    check = (
        "import sys\n"
        "from sluiceway.spark.import_path import without_numpy\n"
        "with without_numpy():\n"
        "    import pyspark\n"
        "assert 'numpy' not in sys.modules\n"
        "import numpy\n"
        "with without_numpy():\n"
        "    assert sys.modules['numpy'] is numpy\n"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
