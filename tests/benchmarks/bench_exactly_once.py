"""Measures the cost of exactly-once for a source: lines per second with and without, alternating, on one broker and one file.

A file of 140-byte lines goes to a topic with one partition: one task, a new process each time, and default settings except
``exactly.once.source.support`` and ``transaction.boundary``. The rate is measured as in bench_engine.

Run: python tests/benchmarks/bench_exactly_once.py [--lines N] [--rounds N] [--bootstrap HOST:PORT]
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_engine import CONVERTERS, FEWEST_LINES, GIVE_UP_SECONDS, WINDOW, measure, spread, write_lines
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.config.worker import WorkerConfig
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.factory import open_source_offsets
from support.engine import RunningTask
from support.peer import FILE_SOURCE

WANTED = 0.9
OFF = "off"
NO_LEADER = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART}
BOUNDARIES = (OFF, "poll", "interval")


def run(config: dict[str, str], worker: dict[str, str]) -> None:
    """Run the task; the entry point of its process."""
    store = open_source_offsets(WorkerConfig.of(worker), config)
    store.start()
    with RunningTask(config, worker, store=store) as task:
        result = task.join(within=GIVE_UP_SECONDS)
        print(result.trace or "", file=sys.stderr)


@contextmanager
def task(config: dict[str, str], worker: dict[str, str]) -> Iterator[psutil.Process]:
    process = multiprocessing.get_context("spawn").Process(target=run, args=(config, worker), daemon=True)
    process.start()
    try:
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.join()


class Bench:
    def __init__(self, bootstrap: str, folder: Path, lines: int) -> None:
        self.bootstrap = bootstrap
        self.lines = lines
        self.input = folder / "input.txt"
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        # Reads uncommitted: the last stable offset moves in steps, from which no rate can be measured.
        self.watcher = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "isolation.level": "read_uncommitted"})
        write_lines(self.input, lines)

    def run(self, boundary: str, converter: str) -> tuple[float, float]:
        """Return lines per second and cores used."""
        name = f"eos-{uuid.uuid4().hex[:8]}"
        self.make_topic(name)
        config = {"name": name, "connector.class": FILE_SOURCE, "file": str(self.input), "topic": name, **CONVERTERS[converter]}
        worker = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "bench",
            **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        }
        if boundary != OFF:
            worker["exactly.once.source.support"] = "enabled"
            config |= {"transaction.boundary": boundary, "transaction.boundary.interval.ms": "1000"}
        place = TopicPartition(name, 0)

        with task(config, worker) as process:

            def cpu_seconds() -> float:
                times = process.cpu_times()
                return times.user + times.system

            return measure(lambda: self.watcher.get_watermark_offsets(place, timeout=10)[1], cpu_seconds, self.lines)

    def make_topic(self, name: str) -> None:
        self.admin.create_topics([NewTopic(name, 1, 1)])[name].result()
        while not (found := self.watcher.list_topics(name, timeout=10).topics[name]).partitions or found.partitions[0].leader < 0:
            time.sleep(0.05)
        while not self.has_leader(name):
            time.sleep(0.05)

    def has_leader(self, topic: str) -> bool:
        """Return True if the leader of a new topic answers, which may be some time after the metadata has it."""
        try:
            self.watcher.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        except KafkaException as error:
            if error.args[0].code() not in NO_LEADER:
                raise
            return False
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bootstrap", help="use this broker instead of starting one")
    options = parser.parse_args()
    if options.lines < FEWEST_LINES:
        parser.error(f"--lines must be at least {FEWEST_LINES:,}: fewer fit into the clients' buffers, which is no steady state")
    with tempfile.TemporaryDirectory(prefix="sluiceway-bench-") as temporary:
        folder = Path(temporary)
        broker = None if options.bootstrap else EmbeddedBroker(folder / "broker")
        try:
            bootstrap = options.bootstrap or broker.start()  # type: ignore[union-attr]
            good = compare(Bench(bootstrap, folder, options.lines), options.rounds)
        finally:
            if broker is not None:
                broker.stop()
    if not good:
        raise SystemExit(f"exactly-once is below {WANTED:.0%} of at-least-once")


def compare(bench: Bench, rounds: int) -> bool:
    """Print rates and ratios; return True if every ratio is within its limit."""
    good = True
    print(f"Lines/s, median [lowest-highest], over {WINDOW[0]:.0%} to {WINDOW[1]:.0%} of {bench.lines:,} lines")
    for converter in CONVERTERS:
        rates: dict[str, list[float]] = {boundary: [] for boundary in BOUNDARIES}
        for number in range(rounds):
            for boundary in BOUNDARIES if number % 2 == 0 else reversed(BOUNDARIES):
                rate, cores = bench.run(boundary, converter)
                rates[boundary].append(rate)
                print(f"round {number + 1} {converter}, {boundary}: {rate:,.0f}/s, {cores:.2f} cores", flush=True)
        for boundary in BOUNDARIES:
            ratio = statistics.median(own / off for own, off in zip(rates[boundary], rates[OFF], strict=True))
            good = good and ratio >= WANTED
            print(f"{converter:16} {boundary:9} {spread(rates[boundary]):>28}  {ratio:.2f} of off", flush=True)
    return good


if __name__ == "__main__":
    main()
