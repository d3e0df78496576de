"""What spark-submit is told for one connector. Pure but for finding Java and making the package's zip."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluiceway.config.connector import TASKS_MAX

_PYTHON = "PYSPARK_PYTHON"
_PYTHON_CONF = "spark.pyspark.python"
_JAVA_HOME = "JAVA_HOME"
_LAUNCHER = "SPARK_LAUNCHER_OPTS"  # of the short-lived JVM in which spark-submit works out the command of the driver's
_LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SPARK = "spark."
_SHARED_SLOTS = 256  # a slot costs nothing until it is used


@dataclass(frozen=True, slots=True)
class Submission:
    """One connector's Spark application: ``worker`` is the worker's file, ``config`` the connector's."""

    connector: str
    worker: Path
    mode: str
    config: Mapping[str, str]
    report: Path | None = None
    """Where a driver on this machine says what it has moved."""
    shared: bool = False
    """Whether ``connector`` is not a connector's name but that of an application that connectors share."""

    @property
    def application(self) -> str:
        """The driver's file, as it is installed here."""
        import sluiceway

        return str(Path(sluiceway.__file__).parent / "spark" / "driver_app.py")

    @property
    def name(self) -> str:
        return f"sluiceway-{self.connector}"

    @property
    def local_slots(self) -> int:
        """How many slots local mode needs: one for each task, and one in reserve for what comes and goes."""
        if self.shared:
            return _SHARED_SLOTS
        text = self.config.get(TASKS_MAX, "1").strip()
        return max(int(text) if text.isdigit() else 1, 1) + 1

    def py_files(self, more: str | None) -> str:
        """Return the package itself as a zip, then what the user asked for."""
        from sluiceway.spark.py_files import package_zip

        return ",".join(filter(None, (str(package_zip()), more)))

    def arguments(self, parent: int | None) -> list[str]:
        """Return the driver's arguments; ``parent`` is the process with which it ends, where it is a child."""
        what = "--application" if self.shared else "--connector"
        arguments = ["--worker", str(self.worker), what, self.connector, "--mode", self.mode]
        if parent is None:
            return arguments
        report = [] if self.report is None else ["--report", str(self.report)]
        return [*arguments, "--parent-pid", str(parent), *report]

    def conf(self, explicit: Mapping[Any, Any] | None) -> dict[str, Any]:
        """Return the Spark settings: the connector's ``spark.*`` keys, then ``explicit`` ones."""
        spark = {key: value for key, value in self.config.items() if key.startswith(_SPARK)}
        return {**spark, **(explicit or {})}

    def local_conf(self, conf: Mapping[str, Any], *, own_python: bool) -> dict[str, Any]:
        """Return settings for local mode: what makes it start sooner and keeps its log readable, unless set otherwise."""
        from sluiceway.spark.session import LOCAL_CONF, local_conf

        return {**(local_conf() if own_python else LOCAL_CONF), "spark.log.level": "WARN", **conf}

    def runs_own_python(self, explicit: Mapping[str, Any] | None, conf: Mapping[str, Any]) -> bool:
        """Whether a driver on this machine and its workers run the Python that runs this, which has the package."""
        given = {**os.environ, **(explicit or {})}
        return all(each in (None, sys.executable) for each in (given.get(_PYTHON), conf.get(_PYTHON_CONF)))

    def environment(self, explicit: Mapping[str, Any] | None, conf: Mapping[str, Any]) -> dict[str, Any]:
        """Return variables for a driver on this machine: this Python, its spark-submit, and a Java that Spark runs on."""
        from sluiceway.java_runtime import find_java

        given = {**os.environ, **(explicit or {})}
        variables: dict[str, Any] = {"PATH": os.pathsep.join((str(Path(sys.executable).parent), given.get("PATH", os.defpath)))}
        if _PYTHON not in given and _PYTHON_CONF not in conf:
            variables[_PYTHON] = sys.executable
        if _JAVA_HOME not in given:
            variables[_JAVA_HOME] = str(find_java().home)
        if _LAUNCHER not in given:
            variables[_LAUNCHER] = _LAUNCHER_OPTIONS
        return {**(explicit or {}), **variables}
