"""The import path on which PySpark is found once, with files of one version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluiceway.spark.import_path import mixed_versions, spark_path, use_one_pyspark


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
    assert spark_path(path) == ["/ours.zip", "/usr/lib/python3", "", str(packages)]


def test_archives_of_a_spark_that_is_not_installed_on_the_path_stay(packages: Path, tmp_path: Path) -> None:
    path = [*_from_spark(packages), "/usr/lib/python3"]
    assert spark_path(path) == path


def test_py4j_stays_if_it_is_not_installed(packages: Path) -> None:
    (packages / "py4j" / "__init__.py").unlink()
    _, py4j, _ = path = _from_spark(packages)
    assert spark_path([*path, str(packages)]) == [py4j, str(packages)]


def _install(packages: Path, **versions: str) -> None:
    """Add what pip leaves beside packages for each distribution."""
    for name, version in versions.items():
        (packages / f"{name}-{version}.dist-info").mkdir()


@pytest.mark.parametrize(
    ("versions", "mixed"),
    [
        ({}, None),
        ({"pyspark": "4.3.0"}, None),
        ({"pyspark_client": "4.2.0"}, None),
        ({"pyspark": "4.2.0", "pyspark_client": "4.2.0"}, None),
        ({"pyspark": "4.3.0", "pyspark_client": "4.2.0"}, ("4.3.0", "4.2.0")),
        ({"pyspark": "4.2.1", "pyspark_client": "4.2.0", "pyspark_hnsw": "2.0"}, ("4.2.1", "4.2.0")),
        ({"pyspark": "5.0.0.dev1", "pyspark_client": "5.0.0.dev1"}, None),
    ],
)
def test_archives_stay_where_pyspark_client_of_another_version_shares_the_folder(
    packages: Path, versions: dict[str, str], mixed: tuple[str, str] | None
) -> None:
    _install(packages, **versions)
    assert mixed_versions(packages / "pyspark") == mixed
    path = [*_from_spark(packages), str(packages)]
    assert spark_path(path) == (path if mixed else [str(packages)])


def test_without_spark_submit_the_archive_is_used_where_the_unpacked_files_are_of_two_versions(packages: Path) -> None:
    archive = packages / "pyspark" / "python" / "lib" / "pyspark.zip"
    archive.parent.mkdir(parents=True)
    archive.touch()
    path = ["", "/usr/lib/python3", str(packages)]
    assert spark_path(path) == path
    _install(packages, pyspark="4.3.0", pyspark_client="4.2.0")
    assert spark_path(path) == [str(archive), *path]
    assert spark_path(spark_path(path)) == [str(archive), *path]
    archive.unlink()
    assert spark_path(path) == path


def test_a_path_without_pyspark_stays(tmp_path: Path) -> None:
    assert spark_path(["", str(tmp_path), "/no/such/folder"]) == ["", str(tmp_path), "/no/such/folder"]


def test_pyspark_in_an_archive_is_told_where_its_jars_are(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    archive = packages / "pyspark" / "python" / "lib" / "pyspark.zip"
    archive.parent.mkdir(parents=True)
    archive.touch()
    _install(packages, pyspark="4.3.0", pyspark_client="4.2.0")
    monkeypatch.setattr(sys, "path", [str(packages)])
    use_one_pyspark()
    assert sys.path == [str(archive), str(packages)]
    assert os.environ["SPARK_HOME"] == str(packages / "pyspark")
    monkeypatch.delenv("SPARK_HOME")


def test_a_path_is_left_alone_once_pyspark_is_imported(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", sys)
    path = [*_from_spark(packages), str(packages)]
    monkeypatch.setattr(sys, "path", list(path))
    use_one_pyspark()
    assert sys.path == path


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
