"""Latency of the lines of logs in FolderSource, and the cost of files that it has read.

* Lines: the time from a line's write until a consumer has it, for one log and for 100 logs of one task, while another process
  writes a fixed number of lines a second.
* Files: the CPU time while nothing happens, the memory, and the stored offsets, after so many files were read to their end,
  beside those of one file. Then the task stops and starts again, and must not read one of them again.

All run as one task of a local Spark application. Memory is that of the task's process.

Run: python tests/benchmarks/bench_folder_tail.py [--seconds N] [--files N ...]
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import psutil
from bench_folder_source import end_of
from bench_spark_source import CpuTimes
from confluent_kafka import Consumer, TopicPartition
from pyspark import SparkContext

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.spark.session import local_conf, spark_context
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.factory import open_stores
from support.eventually import LIMIT, eventually
from support.kafka import worker_for
from support.spark_application import Application

LOGS = {1: 200, 100: 10}  # the number of logs, and the lines a second of each
LINGER: tuple[dict[str, str], ...] = (
    {},
    {"producer.override.linger.ms": "5"},
)  # how long the producer waits for more records: the default, and Kafka's
_WARM_SECONDS = 5.0
_SETTLED_SECONDS = 10.0  # from the last file to the measurement
_IN_A_FOLDER = 1000


def main() -> None:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        broker = EmbeddedBroker(folder / "broker")
        bootstrap = broker.start(timeout=LIMIT)
        stack.callback(broker.stop)
        context = spark_context("bench-folder-tail", local_conf(), master="local[1]")
        stack.callback(context.stop)
        for linger, (logs, rate) in product(LINGER, LOGS.items()):
            lines(context, bootstrap, folder / f"logs-{len(linger)}-{logs}", logs, rate, linger, options.seconds)
        for files in (1, *options.files):
            idle(context, bootstrap, folder / f"files-{files}", files, options.seconds)


@contextlib.contextmanager
def _running(context: SparkContext, bootstrap: str, config: dict[str, str]) -> Iterator[tuple[Application, Consumer]]:
    """Start a source to a topic with its name; yield it and a consumer at the topic's end."""
    worker = worker_for(bootstrap, lambda prefix: f"{prefix}-{uuid.uuid4().hex[:8]}")
    name = f"bench-{uuid.uuid4().hex[:8]}"
    more = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    text = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "fetch.wait.max.ms": "50"})
    with open_stores(worker) as stores, contextlib.closing(consumer):
        app = Application(name, worker, stores, context)
        app.start({"connector.class": "FolderSource", "topic": name, **text, **more, **config})
        consumer.assign([TopicPartition(name, 0, 0)])
        yield app, consumer
        app.leave()


def lines(
    context: SparkContext, bootstrap: str, folder: Path, logs: int, rate: int, linger: dict[str, str], seconds: float
) -> None:
    """Print how soon lines are with a consumer."""
    folder.mkdir()
    config = {"mode": "logs", "paths": str(folder / "*.log"), **linger}
    writer = multiprocessing.get_context("spawn").Process(
        target=_write, args=(folder, logs, rate, _WARM_SECONDS + seconds), daemon=True
    )
    for number in range(logs):
        (folder / f"{number}.log").touch()
    with _running(context, bootstrap, config) as (app, consumer):
        writer.start()
        found: list[tuple[int, int]] = []  # the time of the write, and of the arrival
        expected, deadline = round((_WARM_SECONDS + seconds) * rate) * logs, time.monotonic() + seconds + LIMIT
        while len(found) < expected and time.monotonic() < deadline:
            if message := consumer.poll(0.05):  # which returns at once, unlike consume()
                found.append((int((message.value() or b"0").split()[0]), time.time_ns()))
        writer.join()
        memory = _memory()
        assert app.states() == ["RUNNING"], app.traces()
    warm = min(written for written, _ in found) + round(_WARM_SECONDS * 1e9)
    delays = sorted((arrived - written) / 1e6 for written, arrived in found if written > warm)
    p50, p99 = statistics.median(delays), delays[int(len(delays) * 0.99)]
    kind = f"{logs} logs, {logs * rate} lines/s, {linger or 'default linger'}"
    seen = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {delays[-1]:.1f} ms"
    print(f"{kind}: {seen}, {expected - len(found)} of {expected} lost, {memory} MB", flush=True)


def _write(folder: Path, logs: int, rate: int, seconds: float) -> None:
    """Write lines that begin with the time of their write, evenly; in a process of its own."""
    files = [(folder / f"{number}.log").open("a", buffering=1) for number in range(logs)]
    began = time.monotonic()
    for number in range(round(seconds * rate) * logs):
        time.sleep(max(0.0, began + number / (rate * logs) - time.monotonic()))
        files[number % logs].write(f"{time.time_ns()} INFO a line of a log {'x' * 150}\n")


def idle(context: SparkContext, bootstrap: str, folder: Path, files: int, seconds: float) -> None:
    """Print what files cost that were read to their end."""
    for number in range(files):
        path = folder / str(number // _IN_A_FOLDER) / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line of {number}\n")
    config = {"mode": "files", "paths": str(folder / "*" / "*.txt"), "complete.when": "renamed"}
    with _running(context, bootstrap, config) as (app, consumer):
        began = time.monotonic()
        eventually(lambda: end_of(consumer, app.name) >= files, within=10 * LIMIT, what=f"{files} records")
        read = time.monotonic() - began
        for moment in ("read", "started again"):
            time.sleep(_SETTLED_SECONDS)
            cpu = CpuTimes()
            time.sleep(seconds)
            jvm, python = cpu.used()
            cost = f"{python / seconds:.1%} of a core in Python, {jvm / seconds:.1%} in the JVM, {_memory()} MB"
            print(f"{files} files, {moment}: {cost}, {len(app.offsets())} offsets; read in {read:.1f} s", flush=True)
            if moment == "read":
                app.herder.stop(app.name)
                eventually(lambda: not app.states(), what="no task")
                _process().kill()  # Spark would use it again, with all that it has ever needed
                app.herder.resume(app.name)
                app.eventually("RUNNING")
        again = end_of(consumer, app.name) - files
        print(f"{files} files: {again} records again after the start", flush=True)
        if again:
            raise SystemExit(1)


def _memory() -> int:
    """Return the megabytes of the task's process."""
    return int(_process().memory_info().rss // 1_000_000)


def _process() -> psutil.Process:
    """Return the largest Python process below this one, which is the task's."""
    found: dict[int, psutil.Process] = {}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # some end
            command = process.cmdline()
            if command and "python" in command[0] and "multiprocessing" not in str(command):
                found[process.memory_info().rss] = process
    return found[max(found)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--files", type=int, nargs="*", default=[20_000, 100_000])
    return parser


if __name__ == "__main__":
    main()
