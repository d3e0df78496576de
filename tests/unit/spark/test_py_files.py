"""The zip of the package that executors get."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import sluiceway
from sluiceway.java_plugins.helper_jar import jar_name
from sluiceway.spark.py_files import is_package_zip, package_zip

_SUFFIXES = (".py", ".json", ".java", ".properties")
PACKAGE = Path(sluiceway.__file__).parent


def files_in(archive: Path) -> set[str]:
    with zipfile.ZipFile(archive) as opened:
        return set(opened.namelist())


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip of this checkout. Compiling the package takes seconds."""
    return package_zip(tmp_path_factory.mktemp("zip"))


def test_the_zip_holds_every_module_and_data_file_but_those_that_only_airflow_uses(archive: Path) -> None:
    expected: set[str] = set()
    for folder, _, files in os.walk(PACKAGE, followlinks=True):
        inside = Path(folder).relative_to(PACKAGE)
        if inside.parts[:1] not in (("operators",), ("sensors",), ("dags",)):
            expected.update(str("sluiceway" / inside / name) for name in files if name.endswith(_SUFFIXES))
    expected |= {f"{name}c" for name in expected if name.endswith(".py")}
    assert {"sluiceway/runtime/sink/worker_sink_task.py", "sluiceway/connectors/mirror/keys.json"} <= expected
    jar = f"sluiceway/java_plugins/{jar_name()}"  # is there if this machine has compiled it
    assert files_in(archive) - {jar} == expected


def test_an_executor_that_has_only_the_zip_can_import_what_a_task_needs(archive: Path) -> None:
    code = (
        "import sluiceway.worker.executor, sluiceway.worker.kafka_task_services, sluiceway.connectors.mirror.source\n"
        "import sluiceway.runtime.sink.worker_sink_task, sluiceway.runtime.source.worker_source_task\n"
        "print(sluiceway.worker.executor.__file__)"
    )
    environment = {**os.environ, "PYTHONPATH": str(archive)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{archive}/sluiceway/worker/executor.pyc"


def test_a_python_of_another_version_imports_the_sources_and_tracebacks_show_them(archive: Path) -> None:
    code = (
        "import importlib.util, sys, traceback, zipimport\n"
        "if len(sys.argv) > 1: zipimport.MAGIC_NUMBER = zipimport._bootstrap_external.MAGIC_NUMBER = b'????'\n"
        "import sluiceway.spark.elastic as elastic\n"
        "print(elastic.__file__)\n"
        "try: elastic.elastic_conf(1, 2)\n"
        "except AttributeError: print(traceback.format_exc())"
    )
    for other, module in ((["other"], "elastic.py"), ([], "elastic.pyc")):
        environment = {**os.environ, "PYTHONPATH": str(archive)}
        command = [sys.executable, "-c", code, *other]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(f"{archive}/sluiceway/spark/{module}\n")
        assert "if not master.startswith(CLUSTERS):" in done.stdout


def test_links_are_not_followed_so_a_loop_of_links_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, outside = tmp_path / "sluiceway", tmp_path / "operators"
    for folder in (root / "worker", outside):
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    (root / "__init__.py").touch()
    (root / "operators").symlink_to(outside)
    (root / "worker" / "up").symlink_to(root)
    monkeypatch.setattr(sluiceway, "__file__", str(root / "__init__.py"))
    expected = {"sluiceway/__init__.py", "sluiceway/worker/__init__.py"}
    assert {name for name in files_in(package_zip(tmp_path / "cache")) if name.endswith(".py")} == expected


def test_the_zip_is_made_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "sluiceway"
    root.mkdir()
    (root / "__init__.py").write_text("A = 1")
    monkeypatch.setattr(sluiceway, "__file__", str(root / "__init__.py"))
    first = package_zip(tmp_path / "cache")
    made = first.stat().st_mtime_ns
    assert (package_zip(tmp_path / "cache"), first.stat().st_mtime_ns) == (first, made)
    (root / "__init__.py").write_text("A = 2")
    assert package_zip(tmp_path / "cache") != first


def test_the_zip_is_recognized_by_its_name_wherever_it_is(archive: Path) -> None:
    name = archive.name
    assert all(map(is_package_zip, (name, f"/cache/{name}", f"hdfs://host:8020/staging/{name}")))
    assert not any(map(is_package_zip, ("", "sluiceway-connectors.zip", f"my-{name}", f"{name}.sha256")))
