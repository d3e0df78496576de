"""An environment of ``sluiceway package`` on a Spark cluster: drivers and tasks run with nothing else."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import sluiceway
from sluiceway.herder import Herder
from sluiceway.java_runtime import find_java
from sluiceway.spark.py_files import package_zip
from sluiceway.spark.python_archive import PythonArchive, pack_new
from sluiceway.storage.factory import open_stores
from support.clusters.standalone import SparkCluster, spark_home
from support.driver import worker_of, worker_properties, write_properties
from support.kafka import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

_SECONDS = 180


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> PythonArchive:
    return pack_new([], extras=["jdbc"], output=tmp_path_factory.mktemp("archive") / "env.tar.gz")


def _unpacked(archive: PythonArchive, folder: Path) -> Path:
    """Unpack as Spark does, and return the path of Python, which is a link out of the archive."""
    with tarfile.open(archive.path) as packed:
        packed.extractall(folder, filter="fully_trusted")  # noqa: S202 (made by this test)
    return folder / "bin" / "python"


def test_driver_and_executors_need_nothing_but_the_archive(
    archive: PythonArchive, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver runs in the unpacked archive, as in YARN's cluster mode, and without this test's PYTHONPATH."""
    python = _unpacked(archive, tmp_path / "environment")
    properties = worker_properties(kafka_bootstrap, unique("archive"))
    worker_file = write_properties(tmp_path / "worker.properties", properties)
    worker = worker_of(properties)
    source_file, topic, name = tmp_path / "in.txt", unique("lines"), unique("source")
    source_file.write_text("".join(f"line {n}\n" for n in range(1_000)))
    monkeypatch.delenv("PYTHONPATH", raising=False)  # the worker would pass it to executors
    cluster = SparkCluster(tmp_path)
    with open_stores(worker) as stores:
        Herder(worker, stores.config, stores.status, stores.offsets).create(
            name, {"connector.class": "FileStreamSource", "file": str(source_file), "topic": topic}
        )
        cluster.start()
        try:
            conf = {
                "spark.archives": f"{archive.path}#environment",
                "spark.pyspark.python": "./environment/bin/python",
                "spark.pyspark.driver.python": str(python),
                "spark.cores.max": "1",
                "spark.driver.host": "127.0.0.1",
            }
            command = [str(spark_home() / "bin" / "spark-submit"), "--master", cluster.url, "--py-files", str(package_zip())]
            for key, value in conf.items():
                command += ["--conf", f"{key}={value}"]
            application = Path(sluiceway.__file__).parent / "spark" / "driver_app.py"
            command += [str(application), "--worker", str(worker_file), "--connector", name, "--mode", "micro-batch"]
            env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SPARK_HOME": str(spark_home())}
            env["JAVA_HOME"] = str(find_java().home)
            done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=_SECONDS, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        finally:
            cluster.stop()
    assert Kafka(kafka_bootstrap).values(topic, 1_000)[-1] == "line 999"


def test_every_module_of_drivers_and_tasks_can_be_imported_in_it(archive: PythonArchive, tmp_path: Path) -> None:
    program = (
        "import importlib, sys, sluiceway.spark.driver_app, sluiceway.discovery as discovery\n"
        "import cryptography.hazmat.primitives.serialization.pkcs12, javaproperties, regex, sqlalchemy, psycopg, pymysql\n"
        "for group, paths in discovery._BUILT_IN.items():\n"
        "    for path in paths.values():\n"
        "        if 'registry' not in path:\n"  # the extra schema-registry
        "            discovery.load(path)\n"
        "import sluiceway.connectors.jdbc.sink.task, sluiceway.worker.executor\n"
        "print('ok')\n"
    )
    libraries = sorted((spark_home() / "python" / "lib").glob("*.zip"))
    path = ":".join(map(str, [package_zip(), *libraries]))
    command = [str(_unpacked(archive, tmp_path / "environment")), "-c", program]
    done = subprocess.run(command, env={"PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "ok\n", done.stderr
