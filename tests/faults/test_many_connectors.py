"""200 connectors in one shared application on two executors, while its processes are killed at random for ten minutes.

CONNECTORS, MINUTES and SEED in the environment change that; the limit of a recovery is for a machine that has nothing else to do.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.herder import Herder
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from support.clusters.daemons import command_of
from support.clusters.standalone import SparkCluster
from support.counting import COUNT_SOURCE, plugin_folder
from support.driver import submitted_application, worker_of, worker_properties, write_properties
from support.eventually import LIMIT, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

CONNECTORS = int(os.environ.get("CONNECTORS", "200"))
MINUTES = float(os.environ.get("MINUTES", "10"))
SEED = int(os.environ.get("SEED", "1"))
RECOVERY_SECONDS = 120.0  # also on a busy machine; the times are printed
KINDS = tuple(os.environ.get("KINDS", "host executor driver").split())


class Fleet:
    """Sources that count, exactly once, and a file sink of each source's topic, which may repeat lines."""

    def __init__(self, bootstrap: str, herder: Herder, cluster: SparkCluster, driver: BackgroundProcess, folder: Path) -> None:
        self.herder, self.cluster, self.driver = herder, cluster, driver
        self._bootstrap, self._folder = bootstrap, folder
        self._sources = range(CONNECTORS // 2)

    def create(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        for future in admin.create_topics([NewTopic(self.topic(number), 1, 1) for number in self._sources]).values():
            future.result()
        for number in self._sources:
            source = {"connector.class": COUNT_SOURCE, "topic": self.topic(number), "delay": "0.5"}
            sink = {"connector.class": "FileStreamSink", "topics": self.topic(number), "file": str(self.file(number))}
            for name, config in ((f"source-{number}", source), (f"sink-{number}", sink)):
                self.herder.put_config(name, {"name": name, "sluiceway.application": "many", **config})

    def topic(self, number: int) -> str:
        return f"many-{number}"

    def file(self, number: int) -> Path:
        return self._folder / f"out-{number}.txt"

    def sizes(self) -> list[int]:
        """Return the sizes of the sinks' files, which grow only while both a source and its sink run."""
        return [self.file(number).stat().st_size if self.file(number).exists() else 0 for number in self._sources]

    def late(self, before: list[int]) -> list[int]:
        """Return the sinks that have written nothing since, and those with a connector that is not RUNNING."""
        return [number for number, (old, new) in enumerate(zip(before, self.sizes(), strict=True)) if new <= old]

    def not_running(self) -> list[str]:
        found = []
        for name in self.herder.connectors():
            status = self.herder.status(name)
            states = [status.connector.state.value, *(task.state.value for task in status.tasks.values())]
            if states != ["RUNNING", "RUNNING"]:
                found.append(f"{name} {states}")
        return found

    def kill(self, kind: str, chance: random.Random) -> str:
        if kind == "driver":
            pid = self.driver.status().pid
            assert pid is not None
            for each in [*psutil.Process(pid).children(recursive=True), psutil.Process(pid)]:
                each.kill()
            eventually(lambda: not self.driver.is_running(), what="the driver's end")
            self.driver.start()  # as the Airflow task does
            return f"driver {pid}"
        executors = self.cluster.executor_pids()
        if kind == "executor":
            victim = psutil.Process(chance.choice(executors))
        else:
            hosts = [each for pid in executors for each in psutil.Process(pid).children(recursive=True) if _is_host(each)]
            victim = chance.choice(hosts)
        victim.kill()
        return f"{kind} {victim.pid}"

    def counts(self, number: int) -> list[int]:
        """Return the numbers in a source's topic, without those of open and aborted transactions."""
        settings = {"bootstrap.servers": self._bootstrap, "group.id": "check", "enable.partition.eof": True}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
        consumer.assign([TopicPartition(self.topic(number), 0, OFFSET_BEGINNING)])
        found: list[int] = []
        while (message := consumer.poll(30)) is not None and message.error() is None:
            found.append(int(message.value() or b""))
        consumer.close()
        return found


def _is_host(process: psutil.Process) -> bool:
    return "pyspark" in command_of(process) and process.num_threads() > 3


@pytest.fixture
def fleet(kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    settings = {"plugin.path": str(plugin_folder(tmp_path)), "exactly.once.source.support": "enabled"}
    properties = worker_properties(kafka_bootstrap, tmp_path.name, **settings, **{"status.storage.partitions": "5"})
    monkeypatch.setattr(sys, "path", list(sys.path))
    use_plugin_path(properties)
    cluster = SparkCluster(tmp_path / "spark", cores=4, memory="3g", workers=2)
    try:
        cluster.start()
        with open_stores(worker_of(properties)) as stores:
            herder = Herder(worker_of(properties), stores.config, stores.status, stores.offsets)
            file = write_properties(tmp_path / "worker.properties", properties)
            conf = {
                "spark.executor.memory": "512m",
                "spark.executor.cores": "4",
                "spark.python.daemon.module": "sluiceway.spark.local_daemon",
            }
            driver = submitted_application("many", file, tmp_path, master=cluster.url, conf=conf)
            try:
                yield Fleet(kafka_bootstrap, herder, cluster, driver, tmp_path)
            finally:
                driver.stop(timeout=60)
    finally:
        cluster.stop()


@pytest.mark.timeout(60 * MINUTES + 1200)
def test_random_kills_of_processes_lose_and_repeat_nothing(fleet: Fleet) -> None:
    chance = random.Random(SEED)  # noqa: S311 (not a secret)
    fleet.create()
    fleet.driver.start()
    began = time.monotonic()
    _await_none(fleet.not_running, fleet)
    print(f"\n{CONNECTORS} connectors RUNNING after {time.monotonic() - began:.1f} s", flush=True)
    end = time.monotonic() + 60 * MINUTES
    recoveries: dict[str, list[float]] = {kind: [] for kind in KINDS}
    while time.monotonic() < end:
        kind = chance.choice(KINDS)
        victim, killed = fleet.kill(kind, chance), time.monotonic()
        before = fleet.sizes()
        _await_none(lambda before=before: fleet.late(before) or fleet.not_running(), fleet, within=RECOVERY_SECONDS)
        recoveries[kind].append(time.monotonic() - killed)
        print(f"killed {victim}: all RUNNING and moving after {recoveries[kind][-1]:.1f} s", flush=True)
        time.sleep(chance.uniform(0, 5))  # so that kills meet all moments of a start and of a flush
    for name in fleet.herder.connectors():
        if name.startswith("source"):
            fleet.herder.pause(name)
    _check(fleet)
    for kind, seconds in recoveries.items():
        if seconds:
            print(f"{len(seconds)} {kind}s killed: back after at most {max(seconds):.1f} s", flush=True)


def _check(fleet: Fleet) -> None:
    """Check topics and files: nothing lost, and nothing repeated by the sources, which promise it."""
    repeated = 0
    for number in range(CONNECTORS // 2):
        _await_none(lambda name=f"source-{number}": _not_paused(fleet, name), fleet)
        counts = fleet.counts(number)
        assert counts == list(range(1, len(counts) + 1)), f"{fleet.topic(number)}, exactly once: {counts}"
        lines = partial(_lines, fleet.file(number))
        _await_none(lambda counts=counts, lines=lines: set(counts) - set(lines()), fleet)
        repeated += len(lines()) - len(counts)
    print(f"{CONNECTORS // 2} topics have each number once; the file sinks repeated {repeated} lines", flush=True)


def _lines(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split("\n") if line]


def _not_paused(fleet: Fleet, name: str) -> list[str]:
    return [task.state.value for task in fleet.herder.status(name).tasks.values() if task.state.value != "PAUSED"]


def _await_none(wrong: Callable[[], Collection[object]], fleet: Fleet, *, within: float = LIMIT) -> None:
    """Wait until nothing is wrong; fail with what is, and the driver's log."""
    try:
        eventually(lambda: not wrong(), within=within, what="all is well")
    except AssertionError as error:
        raise AssertionError(f"{error}; wrong: {str(wrong())[:2000]}\n{fleet.driver.log_tail(40)}") from None
