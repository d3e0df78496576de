"""A broker, a standalone cluster with two workers, and drivers on it in client mode, for benchmarks of many tasks."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import psutil
from confluent_kafka import Consumer, TopicPartition

from sluiceway.herder import Herder
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.codec import TaskStatusRecord, decode_status_record
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.storage.model import State
from support.clusters.standalone import SparkCluster
from support.driver import submitted_driver, worker_of, worker_properties, write_properties

_POLL_SECONDS = 0.1
_GB = 1 << 30


class NotEnoughMemoryError(Exception):
    """The machine would be left with less memory than the benchmark may use up."""


class Lab:
    """Runs connectors, one driver each, and knows the processes that take part.

    Args:
        bootstrap: the broker's address.
        master: the Spark master's URL.
        folder: for logs and files.
        reserve_gb: waits fail once less memory than this is available on the machine, so that other processes live on.
        pids: the processes of broker and Spark workers on this machine.
    """

    def __init__(
        self, bootstrap: str, master: str, folder: Path, reserve_gb: float, pids: Callable[[], list[int | None]]
    ) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self._master = master
        self._reserve_gb = reserve_gb
        self._pids = pids
        self._drivers: list[BackgroundProcess] = []

    def pids(self) -> list[int]:
        """Return the processes whose descendants all belong to the lab."""
        return [pid for pid in (*(driver.status().pid for driver in self._drivers), *self._pids()) if pid is not None]

    @contextmanager
    def group(self, **worker: str) -> Iterator[Group]:
        """Yield a group with internal topics of its own; its drivers end with it."""
        properties = worker_properties(self.bootstrap, f"group-{uuid.uuid4().hex[:8]}", **worker)
        with open_stores(worker_of(properties)) as stores:
            group = Group(self, properties, stores)
            try:
                yield group
            finally:
                for driver in self._drivers:
                    driver.stop(timeout=30)
                self._drivers.clear()

    def start_driver(self, connector: str, worker_file: Path, conf: Mapping[str, str]) -> BackgroundProcess:
        driver = submitted_driver(connector, worker_file, self.folder, master=self._master, conf=conf)
        self._drivers.append(driver)
        driver.start()
        return driver

    def wait(self, condition: Callable[[], bool], within: float, what: str) -> float:
        """Return the seconds until the condition was true. Raises SystemExit after ``within`` seconds."""
        began = time.monotonic()
        while not condition():
            if psutil.virtual_memory().available < self._reserve_gb * _GB:
                raise NotEnoughMemoryError(f"less than {self._reserve_gb:g} GB are available; waited for {what}")
            if time.monotonic() - began > within:
                raise SystemExit(f"gave up after {within:g} s: {what}")
            time.sleep(_POLL_SECONDS)
        return time.monotonic() - began


class Group:
    """One group's herder, stores and drivers."""

    def __init__(self, lab: Lab, properties: Mapping[str, str], stores: Stores) -> None:
        self.lab = lab
        self.worker = worker_of(properties)
        self.herder = Herder(self.worker, stores.config, stores.status, stores.offsets)
        self._worker_file = write_properties(lab.folder / f"{self.worker.group_id}.properties", properties)

    def run(self, name: str, config: Mapping[str, str], conf: Mapping[str, str] | None = None) -> BackgroundProcess:
        """Create a connector and start its driver, with further Spark settings."""
        self.herder.put_config(name, {"name": name, **config})
        settings = {"spark.executor.memory": "1g", **(conf or {})}
        return self.lab.start_driver(name, self._worker_file, settings)

    def states(self, name: str) -> list[State]:
        """Return the tasks' states as the REST API shows them."""
        return [status.state for status in self.herder.status(name).tasks.values()]

    def all_in(self, name: str, state: State, tasks: int) -> bool:
        return self.states(name) == [state] * tasks


class StatusFeed:
    """Task statuses as they are written to the status topic from now on; ``read`` takes in what has arrived."""

    def __init__(self, group: Group) -> None:
        self.seen: list[tuple[float, int, State | None]] = []
        """Record timestamp in seconds since the epoch, task, state."""
        self.records = 0
        self._consumer = Consumer(
            {"bootstrap.servers": group.lab.bootstrap, "group.id": uuid.uuid4().hex, "enable.auto.commit": False}
        )
        topic = group.worker.status_topic
        partitions = self._consumer.list_topics(topic, timeout=30).topics[topic].partitions
        ends = [TopicPartition(topic, each) for each in partitions]
        for each in ends:
            each.offset = self._consumer.get_watermark_offsets(each, timeout=30)[1]
        self._consumer.assign(ends)

    def read(self) -> None:
        while messages := self._consumer.consume(5000, 0.2):
            for message in messages:
                if message.error() is not None:
                    continue
                self.records += 1
                record = decode_status_record(message.key(), message.value(), message.timestamp()[1])
                if isinstance(record, TaskStatusRecord):
                    state = None if record.status is None else record.status.state
                    self.seen.append((message.timestamp()[1] / 1000, record.task.task, state))
            if len(messages) < 100:
                break

    def forget(self) -> None:
        self.read()
        self.seen.clear()
        self.records = 0

    def cycled(self, tasks: int) -> bool:
        """Return True if every task was in another state and is RUNNING again."""
        self.read()
        left: set[int] = set()
        running: set[int] = set()
        for _, task, state in self.seen:
            if state is State.RUNNING:
                running |= {task} & left
            else:
                left.add(task)
                running.discard(task)
        return len(running) == tasks

    def longest_silence(self) -> float | None:
        """Return the most seconds between two records of one task, or None if no task wrote two."""
        times: dict[int, list[float]] = {}
        for at, task, _ in self.seen:
            times.setdefault(task, []).append(at)
        gaps = [later - earlier for each in times.values() for earlier, later in pairwise(each)]
        return max(gaps, default=None)

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def open_lab(
    folder: Path, *, slots: int, reserve_gb: float = 5.0, bootstrap: str | None = None, master: str | None = None
) -> Iterator[Lab]:
    """Yield a lab whose two Spark workers have ``slots`` slots together. Starts neither a given broker nor a given cluster."""
    with ExitStack() as stack:
        parts: list[Callable[[], list[int | None]]] = []
        if bootstrap is None:
            broker = EmbeddedBroker(folder / "broker")
            stack.callback(broker.stop)
            bootstrap = broker.start()
            parts.append(lambda: [broker.status().pid])
        if master is None:
            cluster = SparkCluster(folder / "spark", cores=(slots + 1) // 2, memory="3g", workers=2)
            stack.callback(cluster.stop)
            cluster.start()
            master = cluster.url
            parts.append(lambda: [worker.status().pid for worker in cluster.workers])
        yield Lab(bootstrap, master, folder, reserve_gb, lambda: [pid for part in parts for pid in part()])
