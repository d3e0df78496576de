"""The check that Python's PySpark and Spark's jars are of one version."""

from __future__ import annotations

import base64
import hashlib
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest

from sluiceway.errors import MissingToolError
from sluiceway.spark import versions
from sluiceway.spark.versions import check_jars, check_python_files, describe_difference


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with a PySpark that nothing has imported; the first on the import path."""
    for file in ("__init__.py", "core/context.py"):
        (tmp_path / "pyspark" / file).parent.mkdir(exist_ok=True)
        (tmp_path / "pyspark" / file).write_text(f"# {file}")
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def install(packages: Path, pyspark: str, client: str) -> None:
    """Record pyspark's files as pip does, and note that pyspark-client is there."""
    folder = packages / f"pyspark-{pyspark}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pyspark\nVersion: {pyspark}\n")
    lines = []
    for file in sorted((packages / "pyspark").rglob("*.py")):
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
        lines.append(f"{file.relative_to(packages)},sha256={digest},{file.stat().st_size}")
    (folder / "RECORD").write_text("\n".join(lines))
    (packages / f"pyspark_client-{client}.dist-info").mkdir()


def test_a_whole_pyspark_passes(packages: Path) -> None:
    check_python_files()
    install(packages, "4.2.0", "4.2.0")
    check_python_files()


def test_files_of_two_versions_are_refused_with_the_command_that_mends_them(packages: Path) -> None:
    install(packages, "4.3.0", "4.2.0")
    check_python_files()  # pyspark was installed last
    (packages / "pyspark" / "core" / "context.py").write_text("# of pyspark-client")
    with pytest.raises(MissingToolError, match=r"--no-deps pyspark==4\.3\.0'") as raised:
        check_python_files()
    assert str(packages / "pyspark") in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)  # noqa: S301


def test_the_format_refuses_an_import_that_files_of_two_versions_break(packages: Path) -> None:
    install(packages, "4.3.0", "4.2.0")
    (packages / "pyspark" / "core" / "context.py").write_text("# of pyspark-client")
    code = f"import sys; sys.path.insert(0, {str(packages)!r}); import sluiceway.spark.data_source"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("sluiceway.errors.MissingToolError: "), done.stderr
    assert "has files of pyspark 4.3.0 and of pyspark-client 4.2.0" in last


def test_pyspark_client_alone_is_refused(packages: Path) -> None:
    (packages / "pyspark" / "core" / "context.py").unlink()
    with pytest.raises(MissingToolError, match="is pyspark-client, which has no Spark"):
        check_python_files()
    (packages / "pyspark" / "context.py").touch()  # as in Spark 3
    check_python_files()


def test_no_pyspark_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(MissingToolError, match="pip install pyspark"):
        check_python_files()


@pytest.mark.parametrize(
    ("python", "jars", "difference"),
    [
        ("4.0.0", "4.0.0", ""),
        ("3.5.6", "3.5.6-amzn-1", ""),
        ("3.5.6+amzn.1", "3.5.6-amzn-0", ""),
        ("4.1.0.dev3", "4.1.0-SNAPSHOT", ""),
        ("4.2.1", "4.2.0", "patch"),
        ("4.3.0", "4.2.0", "version"),
        ("4.0.0", "3.5.9", "version"),
    ],
)
def test_versions_differ_by_their_first_numbers(python: str, jars: str, difference: str) -> None:
    assert describe_difference(python, jars) == difference


@pytest.mark.parametrize(("jars", "refused"), [("4.0.0", False), ("4.0.1", False), ("3.5.6", True)])
def test_jars_of_another_version_are_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, jars: str, *, refused: bool
) -> None:
    pyspark: Any = ModuleType("pyspark")
    pyspark.__version__, pyspark.__path__, pyspark.SparkContext = "4.0.0", ["/packages/pyspark"], MagicMock()
    package = MagicMock()
    setattr(package, "MODULE$", MagicMock(SPARK_VERSION=lambda: jars))
    setattr(pyspark.SparkContext._jvm.org.apache.spark, "package$", package)
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
    settings: Any = object()
    if refused:
        with pytest.raises(
            MissingToolError, match=rf"/packages/pyspark, but Spark's jars are {jars}.*pip install pyspark=={jars}"
        ):
            check_jars(settings)
    else:
        check_jars(settings)
    pyspark.SparkContext._ensure_initialized.assert_called_once_with(conf=settings)
    assert [record.name for record in caplog.records] == ([versions.__name__] if jars == "4.0.1" else [])
