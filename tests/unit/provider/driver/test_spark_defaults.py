"""Tests of reading the settings that spark-submit reads from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.errors import ConfigError
from sluiceway.provider.driver.submit_plan import read_spark_defaults, spark_home


def _conf(folder: Path, text: str) -> Path:
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    file = folder / "conf" / "spark-defaults.conf"
    file.write_text(text)
    return file


def test_the_file_is_in_the_conf_folder_else_in_sparks(tmp_path: Path) -> None:
    _conf(tmp_path, "# ours\nspark.executor.cores   4 \nspark.a=b\nhive.x 1\n")
    expected = {"spark.executor.cores": "4", "spark.a": "b"}
    assert read_spark_defaults({"SPARK_HOME": str(tmp_path)}) == expected
    assert read_spark_defaults({"SPARK_CONF_DIR": str(tmp_path / "conf"), "SPARK_HOME": "/none"}) == expected
    assert read_spark_defaults({"SPARK_CONF_DIR": "/none", "SPARK_HOME": str(tmp_path)}) == {}


def test_a_properties_file_replaces_it(tmp_path: Path) -> None:
    _conf(tmp_path, "spark.executor.cores 4")
    own = tmp_path / "own.properties"
    own.write_text("spark.a b")
    assert read_spark_defaults({"SPARK_HOME": str(tmp_path)}, properties_file=str(own)) == {"spark.a": "b"}


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    _conf(tmp_path, "spark.a \\u12")
    with pytest.raises(ConfigError, match=r"spark-defaults\.conf cannot be read"):
        read_spark_defaults({"SPARK_HOME": str(tmp_path)})


def _submit(folder: Path) -> Path:
    file = folder / "bin" / "spark-submit"
    file.parent.mkdir(parents=True)
    file.touch(mode=0o755)
    return file


def test_sparks_folder_is_found_by_its_spark_submit(tmp_path: Path) -> None:
    submit = _submit(tmp_path)
    assert spark_home({"PATH": str(submit.parent)}) == tmp_path
    assert spark_home({"PATH": "/none"}, str(submit)) == tmp_path
    assert spark_home({"PATH": "/none"}) is None


def test_sparks_folder_is_found_in_the_environment_in_which_pip_installed_it(tmp_path: Path) -> None:
    submit = _submit(tmp_path)
    (submit.parent / "find_spark_home.py").touch()
    assert spark_home({"PATH": str(submit.parent)}) is None
    package = tmp_path / "lib" / "python3.11" / "site-packages" / "pyspark"
    package.mkdir(parents=True)
    assert spark_home({"PATH": str(submit.parent)}) == package
