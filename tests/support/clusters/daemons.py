"""Starts the JVMs of a cluster, kills them, and finds all processes that they have started."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import psutil

from sluiceway.java_runtime import find_java
from sluiceway.stack.process import BackgroundProcess
from support.eventually import eventually

HOST = "127.0.0.1"
#: Environment variable of every process of a cluster, with the cluster's folder. Executors and containers inherit it.
MARKER = "SLUICEWAY_TEST_CLUSTER"

_EXECUTOR = "org.apache.spark.executor"
_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true", "-Djava.awt.headless=true")
# Hadoop and Spark reach into these packages of the Java runtime.
_OPENS = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
)


class Cluster(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


ClusterT = TypeVar("ClusterT", bound=Cluster)


@contextlib.contextmanager
def running(cluster: ClusterT) -> Iterator[ClusterT]:
    """Run a cluster for the time of a ``with`` block; stop it also if its start fails."""
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


class Daemon(BackgroundProcess):
    """A JVM of a cluster.

    Args:
        name: names the process, its log and its pid file.
        classpath: Java's class path; folders come first.
        main: the main class.
        arguments: the main class's arguments.
        folder: the cluster's folder.
        heap: the maximum heap.
        options: more options of the JVM.
        env: more environment variables.
    """

    def __init__(
        self,
        name: str,
        classpath: str,
        main: str,
        arguments: Sequence[str],
        folder: Path,
        *,
        heap: str = "256m",
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        opens = [f"--add-opens={each}=ALL-UNNAMED" for each in _OPENS]
        java = find_java()
        command = [str(java.executable), f"-Xmx{heap}", *_FLAGS, *opens, *options, "-cp", classpath, main, *arguments]
        super().__init__(name, command, folder, env={"JAVA_HOME": str(java.home), MARKER: str(folder), **(env or {})})

    def kill(self) -> None:
        """Kill the JVM with SIGKILL, but not its children, and wait for its end."""
        kill(self.process())
        eventually(lambda: not self.is_running(), what=f"the end of {self.name}")  # its last threads may hold its port

    def process(self) -> psutil.Process:
        pid = self.status().pid
        assert pid is not None, f"{self.name} does not run\n{self.log_tail()}"
        return psutil.Process(pid)


def command_of(process: psutil.Process) -> str:
    """Return a process's command line, or an empty text for one that has ended (Spark leaves short-lived zombies)."""
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # ZombieProcess is a NoSuchProcess
        return ""


def members(folder: Path) -> list[psutil.Process]:
    """Return all running processes of the cluster in a folder: daemons, executors, containers and what they have started."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(MARKER) == str(folder):
                found.append(process)
    return found


def end_all(folder: str) -> None:
    """Kill all processes of the cluster in a folder."""
    for _ in range(3):  # a process may start another one meanwhile
        left = members(Path(folder))
        kill(*left)


def kill(*processes: psutil.Process) -> None:
    """Kill processes with SIGKILL and wait for their ends. Leaves the exit codes of children to those who started them."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    eventually(lambda: all(map(_has_ended, processes)), what=f"the ends of {processes}")


def _has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def executors(folder: Path, application: str = "") -> list[psutil.Process]:
    """Return the JVMs of executors, of all applications or of the one whose id is given."""
    return [each for each in members(folder) if _is_java(each) and _is_executor_of(command_of(each), application)]


def _is_executor_of(command: str, application: str) -> bool:
    return _EXECUTOR in command and (not application or f"--app-id {application}" in command)


def application_masters(folder: Path) -> list[psutil.Process]:
    """Return the JVMs of YARN's application masters: in cluster mode they run the drivers."""
    names = ("org.apache.spark.deploy.yarn.ApplicationMaster", "org.apache.spark.deploy.yarn.ExecutorLauncher")
    return [each for each in members(folder) if _is_java(each) and any(name in command_of(each) for name in names)]


def python_drivers(folder: Path) -> list[psutil.Process]:
    """Return the Python drivers that run in the cluster."""
    return [
        each for each in members(folder) if "driver_app.py" in command_of(each) and not _is_java(each) and not _is_shell(each)
    ]


def task_processes(executor: psutil.Process, bootstrap: str) -> list[psutil.Process]:
    """Return an executor's Python workers that are connected to a broker, so those that run a task."""
    port = int(bootstrap.rpartition(":")[2])
    found = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in executor.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any(each.raddr and each.raddr.port == port for each in child.net_connections(kind="tcp")):
                    found.append(child)
    return found


def _is_java(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.name() == "java"
    return False


def _is_shell(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.name() in ("bash", "sh")
    return True
