"""Measures the processor time of a task that scrapes a target each second: the goal is under 20 % of a core for 5,000 series.

The target is prometheus_client's own server, in a process of its own. The task runs with converters and producer in this process,
whose processor time is measured, and writes to a real broker. In ``changing``, a series is new in each scrape, so that the whole
answer is parsed each time. The first seconds are not measured.

Run: python tests/benchmarks/bench_observability.py [--series N] [--seconds N]
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prometheus_client import Gauge

from sluiceway.stack.broker import EmbeddedBroker
from support.engine import RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.metric_targets import exposing, large_registry
from support.toggles import table

JSON = "org.apache.kafka.connect.json.JsonConverter"
KINDS = ("same series", "changing series")
GOAL = 0.20
_WARM_UP_SCRAPES = 5


def _expose(series: int, changing: bool, pipe: Connection) -> None:
    """Serve metrics until the other side closes the pipe. Runs in a process of its own."""
    registry = large_registry(series)
    scraped = Gauge("scraped", "Changes.", ["number"], registry=registry)
    with exposing(registry) as address:
        pipe.send(address)
        for number in itertools.count():
            if pipe.poll(0.5):
                return
            if changing:
                scraped.clear()
                scraped.labels(str(number)).set(1)


@contextmanager
def target(series: int, *, changing: bool) -> Iterator[str]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_expose, args=(series, changing, there))
    process.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        process.join()


def measure(kafka: Kafka, series: int, seconds: int, *, changing: bool) -> tuple[float, float]:
    """Return the share of a core that a scrape each second takes, and the scrapes that were measured."""
    topic = f"bench-{uuid.uuid4().hex[:6]}"
    kafka.create(topic)
    with target(series, changing=changing) as address:
        config = {
            "name": topic,
            "connector.class": "PrometheusSource",
            "topic": topic,
            "targets": address,
            "scrape.interval.ms": "1000",
            "scrape.timeout.ms": "1000",
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
        }
        with RunningTask(config, kafka.worker()):
            eventually(lambda: kafka.count(topic) >= series * _WARM_UP_SCRAPES)
            used, records = time.process_time(), kafka.count(topic)
            threading.Event().wait(seconds)
            used, records = time.process_time() - used, kafka.count(topic) - records
    scrapes = records / series  # on a busy machine, the target may not answer each
    return used / scrapes, scrapes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=5000)
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        broker = EmbeddedBroker(Path(folder) / "broker")
        kafka = Kafka(broker.start())
        try:
            for kind in KINDS:
                share, scrapes = measure(kafka, options.series, options.seconds, changing=kind != KINDS[0])
                rows.append([kind, f"{share:.1%}", f"{scrapes:.0f}", "yes" if share < GOAL else "NO"])
        finally:
            broker.stop()
    print(f"{options.series:,} series each second; goal: under {GOAL:.0%} of a core")
    print(table(("case", "of a core", "scrapes", "reached"), rows))


if __name__ == "__main__":
    main()
