"""Submits a connector's driver with spark-submit and submits it again after a failure, as an Airflow task with retries does."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from sluiceway.java_runtime import find_java
from sluiceway.provider.driver.cluster_conf import cluster_conf
from sluiceway.provider.driver.submission import Submission
from support.clusters.daemons import MARKER
from support.clusters.deployments import Deployment
from support.clusters.local import LocalSpark
from support.clusters.standalone import spark_home
from support.eventually import LIMIT

RETRY_SECONDS = 1.0  # the operators' retry_delay


@dataclass(frozen=True)
class DriverExit:
    """The end of a spark-submit: its exit code and the time in seconds since the epoch."""

    code: int
    time: float


class Supervisor:
    """Runs spark-submit in a thread until it ends with code 0, or until ``stop``."""

    def __init__(
        self, deployment: Deployment, connector: str, worker: Path, config: Mapping[str, str], *, shared: bool = False
    ) -> None:
        """With ``shared``, ``connector`` is the name of an application that connectors share."""
        self.deployment = deployment
        self.exits: list[DriverExit] = []
        self._submission = Submission(connector, worker, "long-running", config, shared=shared)
        self._folder = worker.parent
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"supervisor-{connector}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self.log(len(self.exits)).open("wb") as log:
                self._process = subprocess.Popen(
                    self.command(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self._environment(),
                    start_new_session=True,
                )
                code = self._process.wait()
            self.exits.append(DriverExit(code, time.time()))
            if code == 0:
                return
            self._stopping.wait(RETRY_SECONDS)

    def exit_codes(self) -> list[int]:
        return [each.code for each in self.exits]

    def log(self, attempt: int) -> Path:
        return self._folder / f"driver-{attempt}.log"

    def log_tail(self, lines: int = 40) -> str:
        """Return the end of the newest driver's log."""
        newest = max(self._folder.glob("driver-*.log"), key=lambda file: file.stat().st_mtime, default=None)
        return "" if newest is None else "\n".join(newest.read_text(errors="replace").splitlines()[-lines:])

    def command(self) -> list[str]:
        """Return spark-submit's command line, as the operators build it."""
        deployment, submission = self.deployment, self._submission
        given = submission.conf(deployment.settings)
        in_cluster = self._in_cluster
        defaults = cluster_conf(deployment.master, submission.tasks, given, client_mode=not in_cluster)
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", deployment.master]
        command += ["--deploy-mode", deployment.deploy_mode, "--name", submission.name]
        command += ["--py-files", submission.py_files(None, given)]
        if in_cluster:
            command += ["--files", submission.files(None, given)]
        for key, value in {**(defaults if in_cluster else submission.client_conf(defaults)), **given}.items():
            command += ["--conf", f"{key}={value}"]
        return [
            *command,
            submission.application,
            *submission.arguments(None if in_cluster else os.getpid(), ships_worker=in_cluster),
        ]

    def _environment(self) -> dict[str, str]:
        own = {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java().home), "SPARK_HOME": str(spark_home())}
        # Without PYTHONPATH, which spark-submit hands on to containers, the driver imports the package from --py-files.
        left_out = () if isinstance(self.deployment.cluster, LocalSpark) else ("PYTHONPATH",)
        inherited = {key: value for key, value in os.environ.items() if key not in left_out}
        jvm = self._submission.jvm_variables(None, client_mode=not self._in_cluster)
        return {**inherited, **own, **jvm, **self.deployment.environment(), MARKER: str(self.deployment.folder)}

    @property
    def _in_cluster(self) -> bool:
        return self.deployment.deploy_mode == "cluster"

    @property
    def jvm(self) -> psutil.Process | None:
        """The running spark-submit, in client mode the driver's JVM; None if there is none."""
        with contextlib.suppress(psutil.NoSuchProcess):
            if self._process is not None and self._process.poll() is None:
                return psutil.Process(self._process.pid)
        return None

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Kill spark-submit and, in client mode, the driver. Tests that need a drained connector pause it first."""
        self._stopping.set()
        jvm = self.jvm
        if jvm is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                for each in (*jvm.children(recursive=True), jvm):
                    each.kill()
        if self._thread.ident is not None:
            self._thread.join(LIMIT)
