"""Measures what metrics and traces cost: lines per second of the file source and sink with them, as a share of those without.

Three variants of the same task run one after the other in each round, in an order that rotates, on one broker and one file:

* off: `sluiceway.metrics.listener` is empty, and even the counters that every task keeps are replaced by nothing
* on: counters, librdkafka's statistics, and messages to a driver's metrics server that is read every 5 s, as under Prometheus
* traced: on, and a span for each step of each batch, exported by OTLP

A round's share compares variants that ran within seconds of each other, so slow changes of the machine cancel out. The result is
the median of the rounds' shares, for speed and for processor time. At least 0.99 of the speed must be left with metrics on.

Run: python tests/benchmarks/bench_metrics.py [--lines N] [--rounds N] [--only source|sink] [--bootstrap HOST:PORT] [--check]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_engine import CONVERTERS, GIVE_UP_SECONDS, LINE_BYTES, measure, size, write_lines
from confluent_kafka import Consumer, TopicPartition

from sluiceway.metrics.collector import MetricsCollector
from sluiceway.metrics.publisher import PUBLISH_SECONDS, MetricsTarget, publishing
from sluiceway.metrics.server import MetricsServer
from sluiceway.metrics.task_metrics import TaskMetrics
from sluiceway.stack.broker import EmbeddedBroker
from support.engine import RunningTask
from support.eventually import eventually
from support.peer import FILE_SINK, FILE_SOURCE

OFF, ON, TRACED = "off", "on", "traced"
VARIANTS = (OFF, ON, TRACED)
LEAST_SHARE = 0.99
FEWEST_LINES = 100_000
_COUNTERS = ("took", "called", "gave", "caught_up", "blocked", "committed", "transaction")


@dataclass(frozen=True)
class Endpoints:
    """The addresses to which a task's process sends metrics and spans. Picklable."""

    metrics: MetricsTarget
    spans: str


def run_task(config: dict[str, str], bootstrap: str, variant: str, endpoints: Endpoints) -> None:
    """Run a task; the entry point of its process."""
    worker = {"bootstrap.servers": bootstrap}
    if variant == OFF:
        worker["sluiceway.metrics.listener"] = ""
        for name in _COUNTERS:
            setattr(TaskMetrics, name, lambda *_arguments, **_options: None)
    if variant == TRACED:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoints.spans
    with publishing(None if variant == OFF else endpoints.metrics), RunningTask(config, worker) as task:
        result = task.join(within=GIVE_UP_SECONDS)
        print(result.trace or "", file=sys.stderr)


@contextmanager
def running(config: dict[str, str], bootstrap: str, variant: str, endpoints: Endpoints) -> Iterator[Callable[[], float]]:
    """Run a task in a process of its own; yield its processor time in seconds."""
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=run_task, args=(config, bootstrap, variant, endpoints), daemon=True)
    process.start()

    def cpu_seconds() -> float:
        times = psutil.Process(process.pid).cpu_times()
        return times.user + times.system

    try:
        yield cpu_seconds
    finally:
        process.kill()
        process.join()


@contextmanager
def receivers() -> Iterator[Endpoints]:
    """Run a driver's metrics server with a reader, and a receiver of OTLP that drops what it gets."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
            pass

    metrics = MetricsServer("127.0.0.1", 0, MetricsCollector(), lambda received: received)
    spans = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ending = threading.Event()

    def read() -> None:
        while not ending.wait(PUBLISH_SECONDS):
            metrics.beans()

    threads = [threading.Thread(target=each, daemon=True) for each in (spans.serve_forever, read)]
    for thread in threads:
        thread.start()
    try:
        yield Endpoints(metrics.target("127.0.0.1"), f"http://127.0.0.1:{spans.server_port}")
    finally:
        ending.set()
        spans.shutdown()
        for thread in threads:
            thread.join()
        spans.server_close()
        metrics.close()


class Bench:
    """Runs one variant of a task at a time; returns lines per second and cores used."""

    def __init__(self, bootstrap: str, folder: Path, endpoints: Endpoints, lines: int) -> None:
        self._bootstrap = bootstrap
        self._folder = folder
        self._endpoints = endpoints
        self._lines = lines
        self._input = folder / "input.txt"
        self._watcher = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "allow.auto.create.topics": "true"})
        self._filled: str | None = None
        write_lines(self._input, lines)

    def close(self) -> None:
        self._watcher.close()

    def source(self, variant: str) -> tuple[float, float]:
        name = f"source-{uuid.uuid4().hex[:8]}"
        place = self._topic(name)
        config = {"name": name, "connector.class": FILE_SOURCE, "file": str(self._input), "topic": name}
        return self._run(variant, config, lambda: self._end(place))

    def sink(self, variant: str) -> tuple[float, float]:
        topic = self._full_topic()
        name, output = f"sink-{uuid.uuid4().hex[:8]}", self._folder / "output.txt"
        config = {"name": name, "connector.class": FILE_SINK, "file": str(output), "topics": topic}
        try:
            return self._run(variant, config, lambda: size(output) // LINE_BYTES)
        finally:
            output.unlink(missing_ok=True)

    def _run(self, variant: str, config: dict[str, str], progress: Callable[[], int]) -> tuple[float, float]:
        with running(config | CONVERTERS["String"], self._bootstrap, variant, self._endpoints) as cpu_seconds:
            return measure(progress, cpu_seconds, self._lines)

    def _full_topic(self) -> str:
        """Return a topic with all lines of the file."""
        if self._filled is None:
            self._filled = f"filled-{uuid.uuid4().hex[:8]}"
            place = self._topic(self._filled)
            config = {"name": self._filled, "connector.class": FILE_SOURCE, "file": str(self._input), "topic": self._filled}
            with running(config | CONVERTERS["String"], self._bootstrap, OFF, self._endpoints):
                eventually(lambda: self._end(place) >= self._lines, within=GIVE_UP_SECONDS, what="the filled topic")
        return self._filled

    def _end(self, place: TopicPartition) -> int:
        return int(self._watcher.get_watermark_offsets(place, timeout=10)[1])

    def _topic(self, name: str) -> TopicPartition:
        """Create a topic by requesting its metadata."""

        def exists() -> bool:
            topics = self._watcher.list_topics(name, timeout=10).topics
            return name in topics and topics[name].error is None

        eventually(exists, within=30, what=f"topic {name}")
        return TopicPartition(name, 0)


def rotated(number: int) -> tuple[str, ...]:
    """Return the variants in the order of a round: each is first, second, and third equally often."""
    start = number % len(VARIANTS)
    return VARIANTS[start:] + VARIANTS[:start]


def shares(rounds: list[dict[str, tuple[float, float]]], variant: str) -> tuple[float, float]:
    """Return the medians of a variant's speed and of its processor time for a line, as shares of those without metrics."""
    speed = [each[variant][0] / each[OFF][0] for each in rounds]
    cpu = [(each[variant][1] / each[variant][0]) / (each[OFF][1] / each[OFF][0]) for each in rounds]
    return statistics.median(speed), statistics.median(cpu)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=("source", "sink"))
    parser.add_argument("--bootstrap", help="a running broker; default is an embedded one")
    parser.add_argument(
        "--check", action="store_true", help=f"fail if less than {LEAST_SHARE} of the speed is left with metrics on"
    )
    options = parser.parse_args()
    if options.lines < FEWEST_LINES:
        parser.error(f"--lines must be at least {FEWEST_LINES:,}: fewer are in Kafka at once, which is no speed")
    with tempfile.TemporaryDirectory() as name, receivers() as endpoints:
        folder = Path(name)
        broker = None if options.bootstrap else EmbeddedBroker(folder / "broker")
        try:
            bootstrap = options.bootstrap if broker is None else broker.start()
            bench = Bench(bootstrap, folder, endpoints, options.lines)
            kinds = (options.only,) if options.only else ("source", "sink")
            fast = [compared(kind, getattr(bench, kind), options.rounds) for kind in kinds]
            bench.close()
        finally:
            if broker is not None:
                broker.stop()
    return 1 if options.check and not all(fast) else 0


def compared(kind: str, run: Callable[[str], tuple[float, float]], count: int) -> bool:
    """Run and print the rounds of one kind of task; return whether enough speed is left with metrics on."""
    rounds = []
    for number in range(count):
        measured = {variant: run(variant) for variant in rotated(number)}
        rounds.append(measured)
        rates = ", ".join(f"{variant} {measured[variant][0]:,.0f}" for variant in VARIANTS)
        print(f"{kind} round {number + 1}: lines/s {rates}", flush=True)
    for variant in (ON, TRACED):
        speed, cpu = shares(rounds, variant)
        print(f"{kind} {variant}: {speed:.3f} of the speed, {cpu:.3f} of the processor time for a line", flush=True)
    return shares(rounds, ON)[0] >= LEAST_SHARE


if __name__ == "__main__":
    sys.exit(main())
