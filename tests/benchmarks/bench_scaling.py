"""Measures records per second of a connector with 1, 2 and 4 tasks over two Spark standalone workers, and the cost per task.

The driver runs in client mode. Three connectors, each with a topic of four partitions:

* ``source``: VerifiableSource without a limit, JSON records of about 200 bytes;
* ``sink``: FileStreamSink of a topic that was filled before;
* ``paced``: VerifiableSource with a limit per task. It shows if tasks add up while processors are free, which the other two, that
  use up all processors with few tasks, cannot show on a small machine.

Rounds interleave connectors and alternate between rising and falling numbers of tasks, so that other load on the machine meets
all of them. Within a round, one driver serves all numbers of tasks of a connector: only ``tasks.max`` changes. A rate is taken
over some seconds after all tasks are RUNNING, from the topic's end offsets or the size of the sink's file. More machines need no
other method: give ``--bootstrap`` and ``--master``, and run this program where the driver must run. Costs cover that machine.

Run: python tests/benchmarks/bench_scaling.py [--rounds 3] [--tasks 1 2 4] [--seconds 20] [--only source sink paced]
     [--bootstrap HOST:PORT] [--master spark://HOST:PORT]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from confluent_kafka import Consumer, Producer, TopicPartition

from sluiceway.storage.model import State
from support.kafka import Kafka
from support.process_costs import BROKER, DRIVER_JVM, DRIVER_PYTHON, EXECUTORS, TASKS, CostMeter, RoleCost
from support.spark_lab import Lab, open_lab
from support.toggles import table

PARTITIONS = 4
RECORD_BYTES = 200
PACED_PER_TASK = 1000
PATIENCE_SECONDS = 180.0
WARM_SECONDS = 5.0
KINDS = ("source", "sink", "paced")
SOURCE = {
    "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
    "complete.record.data": "true",
    "record.size": str(RECORD_BYTES // 2),
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
SINK = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector"}

Progress = Callable[[], int]


@dataclass
class Runs:
    """The rounds of one connector with one number of tasks."""

    rates: list[float] = field(default_factory=list)
    costs: list[dict[str, RoleCost]] = field(default_factory=list)

    def cores(self, *roles: str) -> float:
        return statistics.median(sum(cost[role].cores for role in roles) for cost in self.costs)

    def pss(self, role: str) -> float:
        return statistics.median(cost[role].pss for cost in self.costs)


class Bench:
    """Runs one connector at a time. ``filled`` is the sink's topic; its records outlast the longest window."""

    def __init__(self, lab: Lab, seconds: float, records: int) -> None:
        self._lab = lab
        self._seconds = seconds
        self._kafka = Kafka(lab.bootstrap)
        self._watcher = Consumer({"bootstrap.servers": lab.bootstrap, "group.id": "bench"})
        self._records = records
        self._filled: str | None = None

    def run(self, kind: str, counts: list[int]) -> dict[int, tuple[float, dict[str, RoleCost]]]:
        """Run a connector with each number of tasks in turn, on one driver; return records per second and costs."""
        name = f"{kind}-{uuid.uuid4().hex[:8]}"
        file = self._lab.folder / f"{name}.txt"
        topic = self._kafka.create(name, PARTITIONS) if kind != "sink" else self._filled_topic()
        config = {"name": name, **self._config(kind, topic, file)}
        progress = partial(_lines, file) if kind == "sink" else partial(self._end, topic)
        measured: dict[int, tuple[float, dict[str, RoleCost]]] = {}
        with self._lab.group() as group:
            for tasks in counts:
                settings = {**config, "tasks.max": str(tasks)}
                if measured:
                    group.herder.put_config(name, settings)
                else:
                    group.run(name, settings)
                running = partial(group.all_in, name, State.RUNNING, tasks)
                self._lab.wait(running, PATIENCE_SECONDS, f"{tasks} tasks RUNNING")
                measured[tasks] = self._window(progress)
        if kind == "sink" and progress() >= self._records:
            raise SystemExit(f"the sink has written all {self._records:,} records before the end; raise --records")
        file.unlink(missing_ok=True)
        if kind != "sink":
            self._kafka.admin.delete_topics([topic])[topic].result(30)
        return measured

    def _config(self, kind: str, topic: str, file: Path) -> dict[str, str]:
        if kind == "sink":
            file.touch()
            return {**SINK, "topics": topic, "file": str(file), "consumer.override.auto.offset.reset": "earliest"}
        return {**SOURCE, "topic": topic, "throughput": str(PACED_PER_TASK if kind == "paced" else -1)}

    def _window(self, progress: Progress) -> tuple[float, dict[str, RoleCost]]:
        before = progress()
        self._lab.wait(lambda: progress() > before, PATIENCE_SECONDS, "the first records")
        time.sleep(WARM_SECONDS)
        meter = CostMeter(self._lab.pids)
        began, first = time.monotonic(), progress()
        time.sleep(self._seconds)
        last, ended = progress(), time.monotonic()
        return (last - first) / (ended - began), meter.stop()

    def _end(self, topic: str) -> int:
        ends = [self._watcher.get_watermark_offsets(TopicPartition(topic, each), timeout=30)[1] for each in range(PARTITIONS)]
        return sum(ends)

    def _filled_topic(self) -> str:
        if self._filled is None:
            self._filled = self._kafka.create(f"filled-{uuid.uuid4().hex[:8]}", PARTITIONS)
            producer = Producer({"bootstrap.servers": self._lab.bootstrap, "linger.ms": 50})
            value = b"x" * (RECORD_BYTES - 1)
            for number in range(self._records):
                while True:
                    try:
                        producer.produce(self._filled, value, partition=number % PARTITIONS)
                        break
                    except BufferError:
                        producer.poll(0.1)
            producer.flush(60)
        return self._filled


def _lines(file: Path) -> int:
    return file.stat().st_size // RECORD_BYTES


def show(results: dict[tuple[str, int], Runs]) -> None:
    print(
        f"\n{time.strftime('%Y-%m-%d')}, {os.cpu_count()} processors; medians of {len(next(iter(results.values())).rates)} rounds"
    )
    rows = []
    for (kind, tasks), runs in results.items():
        rate = statistics.median(runs.rates)
        single = statistics.median(results[kind, min(each for _, each in results)].rates)
        rows.append(
            [
                kind,
                str(tasks),
                f"{rate:,.0f} [{min(runs.rates):,.0f}-{max(runs.rates):,.0f}]",
                f"{rate / single:.2f}",
                f"{runs.cores(TASKS):.2f}",
                f"{runs.cores(BROKER):.2f}",
                f"{runs.cores(EXECUTORS) * 60:.1f}",
                f"{runs.cores(DRIVER_JVM) * 60:.1f}",
                f"{runs.cores(DRIVER_PYTHON) * 60:.1f}",
                f"{runs.pss(DRIVER_JVM):,.0f}",
                f"{runs.pss(DRIVER_PYTHON):,.0f}",
                f"{runs.pss(TASKS) / tasks:,.0f}",
            ]
        )
    headings = ["connector", "tasks", "records/s", "to 1 task", "cores: tasks", "broker"]
    headings += ["CPU s/min: executor JVMs", "driver JVM", "driver Python", "PSS MB: driver JVM", "driver Python", "a task"]
    print(table(headings, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=20.0, help="length of a window")
    parser.add_argument("--records", type=int, default=6_000_000, help="records of the sink's topic; must outlast the window")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--bootstrap", help="use this broker instead of starting one")
    parser.add_argument("--master", help="use this Spark master instead of starting a cluster")
    options = parser.parse_args()
    results = {(kind, tasks): Runs() for kind in options.only for tasks in options.tasks}
    with tempfile.TemporaryDirectory(prefix="sluiceway-bench-") as temporary:
        folder = Path(temporary)
        with open_lab(folder, slots=max(options.tasks), bootstrap=options.bootstrap, master=options.master) as lab:
            bench = Bench(lab, options.seconds, options.records)
            for number in range(options.rounds):
                counts = options.tasks if number % 2 == 0 else options.tasks[::-1]
                for kind in options.only:
                    for tasks, (rate, cost) in bench.run(kind, counts).items():
                        results[kind, tasks].rates.append(rate)
                        results[kind, tasks].costs.append(cost)
                        print(f"round {number + 1} {kind}, {tasks} task(s): {rate:,.0f}/s", flush=True)
    show(results)


if __name__ == "__main__":
    main()
