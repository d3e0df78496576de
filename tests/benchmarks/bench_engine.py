"""Measures lines per second of our file source and sink beside Kafka Connect's, on one broker and one file.

Both sides move a file of 140-byte lines to a topic with one partition, and that topic to a file, with one task and their own
default settings. A further sink reads structs in schema envelopes and applies four transforms. Rounds alternate which side runs
first. The rate covers 15 % to 95 % of the lines, measured from outside (the topic's end offset, the output file's size), so that
start-up does not count. The peer's JVM runs through all rounds and is warm from the second; ours is a new process each time.

Run: python tests/benchmarks/bench_engine.py [--lines N] [--rounds N] [--only source|sink] [--bootstrap HOST:PORT]
"""

from __future__ import annotations

import argparse
import json
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

from confluent_kafka import Consumer, Producer, TopicPartition

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
TRANSFORMED = "Json, 4 transforms"
_TRANSFORMS = "org.apache.kafka.connect.transforms."
CHAIN = {
    "transforms": "insert,mask,replace,cast",
    "transforms.insert.type": _TRANSFORMS + "InsertField$Value",
    "transforms.insert.timestamp.field": "at",
    "transforms.insert.offset.field": "offset",
    "transforms.mask.type": _TRANSFORMS + "MaskField$Value",
    "transforms.mask.fields": "card",
    "transforms.replace.type": _TRANSFORMS + "ReplaceField$Value",
    "transforms.replace.exclude": "internal",
    "transforms.replace.renames": "name:customer",
    "transforms.cast.type": _TRANSFORMS + "Cast$Value",
    "transforms.cast.spec": "amount:string",
}
FIELDS = {"id": "int64", "name": "string", "amount": "int32", "card": "string", "internal": "string", "note": "string"}
CASES = (("source", "String"), ("source", "Json, schemas"), ("sink", "String"), ("sink", "Json, schemas"), ("sink", TRANSFORMED))


@dataclass
class Result:
    """One side's lines per second and cores used, per round."""

    rates: list[float] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)

    def add(self, measured: tuple[float, float]) -> None:
        self.rates.append(measured[0])
        self.cores.append(measured[1])

    def cpu_per_million(self) -> float:
        """Return the median of the rounds' CPU seconds for a million lines."""
        return statistics.median(cores / rate * 1e6 for rate, cores in zip(self.rates, self.cores, strict=True))


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
        own = psutil.Process(process.pid)
        times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
        return sum(each.user + each.system for each in times)

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

    def sink(self, side: str, case: str) -> tuple[float, float]:
        name, output = f"sink-{uuid.uuid4().hex[:8]}", self.folder / "output.txt"
        output.unlink(missing_ok=True)
        config = {"name": name, "connector.class": FILE_SINK, "file": str(output), "topics": self.filled(case)}
        line_bytes = LINE_BYTES
        if case == TRANSFORMED:
            config |= CHAIN
            line_bytes = transformed_bytes(self.lines // 2)
        try:
            return self.run(side, config | CONVERTERS.get(case, CONVERTERS["Json, schemas"]), lambda: size(output) // line_bytes)
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
            if converter == TRANSFORMED:
                write_envelopes(self.bootstrap, name, self.lines)
                self.topics[converter] = name
                return name
            config = {"name": name, "connector.class": FILE_SOURCE, "file": str(self.input), "topic": name}
            with ours(config | CONVERTERS[converter], self.bootstrap):
                while self.watcher.get_watermark_offsets(place, timeout=10)[1] < self.lines:
                    time.sleep(0.1)
            self.topics[converter] = name
        return self.topics[converter]


def write_envelopes(bootstrap: str, topic: str, count: int) -> None:
    """Produce structs with their schema, all of the same length."""
    fields = [{"field": name, "type": kind, "optional": False} for name, kind in FIELDS.items()]
    schema = json.dumps({"type": "struct", "fields": fields, "optional": False}, separators=(",", ":"))
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": "50"})
    for number in range(count):
        payload = json.dumps(struct(number), separators=(",", ":"))
        value = f'{{"schema":{schema},"payload":{payload}}}'
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def struct(number: int) -> dict[str, object]:
    return {
        "id": 10_000_000 + number,
        "name": f"customer-{number % 1000:04d}",
        "amount": 100_000 + number % 1000,
        "card": "4111 1111 1111 1111",
        "internal": "not for the target system",
        "note": f"{'paid by card, delivered to the front door':<60}",
    }


def transformed_bytes(offset: int) -> int:
    """Return the length of the line for the struct at an offset after ``CHAIN``."""
    values = struct(0)
    line = f"Struct{{id={values['id']},customer={values['name']},amount={values['amount']},card=,note={values['note']},"
    return len(f"{line}at=Sun Nov 22 14:00:00 UTC 2026,offset={offset}}}\n")


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
    print("CPU: seconds of CPU for a million lines; the last column is the ratio of lines for each second of CPU")
    print(f"{'':26} {'ours':>28} {'Kafka Connect':>28} {'ratio':>7} {'CPU ours':>9} {'CPU peer':>9} {'ratio':>7}")
    for (direction, converter), sides in results.items():
        mine, peer = sides["ours"], sides["peer"]
        ratio = statistics.median(own / other for own, other in zip(mine.rates, peer.rates, strict=True))
        own_cpu, peer_cpu = mine.cpu_per_million(), peer.cpu_per_million()
        print(
            f"{direction + ' ' + converter:26} {spread(mine.rates):>28} {spread(peer.rates):>28} {ratio:>6.2f}x "
            f"{own_cpu:>9.2f} {peer_cpu:>9.2f} {peer_cpu / own_cpu:>6.2f}x"
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
    results = {
        (direction, case): {"ours": Result(), "peer": Result()} for direction, case in CASES if options.only in (None, direction)
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
