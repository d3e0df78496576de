"""Java connectors on drivers that spark-submit starts: from a file to a topic to a file, and a killed Java process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from sluiceway.herder import Herder
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.java_plugins.host import MAIN_CLASS
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from support.clusters.daemons import command_of
from support.driver import submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import eventually
from support.java_plugins import CONNECT_FILE, fetch_runtime, forget_plugins, plugin_folder

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

_FILE = "org.apache.kafka.connect.file.FileStream"
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture
def plugins(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Worker keys of a plugin.path with Kafka's file connectors, which are preferred to the Python ones."""
    fetch_runtime()
    plugin_folder(tmp_path / "plugins", "connect-file", CONNECT_FILE)
    keys = {"plugin.path": str(tmp_path / "plugins"), "plugin.java": "prefer"}
    use_plugin_path(keys)
    yield keys
    forget_plugins()


def java_processes(driver: BackgroundProcess) -> list[psutil.Process]:
    """Return the Java processes of a driver's connector and tasks."""
    below = psutil.Process(driver.status().pid).children(recursive=True)
    return [each for each in below if MAIN_CLASS in command_of(each)]


@pytest.mark.long
def test_java_connectors_run_on_submitted_drivers_and_survive_the_loss_of_their_java_processes(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, plugins: dict[str, str]
) -> None:
    topic, source, sink = unique("lines"), unique("source"), unique("sink")
    given, found = tmp_path / "in.txt", tmp_path / "out.txt"
    given.write_text("one\ntwo\n")
    own = {"key.converter": _STRINGS, "value.converter": _STRINGS, "offset.flush.interval.ms": "500", **plugins}
    properties = worker_properties(kafka_bootstrap, unique("java"), **own)
    worker_file = write_properties(tmp_path / "worker.properties", properties)
    configs = {
        source: {"connector.class": f"{_FILE}SourceConnector", "file": str(given), "topic": topic},
        sink: {"connector.class": f"{_FILE}SinkConnector", "file": str(found), "topics": topic},
    }

    def lines() -> list[str]:
        return found.read_text().splitlines() if found.exists() else []

    with ExitStack() as stack:
        stores = stack.enter_context(open_stores(worker_of(properties)))
        herder = Herder(worker_of(properties), stores.config, stores.status, stores.offsets)
        drivers = []
        for name, config in configs.items():
            herder.create(name, config)
            driver = submitted_driver(name, worker_file, tmp_path / name, master="local[1]")
            stack.callback(driver.stop)
            driver.start()
            drivers.append(driver)

        eventually(lambda: lines() == ["one", "two"], what="two lines")
        assert herder.status(source).connector.version == "4.3.0"
        eventually(lambda: [dict(offset or {}) for _, offset in herder.offsets(source)] == [{"position": 8}], what="the offset")
        java = [process for driver in drivers for process in java_processes(driver)]
        assert len(java) == 4, "each connector and each task has one"

        for process in java:
            os.kill(process.pid, signal.SIGKILL)
        eventually(lambda: "FAILED" in states(herder, source) and "FAILED" in states(herder, sink), what="FAILED")
        for name in configs:
            herder.restart(name, include_tasks=True)
        with given.open("a") as file:
            file.write("three\n")
        eventually(lambda: lines()[-1:] == ["three"], what="a third line")
        left = [process for driver in drivers for process in java_processes(driver)]
    eventually(lambda: not any(each.is_running() for each in left), what="the Java processes have ended")


def states(herder: Herder, name: str) -> set[str]:
    status = herder.status(name)
    return {status.connector.state.value, *(task.state.value for task in status.tasks.values())}
