"""A Spark standalone cluster with one master and one worker, from the pyspark package."""

from __future__ import annotations

import importlib.util
import sys
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
    """Starts master and worker. Executors are the worker's child processes and end with it."""

    def __init__(self, folder: Path, *, cores: int = 4, memory: str = "2g") -> None:
        self._port = free_port()
        self._web_port = free_port()
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
                str(self._web_port),
            ],
            folder,
            env=env,
        )
        self._worker = BackgroundProcess(
            "spark-worker",
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
                str(self.work),
                self.url,
            ],
            folder,
            env=env,
        )

    def start(self) -> None:
        self._master.start()
        self._master.wait_until(lambda: port_is_open("127.0.0.1", self._port), 60, what="listening")
        self.start_worker()

    def start_worker(self) -> None:
        """Start the worker, again after ``kill_worker``."""
        self._worker.start()
        self._worker.wait_until(lambda: "Successfully registered with master" in self._worker.log_tail(50), 180, what="registered")

    def kill_worker(self) -> None:
        """End the worker's process without notice. Its executors notice and end, too."""
        import psutil

        worker = self._worker.status().pid
        assert worker is not None
        process = psutil.Process(worker)
        process.kill()
        process.wait(10)

    def applications(self) -> list[str]:
        """Return the ids of the running applications."""
        import httpx

        state = httpx.get(f"http://127.0.0.1:{self._web_port}/json/").json()
        return [application["id"] for application in state["activeapps"]]

    def kill_application(self, application: str) -> None:
        """End an application as its link in the master's web page does."""
        import httpx

        httpx.post(f"http://127.0.0.1:{self._web_port}/app/kill/", data={"id": application, "terminate": "true"})

    def stop(self) -> None:
        self._worker.stop()
        self._master.stop()

    def executor_pids(self) -> list[int]:
        """Return the process ids of the executors, the worker's child processes."""
        import psutil

        worker = self._worker.status().pid
        if worker is None:
            return []
        return [child.pid for child in psutil.Process(worker).children() if child.name() == "java"]
