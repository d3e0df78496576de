"""A driver as a process: what becomes of it, and of the connector's status, when it is told to end, orphaned or killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from sluiceway.herder import Herder
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores

from support.driver import command_of, submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


class Running:
    """A source connector on a driver in local mode."""

    def __init__(self, herder: Herder, name: str, driver: BackgroundProcess, source: Path) -> None:
        self.herder = herder
        self.name = name
        self.driver = driver
        self.source = source

    def start(self) -> None:
        self.driver.start()
        self.eventually_states(("RUNNING", ["RUNNING"]), within=60)

    def states(self) -> tuple[str, list[str]]:
        status = self.herder.status(self.name)
        return status.connector.state.value, [task.state.value for task in status.tasks.values()]

    def eventually_states(self, wanted: tuple[str, list[str]], within: float = 10) -> None:
        eventually(lambda: self.states() == wanted, within=within, what=f"{wanted}\n{self.driver.log_tail(40)}")

    def processes(self) -> tuple[psutil.Process, psutil.Process]:
        """Return Spark's JVM and the Python driver below it."""
        jvm = psutil.Process(self.driver.status().pid)
        python = next(child for child in jvm.children() if "driver_app.py" in command_of(child))
        return jvm, python


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def running(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, parent: subprocess.Popen[bytes]
) -> Iterator[Running]:
    properties = worker_properties(kafka_bootstrap, unique("driver"))
    worker = worker_of(properties)
    worker_file = write_properties(tmp_path / "worker.properties", properties)
    name, source = unique("source"), tmp_path / "in.txt"
    source.write_text("a\n")
    with open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        herder.create(name, {"connector.class": "FileStreamSource", "file": str(source), "topic": unique("lines")})
        driver = submitted_driver(name, worker_file, tmp_path, master="local[2]")
        driver.command += ["--parent-pid", str(parent.pid)]
        made = Running(herder, name, driver, source)
        made.start()
        yield made
        driver.stop()


def test_sigterm_to_the_driver_drains_it_and_says_unassigned(running: Running) -> None:
    _, python = running.processes()
    python.terminate()
    eventually(lambda: not running.driver.is_running(), within=20, what="the driver's end")
    running.eventually_states(("UNASSIGNED", ["UNASSIGNED"]))


def test_a_driver_whose_submitter_is_gone_drains_and_ends(running: Running, parent: subprocess.Popen[bytes]) -> None:
    parent.kill()
    parent.wait()
    eventually(lambda: not running.driver.is_running(), within=20, what="the driver's end")
    running.eventually_states(("UNASSIGNED", ["UNASSIGNED"]))


def test_a_killed_jvm_takes_the_driver_with_it_and_the_status_says_so(running: Running) -> None:
    jvm, python = running.processes()
    jvm.kill()
    running.eventually_states(("UNASSIGNED", ["UNASSIGNED"]), within=20)
    eventually(
        lambda: not python.is_running() or python.status() == psutil.STATUS_ZOMBIE, within=20, what="the Python driver's end"
    )


def test_a_killed_python_driver_does_not_stay_running_in_the_status(running: Running) -> None:
    _, python = running.processes()
    python.kill()
    eventually(lambda: not running.driver.is_running(), within=20, what="the JVM's end")
    # Nobody is left to say so: the reader sees that the heartbeats have stopped.
    running.eventually_states(("UNASSIGNED", ["UNASSIGNED"]), within=35)


def test_a_killed_python_worker_is_replaced(running: Running) -> None:
    jvm, python = running.processes()
    workers = [p for p in jvm.children(recursive=True) if "pyspark" in command_of(p) and p.pid != python.pid]
    for worker in workers:
        worker.kill()
    eventually(lambda: "placing it anew" in running.driver.log.read_text(), within=30, what="the loss is noticed")
    running.eventually_states(("RUNNING", ["RUNNING"]), within=30)
