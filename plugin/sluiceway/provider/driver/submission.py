"""Builds the arguments, settings and environment of one spark-submit.

I/O is limited to finding a Java runtime and writing the package's zip file. Runs in the Airflow task's process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from sluiceway.config.connector import CONNECTOR_CLASS, TASKS_MAX
from sluiceway.errors import ConnectError
from sluiceway.java.numbers import whole_number
from sluiceway.spark.jvm_options import LIGHT
from sluiceway.storage.model import LeaseOwner

_PYTHON = "PYSPARK_PYTHON"
_PYTHON_CONF = "spark.pyspark.python"
_JAVA_HOME = "JAVA_HOME"
_LAUNCHER = "SPARK_LAUNCHER_OPTS"  # options of the short-lived JVM in which spark-submit builds the command line of the next one
_SUBMIT = "SPARK_SUBMIT_OPTS"  # options of that one, which submits the driver in cluster mode and is the driver in client mode
_DRIVER_OPTIONS = "spark.driver.defaultJavaOptions"
_DRIVER_PYTHON, _DRIVER_PYTHON_CONF = "PYSPARK_DRIVER_PYTHON", "spark.pyspark.driver.python"
_PY_FILES, _FILES = "spark.submit.pyFiles", "spark.files"
_SPARK = "spark."
_SHARED_SLOTS = 256  # an unused slot costs nothing
_SHIPPED_WORKER = "sluiceway-worker.properties"  # the worker file's name in the working directory of a YARN container


@dataclass(frozen=True, slots=True)
class Submission:
    """One Spark application: the driver of a connector, or of an application that connectors share."""

    connector: str
    """The connector's name; if ``shared``, the application's."""
    worker: Path
    """The worker's properties file."""
    mode: str
    """``long-running`` or ``micro-batch``."""
    config: Mapping[str, str]
    """The connector's config."""
    report: Path | None = None
    """The file to which a driver on this machine writes how many records it moved."""
    shared: bool = False
    """Whether the driver hosts every connector whose config names the application ``connector``."""
    times: Mapping[str, float] = field(default_factory=dict)
    """The times of the steps before the driver's start (``StartTimes``), for a driver on this machine."""
    owner: LeaseOwner | None = None
    """The Airflow task that holds the lease through this driver; None for a shared application."""

    @property
    def application(self) -> str:
        """Return the path of the driver's Python file, as installed here."""
        import sluiceway

        return str(Path(sluiceway.__file__).parent / "spark" / "driver_app.py")

    @property
    def name(self) -> str:
        """Return the Spark application's name."""
        return f"sluiceway-{self.connector}"

    @property
    def local_slots(self) -> int:
        """Return the number of slots that local mode needs: one for each task, and one more for short-lived work."""
        return _SHARED_SLOTS if self.tasks is None else self.tasks + 1

    @property
    def tasks(self) -> int | None:
        """Return the connector's ``tasks.max``; None for a shared application, whose connectors are not known at its start."""
        if self.shared:
            return None
        return max(whole_number(self.config.get(TASKS_MAX, "1").strip()) or 1, 1)

    @property
    def data_frames(self) -> bool:
        """Return whether the connector's tasks read or write DataFrames. False for a class that is not installed here."""
        from sluiceway.api import DataFrameSinkTask, DataFrameSourceTask
        from sluiceway.discovery import connector_class

        name = self.config.get(CONNECTOR_CLASS)
        if self.shared or not name:
            return False
        try:
            task_class = connector_class(name).task_class
        except (ConnectError, ImportError):
            return False
        return issubclass(task_class, (DataFrameSinkTask, DataFrameSourceTask))

    @property
    def java_memory(self) -> int:
        """Return the megabytes of the Java process beside each task; 0 without Java plugins, and for a shared application."""
        from sluiceway.provider.driver.java_memory import java_memory

        return 0 if self.shared else java_memory(self.config)

    def py_files(self, more: str | None, given: Mapping[str, str]) -> str:
        """Return ``--py-files``: the package's own zip, then the user's files, else those of ``given``, which it would hide."""
        from sluiceway.spark.py_files import package_zip

        return ",".join(filter(None, (str(package_zip()), more or given.get(_PY_FILES))))

    def files(self, more: str | None, given: Mapping[str, str]) -> str:
        """Return ``--files`` of a driver that YARN starts: the worker file, then the user's files, else those of ``given``."""
        return ",".join(filter(None, (f"{self.worker.as_uri()}#{_SHIPPED_WORKER}", more or given.get(_FILES))))

    def arguments(self, parent: int | None, *, ships_worker: bool = False) -> list[str]:
        """Return the driver's arguments.

        Args:
            parent: the process id with which the driver ends; None in cluster mode.
            ships_worker: whether ``files`` brings the worker file into the driver's working directory.
        """
        what = "--application" if self.shared else "--connector"
        worker = _SHIPPED_WORKER if ships_worker else str(self.worker)
        owner = [] if self.owner is None else ["--owner", json.dumps(astuple(self.owner))]
        arguments = ["--worker", worker, what, self.connector, "--mode", self.mode, *owner]
        if parent is None:
            return arguments
        report = [] if self.report is None else ["--report", str(self.report)]
        times = ["--times", json.dumps(dict(self.times))] if self.times else []
        return [*arguments, "--parent-pid", str(parent), *report, *times]

    def conf(self, explicit: Mapping[Any, Any] | None) -> dict[str, Any]:
        """Return the Spark settings: the connector's ``spark.*`` keys, overridden by ``explicit``."""
        spark = {key: value for key, value in self.config.items() if key.startswith(_SPARK)}
        return {**spark, **(explicit or {})}

    def local_conf(self, conf: Mapping[str, Any], *, own_python: bool) -> dict[str, Any]:
        """Return ``conf`` over the defaults for local mode, which shorten the start and the log."""
        from sluiceway.spark.session import LOCAL_CONF, local_conf

        return {**(local_conf() if own_python else LOCAL_CONF), "spark.log.level": "WARN", **conf}

    def runs_own_python(self, explicit: Mapping[str, Any] | None, conf: Mapping[str, Any]) -> bool:
        """Return whether driver and workers on this machine use this process's Python, which has the package installed."""
        given = {**os.environ, **(explicit or {})}
        return all(each in (None, sys.executable) for each in (given.get(_PYTHON), conf.get(_PYTHON_CONF)))

    def driver_python(self, explicit: Mapping[str, Any] | None, conf: Mapping[str, Any]) -> dict[str, str]:
        """Return the setting of a client-mode driver's Python, if the executors' Python is in an archive.

        Spark starts the driver with the executors' Python by default, whose relative path exists only in their working directory.
        """
        python = str(conf.get(_PYTHON_CONF) or {**os.environ, **(explicit or {})}.get(_PYTHON) or "")
        if not python.startswith(".") or _DRIVER_PYTHON_CONF in conf:
            return {}
        return {_DRIVER_PYTHON_CONF: str({**os.environ, **(explicit or {})}.get(_DRIVER_PYTHON) or sys.executable)}

    def environment(self, explicit: Mapping[str, Any] | None, conf: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``explicit`` plus the variables with which a driver on this machine finds Python, spark-submit and Java."""
        from sluiceway.java_runtime import find_java

        given = {**os.environ, **(explicit or {})}
        variables: dict[str, Any] = {"PATH": os.pathsep.join((str(Path(sys.executable).parent), given.get("PATH", os.defpath)))}
        if _PYTHON not in given and _PYTHON_CONF not in conf:
            variables[_PYTHON] = sys.executable
        if _JAVA_HOME not in given:
            variables[_JAVA_HOME] = str(find_java().home)
        return {**(explicit or {}), **variables}

    def jvm_variables(self, explicit: Mapping[str, Any] | None, *, client_mode: bool) -> dict[str, str]:
        """Return the variables with which spark-submit's own JVMs start sooner, unless this process or ``explicit`` has them.

        In client mode, the second JVM is the driver, whose options are Spark settings.
        """
        from sluiceway.spark.class_archive import archive_options

        chosen = {_LAUNCHER: LIGHT}
        if not client_mode:
            chosen[_SUBMIT] = f"{LIGHT} {archive_options()}".rstrip()
        given = {**os.environ, **(explicit or {})}
        return {key: value for key, value in chosen.items() if key not in given}

    def client_conf(self, defaults: Mapping[str, str]) -> dict[str, str]:
        """Return ``defaults`` for a driver on this machine, whose JVM can use this machine's class archive."""
        from sluiceway.spark.class_archive import archive_options

        if _DRIVER_OPTIONS not in defaults:
            return dict(defaults)
        return {**defaults, _DRIVER_OPTIONS: f"{defaults[_DRIVER_OPTIONS]} {archive_options()}".rstrip()}
