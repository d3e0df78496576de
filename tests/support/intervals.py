"""Moves intervals of a connector as an Airflow task does, without Airflow and Spark, and dies where a test wants it to."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection

import orjson
from confluent_kafka import Producer

from sluiceway.api import TopicPartition
from sluiceway.config.intervals import Interval, IntervalSettings
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.herder.intervals import reads_in_order
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.java_plugins.connector import JavaConnector
from sluiceway.java_plugins.hosts import task_host
from sluiceway.provider.driver.interval_connector import IntervalConnector, MovedBefore, Outcome, WantedInterval
from sluiceway.provider.driver.interval_runs import IntervalRuns
from sluiceway.storage.factory import open_source_offsets, open_stores
from sluiceway.storage.interval_ledger import read_ledger
from sluiceway.storage.intervals import IntervalEntry, Ledger
from sluiceway.testing import MemoryConnectorContext
from support.engine import RunningTask
from support.eventually import LIMIT
from support.processes import fresh_processes

_HOUR = 3_600_000
_SCHEMA = {"type": "struct", "optional": False, "fields": [{"field": "text", "type": "string", "optional": False}]}
CONVERTERS = {"key.converter": "StringConverter", "value.converter": "JsonConverter"}
"""Keys with which connectors read the records of ``fill``."""


@dataclass(frozen=True)
class Sent:
    """A record of the topic, with its time in milliseconds since the epoch."""

    place: TopicPartition
    offset: int
    time: int
    value: str


def hours(first: int, count: int, hour: int = _HOUR) -> list[Interval]:
    """Return successive intervals from a time on."""
    return [Interval(first + number * hour, first + (number + 1) * hour) for number in range(count)]


def json_of(value: str) -> bytes:
    """Return a record's value as JsonConverter reads it."""
    return orjson.dumps({"schema": _SCHEMA, "payload": {"text": value}})


def fill(
    bootstrap: str, topic: str, partitions: int, intervals: Sequence[Interval], each: int, lateness: int, chance: random.Random
) -> list[Sent]:
    """Write records of these intervals to a topic; some are out of order, and some late. Return them."""
    sent: list[Sent] = []
    # Idempotent: else a batch that is sent again comes behind later ones, and records are not at the offsets that tests expect.
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "enable.idempotence": True})
    for partition in range(partitions):
        times: list[tuple[float, int]] = []
        for interval in intervals:
            for _ in range(each):
                time_ = chance.randrange(interval.start, interval.end)
                late = chance.random() < 0.05
                delay = chance.uniform(lateness, 3 * (interval.end - interval.start)) if late else chance.uniform(0, lateness / 2)
                times.append((time_ + delay, time_))
        for offset, (_, time_) in enumerate(sorted(times)):
            value = f"{partition}-{offset}"
            producer.produce(
                topic, orjson.dumps({"schema": _SCHEMA, "payload": {"text": value}}), value, partition, timestamp=time_
            )
            sent.append(Sent(TopicPartition(topic, partition), offset, time_, value))
    assert producer.flush(60) == 0
    return sent


def belongings(sent: Iterable[Sent], intervals: Sequence[Interval], lateness: int) -> dict[Interval, list[str]]:
    """Return the values that belong to each interval, by the documented rule, written down a second time."""
    logs: dict[TopicPartition, list[Sent]] = {}
    for each in sent:
        logs.setdefault(each.place, []).append(each)
    found: dict[Interval, list[str]] = {interval: [] for interval in intervals}
    for log in logs.values():
        closed = [
            next((each.offset for each in log if each.time >= boundary + lateness), len(log))
            for boundary in (*(interval.start for interval in intervals), intervals[-1].end)
        ]
        for each in log:
            for number, interval in enumerate(intervals):
                in_time = interval.start <= each.time < interval.end
                is_late = each.time < interval.start and closed[number] <= each.offset
                if each.offset < closed[number + 1] and (in_time or is_late):
                    found[interval].append(each.value)
                    break
    return found


class IntervalMover:
    """Moves the intervals of one connector. ``worker`` are its properties."""

    def __init__(self, worker: WorkerConfig, config: Mapping[str, str], tasks: int = 1) -> None:
        self.worker = worker
        self.config = {"airflow.mode": "micro-batch", "airflow.interval": "exact", **config}
        self.name = config["name"]
        self.runs = IntervalRuns(worker)
        self.tasks = tasks
        self.seconds = 1.0
        """The time that the tasks of the last run took: where a kill may come depends on how busy the machine is."""

    def wanted(self, interval: Interval, run: str) -> WantedInterval:
        settings = IntervalSettings.of(self.config)
        in_order = reads_in_order(self.config)
        return WantedInterval(self.name, self.config, run, interval.start, interval.end, settings, in_order)

    def begin(self, interval: Interval, run: str) -> Outcome:
        return self.runs.begin(self.wanted(interval, run))

    def move(self, interval: Interval, run: str, kill_after: float | None = None) -> IntervalEntry | None:
        """Move an interval; return the ledger's entry, None if the tasks were killed so many seconds after their start."""
        begun = self.begin(interval, run)
        if isinstance(begun, MovedBefore):
            return begun.entry
        assert isinstance(begun, IntervalConnector), begun
        return self.finish(begun, kill_after)

    def finish(self, begun: IntervalConnector, kill_after: float | None = None) -> IntervalEntry | None:
        connector = connector_class(begun.config["connector.class"])()
        connector.initialize(MemoryConnectorContext())
        context = fresh_processes()
        with ExitStack() as stack:
            stack.enter_context(task_host("connector"))  # of a connector in Java
            connector.start(begun.config)
            stack.callback(connector.stop)
            own = {"task.class": connector.java_task_class} if isinstance(connector, JavaConnector) else {}
            keys = {} if begun.is_temporary else begun.run.keys()  # which the driver finds in the ledger
            configs = [{**config, **own, **keys} for config in connector.task_configs(self.tasks)]
            processes = []
            traces, sender = context.Pipe(duplex=False)
            for number, config in enumerate(configs):
                process = context.Process(target=_run, args=(dict(config), dict(self.worker.raw), number, sender), daemon=True)
                process.start()
                stack.callback(process.join)
                stack.callback(process.kill)
                processes.append(process)
            if kill_after is not None:
                time.sleep(kill_after)  # where to kill
                if any(process.is_alive() for process in processes):
                    return None
            started = time.monotonic()
            for process in processes:
                process.join(LIMIT)
                trace = traces.recv() if traces.poll() else "no trace"
                assert process.exitcode == 0, f"a task of {begun.name} ended with {process.exitcode}: {trace}"
            self.seconds = time.monotonic() - started
        return self.runs.end(begun.name, None)

    def rerun(self) -> int:
        """Move intervals again for which records came late, as their cleared runs do, until there are none; return how many."""
        reruns = 0
        while waiting := [entry for entry in self.ledger().entries.values() if entry.rerun]:
            for entry in waiting:
                assert self.move(entry.interval, entry.runs[-1]) is not None
                reruns += 1
        return reruns

    def ledger(self) -> Ledger:
        with open_stores(self.worker, brief=True) as stores:
            return read_ledger(stores.offsets, self.name)


def _run(config: dict[str, str], worker: dict[str, str], task: int, traces: Connection) -> None:
    """Run a task until it ends, in a process of its own; send the trace if it fails."""
    if "plugin.path" in worker:
        use_plugin_path(worker)
    store = None
    if "topics" not in config:
        store = open_source_offsets(WorkerConfig.of(worker), config)
        store.start()
    with RunningTask(config, worker, task=task, bounded=True, store=store) as running:
        result = running.join(within=600)
        if result.failed:
            traces.send(result.trace)
            sys.exit(1)


class Machine:
    """Random sequences of runs, clears, and kills of a connector's intervals, one after the other and side by side."""

    def __init__(self, mover: IntervalMover, intervals: Sequence[Interval], chance: random.Random) -> None:
        self.mover = mover
        self._intervals = intervals
        self._chance = chance
        self.kills = self.clears = 0

    def run(self, steps: int) -> None:
        """Take random steps, then move what was not moved yet."""
        done: set[Interval] = set()
        for _ in range(steps):
            some = self._chance.sample(self._intervals, self._chance.choice((1, 1, 1, 2, 3)))
            self.clears += sum(interval in done for interval in some)
            with ThreadPoolExecutor(len(some)) as pool:
                moved = dict(zip(some, pool.map(self._move, some), strict=True))
            done = (done - set(some)) | {interval for interval, is_moved in moved.items() if is_moved}
        for interval in self._intervals:
            if interval not in done:
                assert self.mover.move(interval, f"run-{interval.start}") is not None
        self.mover.rerun()

    def _move(self, interval: Interval) -> bool:
        kill_after = self._chance.uniform(0, self.mover.seconds) if self._chance.random() < 0.5 else None
        entry = self.mover.move(interval, f"run-{interval.start}", kill_after)
        self.kills += entry is None
        return entry is not None
