"""A Spark standalone cluster, from the pyspark package."""

from __future__ import annotations

import importlib.util
import sys
from functools import partial
from pathlib import Path

from sluiceway.java_runtime import find_java
from sluiceway.stack.ports import free_port, port_is_open
from sluiceway.stack.process import BackgroundProcess


def spark_home() -> Path:
    """Return the folder of the installed pyspark package, a complete Spark distribution."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


class SparkCluster:
    """Starts a master and workers with ``cores`` slots each. Executors are child processes of their worker and end with it."""

    def __init__(self, folder: Path, *, cores: int = 4, memory: str = "2g", workers: int = 1) -> None:
        self._port = free_port()
        launch = [str(spark_home() / "bin" / "spark-class")]
        env = {
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "512m",
            "PYSPARK_PYTHON": sys.executable,
            "JAVA_HOME": str(find_java().home),
        }
        self.url = f"spark://127.0.0.1:{self._port}"
        self.work = folder / "work"
        self._master = BackgroundProcess(
            "spark-master",
            [
                *launch,
                "org.apache.spark.deploy.master.Master",
                "--host",
                "127.0.0.1",
                "--port",
                str(self._port),
                "--webui-port",
                "0",
            ],
            folder,
            env=env,
        )
        self._workers = [
            BackgroundProcess(
                "spark-worker" if number == 0 else f"spark-worker-{number}",
                [
                    *launch,
                    "org.apache.spark.deploy.worker.Worker",
                    "--host",
                    "127.0.0.1",
                    "--webui-port",
                    "0",
                    "--cores",
                    str(cores),
                    "--memory",
                    memory,
                    "--work-dir",
                    str(self.work if number == 0 else self.work / str(number)),
                    self.url,
                ],
                folder,
                env=env,
            )
            for number in range(workers)
        ]

    def start(self) -> None:
        self._master.start()
        self._master.wait_until(lambda: port_is_open("127.0.0.1", self._port), 60, what="listening")
        for worker in self._workers:
            worker.start()
        for worker in self._workers:
            worker.wait_until(partial(_registered, worker), 60, what="registered")

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()
        self._master.stop()

    def worker_pids(self) -> list[int]:
        """Return the process ids of the workers that run."""
        return [pid for worker in self._workers if (pid := worker.status().pid) is not None]

    def executor_pids(self) -> list[int]:
        """Return the process ids of the executors, the workers' child processes."""
        import psutil

        children = [child for pid in self.worker_pids() for child in psutil.Process(pid).children()]
        return [child.pid for child in children if child.name() == "java"]


def _registered(worker: BackgroundProcess) -> bool:
    return "Successfully registered with master" in worker.log_tail(50)
