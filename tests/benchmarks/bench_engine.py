"""Measures lines per second of our file source and sink beside Kafka Connect's, on one broker and one file.

Both sides move a file of 140-byte lines to a topic with one partition, and that topic to a file, with one task and their own
default settings. Rounds alternate which side runs first. The rate covers 15 % to 95 % of the lines, measured from outside (the
topic's end offset, the output file's size), so that start-up does not count. The peer's JVM runs through all rounds and is warm
from the second; ours is a new process each time.

Run: python tests/benchmarks/bench_engine.py [--lines N] [--rounds N] [--only source|sink] [--bootstrap HOST:PORT]
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from confluent_kafka import Consumer, TopicPartition

from sluiceway.stack.broker import EmbeddedBroker
from support.engine import RunningTask
from support.peer import FILE_SINK, FILE_SOURCE, PeerStandalone, delete_connector, put_config

LINE_BYTES = 140
WINDOW = (0.15, 0.95)
FEWEST_LINES = 500_000
GIVE_UP_SECONDS = 300
CONVERTERS = {
    "String": {
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    },
    "Json, schemas": {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    },
}


@dataclass
class Result:
    """One side's lines per second and cores used, per round."""

    rates: list[float] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)

    def add(self, measured: tuple[float, float]) -> None:
        self.rates.append(measured[0])
        self.cores.append(measured[1])


def measure(progress: Callable[[], int], cpu_seconds: Callable[[], float], lines: int) -> tuple[float, float]:
    """Return lines per second and cores used over the window; blocks until it ends."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    low, high = (int(share * lines) for share in WINDOW)
    begin: tuple[float, int, float] | None = None
    while True:
        now, done = time.monotonic(), progress()
        if begin is None and done >= low:
            begin = now, done, cpu_seconds()
        if begin is not None and done >= high:
            seconds = now - begin[0]
            return (done - begin[1]) / seconds, (cpu_seconds() - begin[2]) / seconds
        if now > deadline:
            raise SystemExit(f"gave up after {GIVE_UP_SECONDS} s at {done} of {lines} lines")
        time.sleep(0.01)


def run_ours(config: dict[str, str], bootstrap: str) -> None:
    """Run our task; the entry point of its process."""
    with RunningTask(config, {"bootstrap.servers": bootstrap}) as task:
        result = task.join(within=GIVE_UP_SECONDS)
        print(result.trace or "", file=sys.stderr)


@contextmanager
def ours(config: dict[str, str], bootstrap: str) -> Iterator[Callable[[], float]]:
    process = multiprocessing.get_context("spawn").Process(target=run_ours, args=(config, bootstrap), daemon=True)
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
def theirs(config: dict[str, str], peer: PeerStandalone) -> Iterator[Callable[[], float]]:
    put_config(peer.rest, config["name"], config)
    try:
        yield peer.cpu_seconds
    finally:
        delete_connector(peer.rest, config["name"])


class Bench:
    def __init__(self, bootstrap: str, folder: Path, peer: PeerStandalone, lines: int) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.peer = peer
        self.lines = lines
        self.input = folder / "input.txt"
        self.watcher = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "allow.auto.create.topics": "true"})
        self.topics: dict[str, str] = {}
        write_lines(self.input, lines)

    def run(self, side: str, config: dict[str, str], progress: Callable[[], int]) -> tuple[float, float]:
        running = ours(config, self.bootstrap) if side == "ours" else theirs(config, self.peer)
        with running as cpu_seconds:
            return measure(progress, cpu_seconds, self.lines)

    def source(self, side: str, converter: str) -> tuple[float, float]:
        name = f"source-{uuid.uuid4().hex[:8]}"
        topic = self.topic(name)
        config = {"name": name, "connector.class": FILE_SOURCE, "file": str(self.input), "topic": name}
        return self.run(side, config | CONVERTERS[converter], lambda: self.watcher.get_watermark_offsets(topic, timeout=10)[1])

    def sink(self, side: str, converter: str) -> tuple[float, float]:
        name, output = f"sink-{uuid.uuid4().hex[:8]}", self.folder / "output.txt"
        output.unlink(missing_ok=True)
        config = {"name": name, "connector.class": FILE_SINK, "file": str(output), "topics": self.filled(converter)}
        try:
            return self.run(side, config | CONVERTERS[converter], lambda: size(output) // LINE_BYTES)
        finally:
            output.unlink(missing_ok=True)

    def topic(self, name: str) -> TopicPartition:
        """Create a topic by requesting its metadata."""
        place = TopicPartition(name, 0)
        while name not in (topics := self.watcher.list_topics(name, timeout=10).topics) or topics[name].error is not None:
            time.sleep(0.05)
        return place

    def filled(self, converter: str) -> str:
        """Return a topic with all lines of the file."""
        if converter not in self.topics:
            name = f"filled-{uuid.uuid4().hex[:8]}"
            place = self.topic(name)
            config = {"name": name, "connector.class": FILE_SOURCE, "file": str(self.input), "topic": name}
            with ours(config | CONVERTERS[converter], self.bootstrap):
                while self.watcher.get_watermark_offsets(place, timeout=10)[1] < self.lines:
                    time.sleep(0.1)
            self.topics[converter] = name
        return self.topics[converter]


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def write_lines(file: Path, lines: int) -> None:
    """Write distinct lines of equal length that resemble a log."""
    filler = "GET /api/v1/items?page=2&size=50 HTTP/1.1 200 5123 Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML)"
    with file.open("w") as out:
        for number in range(lines):
            start = f"2026-01-01T00:00:00.{number % 1000:03d}Z host-{number % 97:02d} {number:010d} "
            out.write(f"{(start + filler)[: LINE_BYTES - 1]:<{LINE_BYTES - 1}}\n")


def show(results: dict[tuple[str, str], dict[str, Result]], lines: int) -> None:
    print(f"\nLines/s, median [lowest-highest], over {WINDOW[0]:.0%} to {WINDOW[1]:.0%} of {lines:,} lines of {LINE_BYTES} B;")
    print("the ratio is the median of the rounds' ratios")
    print(f"{'':22} {'ours':>28} {'Kafka Connect':>28} {'ratio':>7} {'cores ours':>11} {'cores peer':>11} {'ratio/core':>11}")
    for (direction, converter), sides in results.items():
        mine, peer = sides["ours"], sides["peer"]
        ratio = statistics.median(own / other for own, other in zip(mine.rates, peer.rates, strict=True))
        own_cores, peer_cores = statistics.median(mine.cores), statistics.median(peer.cores)
        print(
            f"{direction + ' ' + converter:22} {spread(mine.rates):>28} {spread(peer.rates):>28} {ratio:>6.2f}x "
            f"{own_cores:>11.2f} {peer_cores:>11.2f} {ratio * peer_cores / own_cores:>10.2f}x"
        )


def spread(rates: list[float]) -> str:
    return f"{statistics.median(rates):,.0f} [{min(rates) / 1000:,.0f}k-{max(rates) / 1000:,.0f}k]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("source", "sink"))
    parser.add_argument("--bootstrap", help="use this broker instead of starting one")
    options = parser.parse_args()
    if options.lines < FEWEST_LINES:
        parser.error(f"--lines must be at least {FEWEST_LINES:,}: fewer fit into the clients' buffers, which is no steady state")
    with tempfile.TemporaryDirectory(prefix="sluiceway-bench-") as temporary:
        folder = Path(temporary)
        broker = None if options.bootstrap else EmbeddedBroker(folder / "broker")
        try:
            bootstrap = options.bootstrap or broker.start()  # type: ignore[union-attr]
            worker = {"offset.flush.interval.ms": "60000"}
            with PeerStandalone(bootstrap, folder / "peer", [], worker) as peer:
                compare(Bench(bootstrap, folder, peer, options.lines), options)
        finally:
            if broker is not None:
                broker.stop()


def compare(bench: Bench, options: argparse.Namespace) -> None:
    directions = [options.only] if options.only else ["source", "sink"]
    results = {
        (direction, converter): {"ours": Result(), "peer": Result()} for direction in directions for converter in CONVERTERS
    }
    for number in range(options.rounds):
        for (direction, converter), sides in results.items():
            for side in ("ours", "peer") if number % 2 == 0 else ("peer", "ours"):
                measured = getattr(bench, direction)(side, converter)
                sides[side].add(measured)
                what = f"round {number + 1} {direction} {converter}, {side}"
                print(f"{what}: {measured[0]:,.0f}/s, {measured[1]:.2f} cores", flush=True)
    show(results, bench.lines)


if __name__ == "__main__":
    main()
