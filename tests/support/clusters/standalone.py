"""A Spark standalone cluster: a master and its workers, from the pyspark package."""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from sluiceway.stack.ports import free_port, port_is_open
from support.clusters.daemons import HOST, Daemon, end_all, executors
from support.eventually import LIMIT, eventually
from support.guard import Guard

_DECOMMISSION = ["-Dspark.decommission.enabled=true"]  # otherwise a worker ends at once on SIGPWR


def spark_home() -> Path:
    """Return the folder of the installed pyspark package, a complete Spark distribution."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


class SparkCluster:
    """A master that keeps its state in files, and workers. Executors are the workers' child processes and end with them.

    Args:
        folder: the cluster's folder.
        cores: the cores of each worker.
        memory: the memory of each worker for executors.
        workers: the number of workers.
    """

    def __init__(self, folder: Path, *, cores: int = 4, memory: str = "2g", workers: int = 1) -> None:
        self.folder = folder
        self.work = folder / "work"
        self._port, self._web = free_port(), free_port()
        self.url = f"spark://{HOST}:{self._port}"
        self.web = f"http://{HOST}:{self._web}"
        # Without its start scripts, Spark does not know its own Scala version.
        self._env = {
            "SPARK_HOME": str(spark_home()),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": HOST,
            "PYSPARK_PYTHON": sys.executable,
        }
        recovery = [
            "-Dspark.deploy.recoveryMode=FILESYSTEM",
            f"-Dspark.deploy.recoveryDirectory={folder / 'recovery'}",
            "-Dspark.master.rest.enabled=false",
            "-Dspark.ui.killEnabled=true",
        ]
        address = ["--host", HOST, "--port", str(self._port), "--webui-port", str(self._web)]
        self.master = self._daemon("spark-master", "org.apache.spark.deploy.master.Master", address, recovery)
        offered = ["--cores", str(cores), "--memory", memory, "--work-dir", str(self.work)]
        self.workers = [self._worker(number, offered) for number in range(workers)]
        self._guard = Guard(end_all, folder)

    def _daemon(self, name: str, main: str, arguments: list[str], options: list[str]) -> Daemon:
        return Daemon(name, f"{spark_home()}/jars/*", main, arguments, self.folder, options=options, env=self._env)

    def _worker(self, number: int, offered: list[str]) -> Daemon:
        arguments = ["--host", HOST, "--port", str(free_port()), "--webui-port", "0", *offered, self.url]
        return self._daemon(f"spark-worker-{number}", "org.apache.spark.deploy.worker.Worker", arguments, _DECOMMISSION)

    def start(self) -> None:
        """Start the daemons that do not run, and wait until all workers have registered."""
        (self.folder / "recovery").mkdir(parents=True, exist_ok=True)
        self.master.start()
        self.master.wait_until(lambda: port_is_open(HOST, self._port), LIMIT, what="listening")
        for worker in self.workers:
            worker.start()
        eventually(lambda: self.alive_workers() == len(self.workers), what="registered workers")

    def stop(self) -> None:
        """End all processes."""
        for daemon in (*self.workers, self.master):
            daemon.stop(5)
        self._guard.close()

    def start_worker(self, number: int = 0) -> None:
        """Start a killed worker again, and wait until it has registered."""
        worker = self.workers[number]
        worker.start()
        worker.wait_until(lambda: "Successfully registered with master" in worker.log_tail(50), LIMIT, what="registered")

    def kill_worker(self, number: int = 0) -> None:
        """Kill a worker's process. Its executors notice and end, too."""
        self.workers[number].kill()

    def decommission_worker(self, number: int) -> None:
        """Tell a worker that its host is about to be taken away. It stays until it is stopped, but gets no new executors."""
        self.workers[number].process().send_signal(signal.SIGPWR)

    def executors_of_worker(self, number: int) -> set[int]:
        """Return the process ids of a worker's executors."""
        return {each.pid for each in self.workers[number].process().children()} & set(self.executor_pids())

    def state(self) -> dict[str, Any]:
        """Return the master's status, empty if it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.web}/json/", timeout=10) as response:  # noqa: S310 (our own server)
                found: dict[str, Any] = json.load(response)
                return found
        except (OSError, ValueError):
            return {}

    def alive_workers(self) -> int:
        return int(self.state().get("aliveworkers", 0))

    def applications(self) -> list[str]:
        """Return the ids of running applications."""
        return [str(each["id"]) for each in self.state().get("activeapps", ())]

    def kill_application(self, application: str) -> None:
        """Kill an application as the button in the master's web UI does."""
        body = f"id={application}&terminate=true".encode()
        request = urllib.request.Request(f"{self.web}/app/kill/", body, method="POST")  # noqa: S310 (our own server)
        try:
            urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 (our own server)
        except urllib.error.HTTPError as error:
            if error.code != 405:  # it redirects to the start page, which takes no POST
                raise

    def executors(self, application: str = "") -> list[psutil.Process]:
        return executors(self.folder, application)

    def executor_pids(self) -> list[int]:
        """Return the process ids of the executors."""
        return [each.pid for each in self.executors()]
