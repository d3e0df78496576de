"""An environment of ``sluiceway package`` on a Spark cluster: drivers and tasks run with nothing else."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import sluiceway
from sluiceway.herder import Herder
from sluiceway.java_plugins.plugin_archive import pack_plugins
from sluiceway.java_runtime import find_java
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook
from sluiceway.spark.py_files import package_zip
from sluiceway.spark.python_archive import PythonArchive, pack_new
from sluiceway.storage.factory import open_stores
from support.clusters.standalone import SparkCluster, spark_home
from support.driver import worker_of, worker_properties, write_properties
from support.java_plugins import CONNECT_FILE, fetch_runtime, plugin_folder
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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    made = SparkCluster(tmp_path_factory.mktemp("spark"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)  # the worker would pass it to executors
        made.start()
    yield made
    made.stop()


@dataclass(frozen=True)
class _Connector:
    """A source of a file with 1,000 lines."""

    name: str
    topic: str
    config: dict[str, str]
    worker_file: Path


@pytest.fixture
def connector(kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path) -> _Connector:
    return _created(kafka_bootstrap, unique, tmp_path, "FileStreamSource", {})


def _created(
    kafka_bootstrap: str, unique: Callable[[str], str], folder: Path, connector_class: str, more: dict[str, str]
) -> _Connector:
    properties = {**worker_properties(kafka_bootstrap, unique("archive")), **more}
    file, topic, name = folder / "in.txt", unique("lines"), unique("source")
    file.write_text("".join(f"line {n}\n" for n in range(1_000)))
    config = {"connector.class": connector_class, "file": str(file), "topic": topic}
    worker = worker_of(properties)
    with open_stores(worker) as stores:
        Herder(worker, stores.config, stores.status, stores.offsets).create(name, config)
    return _Connector(name, topic, config, write_properties(folder / "worker.properties", properties))


@pytest.mark.long
def test_driver_and_executors_need_nothing_but_the_archive(
    archive: PythonArchive, cluster: SparkCluster, connector: _Connector, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """The driver runs in the unpacked archive, as in YARN's cluster mode, and without this test's PYTHONPATH."""
    conf = {"spark.archives": f"{archive.path}#environment"}
    done = _submitted(archive, cluster, connector, conf, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert Kafka(kafka_bootstrap).values(connector.topic, 1_000)[-1] == "line 999"


def _submitted(
    archive: PythonArchive, cluster: SparkCluster, connector: _Connector, more: dict[str, str], folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a connector's driver in a folder as a micro-batch, with the archive's Python and no other variables than these."""
    conf = {
        "spark.pyspark.python": "./environment/bin/python",
        "spark.pyspark.driver.python": str(_unpacked(archive, folder / "environment")),
        "spark.cores.max": "1",
        "spark.driver.host": "127.0.0.1",
        **more,
    }
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", cluster.url, "--py-files", str(package_zip())]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    application = Path(sluiceway.__file__).parent / "spark" / "driver_app.py"
    command += [str(application), "--worker", str(connector.worker_file), "--connector", connector.name, "--mode", "micro-batch"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "SPARK_HOME": str(spark_home()), "JAVA_HOME": str(find_java().home)}
    return subprocess.run(command, env=env | variables, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)


@pytest.mark.long
def test_java_plugins_run_from_their_archive(
    archive: PythonArchive,
    cluster: SparkCluster,
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """The driver and the executor find plugins and runtime in the archive in their own folders, and nowhere else."""
    fetch_runtime()
    plugin_folder(tmp_path / "installed", "file", CONNECT_FILE)
    packed = pack_plugins(tmp_path / "installed", tmp_path)
    with tarfile.open(packed.path) as made:
        made.extractall(tmp_path / "plugins", filter="data")
    java = {"plugin.path": "./plugins/path", "plugin.java": "prefer"}
    connector = _created(kafka_bootstrap, unique, tmp_path, "org.apache.kafka.connect.file.FileStreamSourceConnector", java)
    conf = {
        "spark.archives": f"{archive.path}#environment,{packed.path}#plugins",
        "spark.executorEnv.KAFKA_HOME": "./plugins/runtime",
        "spark.executorEnv.XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    done = _submitted(archive, cluster, connector, conf, tmp_path, KAFKA_HOME="./plugins/runtime")
    assert done.returncode == 0, done.stdout + done.stderr
    values = Kafka(kafka_bootstrap).values(connector.topic, 1_000)
    assert "line 999" in str(values[-1])


@pytest.mark.long
def test_airflows_hook_runs_the_driver_here_and_the_tasks_in_the_archive(
    archive: PythonArchive, cluster: SparkCluster, connector: _Connector, kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Connection:
        conn_type, host, port, extra_dejson = "spark", cluster.url, None, {"deploy-mode": "client"}

    monkeypatch.setattr(ConnectorSubmitHook, "get_connection", staticmethod(lambda conn_id: Connection()))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    conf = {
        "spark.archives": f"{archive.path}#environment",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.driver.host": "127.0.0.1",
    }
    submission = Submission(connector.name, connector.worker_file, "micro-batch", {**connector.config, **conf})
    hook = ConnectorSubmitHook(submission, conn_id="spark")
    hook.submit(submission.application)
    assert hook.exit_code == 0
    assert Kafka(kafka_bootstrap).values(connector.topic, 1_000)[-1] == "line 999"


@pytest.mark.long
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
