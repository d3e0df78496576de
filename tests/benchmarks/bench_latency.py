"""Measures how soon a change in an internal topic is seen, which a pause, a restart, and a status wait for; and a command starts.

Run: python tests/benchmarks/bench_latency.py [--rounds N]

On a broker of its own: the delay from a record's write until a tail returns it, from a target state's write until another
store's listener hears of it, and the time of a write and of a store's start. Times are milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.admin import create_topic, end_offsets
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.kafka_based_log import TopicTail
from sluiceway.kafka.topic_writer import TopicWriter
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.model import TargetState
from support.driver import worker_properties
from support.eventually import LIMIT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="sluiceway-latency-") as folder:
        broker = EmbeddedBroker(Path(folder))
        try:
            worker = WorkerConfig.of(worker_properties(broker.start(), "latency"))
            measured = {"sluiceway --version": commands(5), "record in a tail": tails(worker, rounds), **stores(worker, rounds)}
            for what, delays in measured.items():
                median, worst = statistics.median(delays) * 1000, max(delays) * 1000
                print(f"{what:40} median {median:7.1f} ms, longest {worst:7.1f} ms, {len(delays)} times", flush=True)
        finally:
            broker.stop()
    return 0


def commands(rounds: int) -> list[float]:
    """Return the seconds of a command that only starts and ends."""
    return [
        timed(lambda: subprocess.run([sys.executable, "-m", "sluiceway.cli.main", "--version"], check=True))
        for _ in range(rounds)
    ]


def tails(worker: WorkerConfig, rounds: int) -> list[float]:
    """Return the seconds from the write of a record until a tail returns it."""
    admin, writer = admin_client(worker), TopicWriter(worker, "w")
    create_topic(admin, "tail", 1, 1)
    writer.write([("tail", b"before", None)])
    tail = TopicTail(worker, "tail", end_offsets(admin, [TopicPartition("tail", 0)]))
    tail.poll(0.3)
    delays = []
    for number in range(rounds):
        began = time.perf_counter()
        writer.write([("tail", b"k", b"%d" % number)])
        while not tail.poll(1.0):
            pass
        delays.append(time.perf_counter() - began)
    tail.close()
    return delays


def stores(worker: WorkerConfig, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of a store's start, of a write, and until another store's listener hears of it."""
    writer, reader = KafkaConfigBackingStore(worker), KafkaConfigBackingStore(worker)
    writer.start()
    writer.put_connector("a", {})
    starting = timed(reader.start)
    heard: list[float] = []
    reader.on_change(lambda _kind, _name: heard.append(time.perf_counter()))
    put, seen = [], []
    for number in range(rounds):
        began = time.perf_counter()
        writer.put_target_state("a", TargetState.PAUSED)
        put.append(time.perf_counter() - began)
        deadline = began + LIMIT
        while len(heard) <= number and time.perf_counter() < deadline:
            time.sleep(0.0005)
        seen.append(heard[number] - began)
    reader.stop()
    writer.stop()
    return {"start of a config store": [starting], "write of a target state": put, "target state at a listener": seen}


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
