"""Connectors that move between applications, and applications over which connectors are spread: on a local Spark master."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from sluiceway.api import TopicPartition
from sluiceway.herder import Herder
from sluiceway.kafka.admin import end_offsets
from sluiceway.kafka.clients import admin_client
from sluiceway.spark.session import local_conf
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from support.driver import submitted_application, submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import LIMIT, eventually
from support.growing_file import GrowingFile
from support.transactions import seen

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


class Cluster:
    """A Connect cluster with a default application, and the drivers that a test starts."""

    def __init__(self, herder: Herder, folder: Path, kafka: str, group: str, worker_file: Path) -> None:
        self.herder = herder
        self._folder = folder
        self._kafka = kafka
        self._admin = admin_client(worker_of({"bootstrap.servers": kafka}))
        self._group = group
        self._worker_file = worker_file
        self.drivers: dict[str, BackgroundProcess] = {}
        self.lines: dict[str, GrowingFile] = {}

    def create(self, name: str, more: Mapping[str, str] | None = None, *, idle: bool = False) -> None:
        path = self._folder / f"{name}.txt"
        if idle:
            path.touch()
        elif name not in self.lines:
            self.lines[name] = GrowingFile(path, "{}")
        source = {"connector.class": "FileStreamSource", "file": str(path), "topic": f"{self._group}-{name}"}
        self.herder.put_config(name, {"name": name, **source, **(more or {})})

    def application(self, name: str) -> None:
        self._start(name, submitted_application(name, self._worker_file, self._folder, master="local[16]", conf=local_conf()))

    def own_driver(self, connector: str) -> None:
        driver = submitted_driver(connector, self._worker_file, self._folder, master="local[4]", conf=local_conf())
        self._start(connector, driver)

    def _start(self, name: str, driver: BackgroundProcess) -> None:
        self.drivers[name] = driver
        driver.start()

    def worker_id(self, name: str) -> str:
        return self.herder.status(name).connector.worker_id

    def eventually_runs(self, name: str, *, on: str | None = None, within: float = LIMIT) -> str:
        """Wait until a connector and its task run, on another driver than ``on``; return its driver's id."""

        def runs() -> str | None:
            status = self.herder.status(name)
            states = [status.connector.state.value, *(task.state.value for task in status.tasks.values())]
            return status.connector.worker_id if states == ["RUNNING"] * 2 and status.connector.worker_id != on else None

        return eventually(runs, within=within, what=f"{name}: {self.herder.status(name)}")

    def eventually_moves_records(self, name: str) -> None:
        written = self.lines[name].written
        eventually(lambda: self.position(name) > written, what=f"line {written} of {name}")

    def position(self, name: str) -> int:
        """Return the end of a connector's topic. While lines are written, a reader may never reach it."""
        place = TopicPartition(f"{self._group}-{name}", 0)
        return end_offsets(self._admin, [place])[place] if self.herder.topics(name) else 0

    def read(self, name: str) -> list[int]:
        """Stop the lines of a connector, wait until all have been moved, and return what its topic holds."""
        self.lines[name].close()
        written = self.lines[name].written
        eventually(lambda: self.position(name) >= written, what=f"{written} lines of {name}")
        return [int(message.value() or b"") for message in seen(self._kafka, f"{self._group}-{name}")]

    def close(self) -> None:
        for lines in self.lines.values():
            lines.close()
        for name in self.herder.connectors():
            self.herder.delete(name)
        for driver in self.drivers.values():
            driver.stop(timeout=60)


@pytest.fixture
def cluster(
    kafka_bootstrap: str, tmp_path: Path, unique: Callable[[str], str], request: pytest.FixtureRequest
) -> Iterator[Cluster]:
    group = unique("applications")
    properties = worker_properties(
        kafka_bootstrap,
        group,
        **{
            "sluiceway.application.default": "many",
            "sluiceway.heartbeat.interval.ms": "1000",
            "sluiceway.heartbeat.timeout.ms": "4000",
            **getattr(request, "param", {}),
        },
    )
    worker = worker_of(properties)
    file = write_properties(tmp_path / "worker.properties", properties)
    with open_stores(worker) as stores:
        started = Cluster(Herder(worker, stores.config, stores.status, stores.offsets), tmp_path, kafka_bootstrap, group, file)
        try:
            yield started
        finally:
            started.close()


@pytest.mark.long
def test_a_connector_moves_out_of_the_default_application_and_back_without_a_lost_or_repeated_line(cluster: Cluster) -> None:
    cluster.create("moved")
    cluster.create("neighbor")
    cluster.application("many")
    shared = cluster.eventually_runs("moved")
    assert cluster.eventually_runs("neighbor") == shared
    cluster.eventually_moves_records("moved")

    cluster.create("moved", more={"spark.driver.memory": "512m"})
    assert cluster.herder.application("moved").application is None
    eventually(lambda: cluster.herder.status("moved").connector.state.value == "UNASSIGNED", what="the release")
    cluster.own_driver("moved")
    assert cluster.eventually_runs("moved", on=shared) != shared
    cluster.eventually_moves_records("moved")

    cluster.create("moved")
    assert cluster.herder.application("moved").application == "many"
    own = cluster.drivers["moved"]
    eventually(lambda: not own.is_running(), what="the end of its own driver")
    assert cluster.worker_id("neighbor") == shared
    eventually(lambda: cluster.worker_id("moved") == shared, what="the shared driver")
    cluster.eventually_runs("moved")
    for name in ("moved", "neighbor"):
        assert cluster.read(name) == list(range(1, cluster.lines[name].written + 1))


@pytest.mark.long
@pytest.mark.parametrize("cluster", [{"sluiceway.application.max.tasks": "3"}], indirect=True)
def test_connectors_are_spread_over_applications_and_those_of_a_dead_one_move(cluster: Cluster) -> None:
    names = ["a", "b", "c", "d", "e"]
    for name in names:
        cluster.create(name)
    cluster.application("many")
    eventually(lambda: cluster.herder.application("e").application == "many-2", what="two applications")
    cluster.application("many-2")
    first, second = cluster.eventually_runs("a"), cluster.eventually_runs("e")
    assert first != second
    assert [cluster.eventually_runs(name) for name in names] == [first] * 3 + [second] * 2

    cluster.herder.delete("b")
    cluster.create("new")
    assert cluster.eventually_runs("new") in (first, second)
    for name in ("new", "c"):
        cluster.herder.delete(name)
    assert cluster.herder.application("e").application == "many-2", "nothing else has moved"

    family = cluster.drivers["many-2"].status().pid
    assert family is not None
    _kill_family(family)
    assert [cluster.eventually_runs(name, on=second) for name in ("d", "e")] == [first] * 2
    assert cluster.worker_id("a") == first
    assert cluster.read("a") == list(range(1, cluster.lines["a"].written + 1)), "the neighbor noticed nothing"
    for name in ("d", "e"):
        assert set(cluster.read(name)) == set(range(1, cluster.lines[name].written + 1)), "nothing is lost"


BUSY = "while True: pass"
STARTS = 50


@pytest.mark.long
@pytest.mark.parametrize(
    "cluster", [{"sluiceway.heartbeat.interval.ms": "10000", "sluiceway.heartbeat.timeout.ms": "25000"}], indirect=True
)
def test_many_starts_on_a_busy_machine_all_run_and_no_status_flaps(cluster: Cluster) -> None:
    cluster.create("first")
    cluster.application("many")
    cluster.eventually_runs("first")
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            other = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(other.kill)
        began = time.monotonic()
        names = [f"c{number}" for number in range(STARTS)]
        for name in names:
            cluster.create(name, idle=True)
        ran: dict[str, float] = {}
        flaps: list[str] = []

        def look() -> bool:
            for name in ("first", *names):
                status = cluster.herder.status(name)
                states = [status.connector.state.value, *(task.state.value for task in status.tasks.values())]
                if states == ["RUNNING", "RUNNING"]:
                    ran.setdefault(name, time.monotonic() - began)
                elif name in ran:
                    flaps.append(f"{name} {states} after {time.monotonic() - began:.1f} s: {status}")
            return len(ran) == STARTS + 1

        eventually(look, what=f"{STARTS} connectors RUNNING")
        print(
            f"{STARTS} connectors RUNNING after {max(ran.values()):.1f} s, half after {sorted(ran.values())[STARTS // 2]:.1f} s"
        )
        until = time.monotonic() + 30
        eventually(lambda: look() and time.monotonic() > until, what="half a minute")
        assert flaps == []
        cluster.eventually_moves_records("first")


def _kill_family(pid: int) -> None:
    jvm = psutil.Process(pid)
    for process in [*jvm.children(recursive=True), jvm]:
        process.kill()
