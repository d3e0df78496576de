"""Starts drivers with spark-submit, as Airflow's operators do."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import sluiceway
from sluiceway.config.worker import WorkerConfig
from sluiceway.java_runtime import find_java
from sluiceway.spark.class_archive import archive_options
from sluiceway.spark.jvm_options import LIGHT
from sluiceway.spark.py_files import package_zip
from sluiceway.spark.session import LOCAL_CONF
from sluiceway.stack.process import BackgroundProcess
from support.clusters.standalone import spark_home

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

WORKER_DEFAULTS = {
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "5",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "1000",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


def worker_properties(bootstrap: str, group: str, **more: str) -> dict[str, str]:
    """Return a worker's properties with three topics of its own, named after the group."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "config.storage.topic": f"{group}-configs",
        "offset.storage.topic": f"{group}-offsets",
        "status.storage.topic": f"{group}-status",
        **WORKER_DEFAULTS,
        **more,
    }


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")
    return path


def submitted_driver(
    connector: str,
    worker_file: Path,
    folder: Path,
    *,
    master: str,
    conf: Mapping[str, str] | None = None,
    mode: str = "long-running",
) -> BackgroundProcess:
    """Return a driver of one connector, not started yet: spark-submit in client mode."""
    return _submitted(["--connector", connector, "--mode", mode], connector, worker_file, folder, master, conf)


def submitted_application(
    name: str, worker_file: Path, folder: Path, *, master: str, conf: Mapping[str, str] | None = None
) -> BackgroundProcess:
    """Return the driver of a shared application, not started yet: spark-submit in client mode."""
    return _submitted(["--application", name], name, worker_file, folder, master, conf)


def _submitted(
    what: list[str], name: str, worker_file: Path, folder: Path, master: str, conf: Mapping[str, str] | None
) -> BackgroundProcess:
    defaults = {**LOCAL_CONF, _JAVA_OPTIONS: f"{LOCAL_CONF[_JAVA_OPTIONS]} {archive_options()}".rstrip()}
    if not master.startswith("local"):
        defaults["spark.executor.defaultJavaOptions"] = LIGHT
    settings = {**defaults, **(conf or {})}
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", master, "--py-files", str(package_zip())]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    application = str(Path(sluiceway.__file__).parent / "spark" / "driver_app.py")
    command += [application, "--worker", str(worker_file), *what]
    env = {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java().home), "SPARK_HOME": str(spark_home())}
    env |= {"SPARK_LAUNCHER_OPTS": LIGHT}
    return BackgroundProcess(f"driver-{name}", command, folder, env={**env, "PATH": os.environ["PATH"]})


def worker_of(properties: Mapping[str, str]) -> WorkerConfig:
    return WorkerConfig.of(properties)
