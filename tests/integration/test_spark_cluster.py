"""Drivers on a real Spark standalone cluster: tasks run on the worker's executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sluiceway.herder import Herder
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from support.clusters.daemons import command_of
from support.clusters.standalone import SparkCluster
from support.driver import submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ONE_EXECUTOR = {"spark.cores.max": "2", "spark.executor.cores": "2", "spark.executor.memory": "700m"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    made = SparkCluster(tmp_path_factory.mktemp("spark"))
    made.start()
    yield made
    made.stop()


def python_processes_of(executors: list[int]) -> list[str]:
    """Return the command lines of the Python workers below the executors."""
    found = []
    for executor in executors:
        for child in psutil.Process(executor).children(recursive=True):
            found.append(command_of(child))
    return [command for command in found if "pyspark" in command]


def test_two_connectors_run_on_the_clusters_executors_and_drain(
    cluster: SparkCluster, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    properties = worker_properties(kafka_bootstrap, unique("cluster"))
    worker_file = write_properties(tmp_path / "worker.properties", properties)
    source_file, sink_file = tmp_path / "in.txt", tmp_path / "out.txt"
    source_file.write_text("".join(f"line {n}\n" for n in range(20_000)))
    topic, source, sink = unique("lines"), unique("source"), unique("sink")
    worker = worker_of(properties)
    drivers: list[BackgroundProcess] = []
    with open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        herder.create(source, {"connector.class": "FileStreamSource", "file": str(source_file), "topic": topic})
        herder.create(sink, {"connector.class": "FileStreamSink", "file": str(sink_file), "topics": topic})
        try:
            for name in (source, sink):
                driver = submitted_driver(name, worker_file, tmp_path, master=cluster.url, conf=ONE_EXECUTOR)
                driver.start()
                drivers.append(driver)

            def copied() -> bool:
                assert all(driver.is_running() for driver in drivers), "\n".join(driver.log_tail(60) for driver in drivers)
                return sink_file.exists() and sink_file.read_bytes() == source_file.read_bytes()

            eventually(copied, within=120, what="equal files")
            assert len(python_processes_of(cluster.executor_pids())) >= 2, "the loops are not on the worker's executors"
            for name in (source, sink):
                herder.pause(name)
            for driver in drivers:
                eventually(lambda each=driver: not each.is_running(), within=30, what=f"{driver.name} ends")
            for name in (source, sink):
                eventually(lambda each=name: herder.status(each).connector.state.value == "PAUSED", what=f"{name} PAUSED")
        finally:
            for driver in drivers:
                driver.stop()


def test_too_few_slots_are_an_error(
    cluster: SparkCluster, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    properties = worker_properties(kafka_bootstrap, unique("slots"), **{"sluiceway.slots.timeout.ms": "3000"})
    worker_file = write_properties(tmp_path / "worker.properties", properties)
    worker = worker_of(properties)
    sink = unique("sink")
    with open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        config = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out.txt"), "topics": unique("t"), "tasks.max": "3"}
        herder.create(sink, config)
        driver = submitted_driver(sink, worker_file, tmp_path, master="local[2]")
        try:
            driver.start()
            eventually(lambda: herder.status(sink).connector.state.value == "FAILED", within=60, what="FAILED")
            trace = herder.status(sink).connector.trace or ""
            assert "has 2 slot(s) on local[2], but its tasks need 3" in trace
        finally:
            driver.stop()
