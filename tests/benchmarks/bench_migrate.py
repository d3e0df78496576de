"""Measures a move of connectors that are under load from a real Kafka Connect cluster to a stack, and back.

Run: python tests/benchmarks/bench_migrate.py [--connectors 20] [--rate 50] [--own | --take-over] [--parallel 8]

Half of the connectors are sources of growing files, half are sinks to files, each with so many records a second. On the stack
they share one application, or have one each (``--own``). A connector's standstill is the longest time between two of its
records while the command ran: by the records' timestamps for a source, by the growth of its file for a sink.

Limits: 5 s for the report; 60 s each way; a standstill of 2 s (median) and 5 s (most), or 8 s with applications of their own;
nothing lost or repeated. With ``--take-over``, the stack has the worker's group and topics, on a broker that both use: 10 s from
the end of the worker until the stack runs all connectors, and 15 s from ``sluiceway down`` until the worker runs them again.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from confluent_kafka import Consumer, Producer, TopicPartition

from sluiceway.stack.broker import EmbeddedBroker
from support import peer
from support.eventually import eventually
from support.faults.cluster import Cluster
from support.migration import file_sink, file_source, lines_of
from support.stack import RunningStack

STRINGS = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
GROUP = "theirs"
TOPICS = ("theirs-configs", "theirs-offsets", "theirs-status")
SHARED = {
    "group.id": GROUP,
    **dict(zip((f"{store}.storage.topic" for store in ("config", "offset", "status")), TOPICS, strict=True)),
    **{f"{store}.storage.replication.factor": "1" for store in ("config", "offset", "status")},
}
REPORT_LIMIT, MOVE_LIMIT, MEDIAN_LIMIT, MOST_LIMIT, OWN_LIMIT = 5.0, 60.0, 2.0, 5.0, 8.0
TAKE_OVER_LIMITS = {"taken over": 10.0, "returned": 15.0}
_LOOK_SECONDS = 0.02


class Load:
    """Writes lines to the sources' files and records to the sinks' topics, and looks at the sinks' files, until it is closed."""

    def __init__(self, bootstrap: str, folder: Path, pairs: int, rate: float) -> None:
        self.sources = {f"source-{number}": folder / f"source-{number}.txt" for number in range(pairs)}
        self.sinks = {f"sink-{number}": folder / f"sink-{number}.txt" for number in range(pairs)}
        self.written = 0
        self.growth: dict[str, list[float]] = {name: [] for name in self.sinks}
        self._bootstrap, self._rate = bootstrap, rate
        cluster = Cluster(bootstrap)
        for name in self.sinks:
            cluster.create(f"to-{name}")
        for file in (*self.sources.values(), *self.sinks.values()):
            file.touch()
        self._end = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._write, self._look)]
        for thread in self._threads:
            thread.start()

    def configs(self) -> dict[str, dict[str, str]]:
        sources = {name: dict(file_source(file, f"from-{name}")) for name, file in self.sources.items()}
        return sources | {name: dict(file_sink(file, f"to-{name}")) for name, file in self.sinks.items()}

    def _write(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5})
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(file.open("a", buffering=1)) for file in self.sources.values()]
            began = time.monotonic()
            while not self._end.wait(max(0.0, began + self.written / self._rate - time.monotonic())):
                line = f"line {self.written}"
                for file in files:
                    file.write(f"{line}\n")
                for name in self.sinks:
                    while True:
                        try:
                            producer.produce(f"to-{name}", line)
                            break
                        except BufferError:  # the broker is busier than the load allows for
                            producer.poll(_LOOK_SECONDS)
                producer.poll(0)
                self.written += 1
        producer.flush(30)

    def _look(self) -> None:
        sizes = dict.fromkeys(self.sinks, 0)
        while not self._end.wait(_LOOK_SECONDS):
            for name, file in self.sinks.items():
                if (size := file.stat().st_size) != sizes[name]:
                    sizes[name] = size
                    self.growth[name].append(time.time())

    def grows(self, seconds: float) -> None:
        """Wait until as many records have been written as in these seconds, so that the flow is seen undisturbed."""
        wanted = self.written + seconds * self._rate
        eventually(lambda: self.written >= wanted, what=f"{wanted:.0f} records")

    def close(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def moments(self) -> dict[str, list[float]]:
        """Return when records of each connector arrived, in seconds since the epoch."""
        return {name: [at for at, _ in records] for name, records in self.values().items()} | self.growth

    def values(self) -> dict[str, list[tuple[float, str]]]:
        """Return the records of each source: seconds since the epoch, and line."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "bench-migrate", "enable.auto.commit": False})
        found: dict[str, list[tuple[float, str]]] = {}
        for name in self.sources:
            beginning = TopicPartition(f"from-{name}", 0, 0)
            end = consumer.get_watermark_offsets(beginning, timeout=30)[1]
            consumer.assign([beginning])
            records = found[name] = []
            while len(records) < end:
                for message in consumer.consume(10_000, 1.0):
                    records.append((message.timestamp()[1] / 1000, (message.value() or b"").decode()))
        consumer.close()
        return found


def run_all(theirs: peer.PeerDistributed, load: Load) -> None:
    """Create the connectors at a worker, and wait until all are running under load."""
    configs = load.configs()
    for name, config in configs.items():
        peer.put_config(theirs.rest, name, config)
    for name in configs:
        peer.wait_for_state(theirs.rest, name, "RUNNING")
    load.grows(5)


def take_over(stack: RunningStack, folder: Path, options: argparse.Namespace) -> int:
    """Measure how long a stack takes to run the connectors of a worker that ends, and the worker when it starts again."""
    bootstrap = stack.addresses.bootstrap
    load = Load(bootstrap, folder, options.connectors // 2, options.rate)
    windows: list[tuple[str, float, float]] = []
    theirs = peer.PeerDistributed(bootstrap, GROUP, folder / "peer", TOPICS, STRINGS)
    command = [sys.executable, "-m", "sluiceway.cli.main", "migrate", "--from", theirs.rest, "--to", stack.addresses.rest]
    try:
        with theirs:
            run_all(theirs, load)
            moved = subprocess.Popen(
                [*command, "--execute", "--all"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            said = list(itertools.takewhile(lambda line: "Waiting up to" not in line, moved.stdout or ()))
        began = time.time()
        said += moved.communicate()[0]
        windows.append(("taken over", began, time.time()))
        print("".join(said), file=sys.stderr)
        load.grows(8)
        began = time.time()
        stack.close()
        with theirs:
            eventually(lambda: run_by(theirs, load), what="all connectors run by the worker")
            windows.append(("returned", began, time.time()))
            load.grows(8)
            wrong, moments = arrivals(load)
    finally:
        load.close()
    bad = moved.returncode != 0 or any(ended - began > TAKE_OVER_LIMITS[way] for way, began, ended in windows)
    for way, began, ended in windows:
        print_window(way, began, ended, moments)
    return verdict(load, wrong, bad=bad)


def run_by(theirs: peer.PeerDistributed, load: Load) -> bool:
    """Return whether the worker says that it runs every connector and task."""
    own = theirs.rest.removeprefix("http://")
    names = (*load.sources, *load.sinks)
    # A worker that has just started may not have a connector's status yet.
    statuses = [peer.get_status(theirs.rest, name) for name in names if peer.states(theirs.rest, name)]
    parts = [part for status in statuses for part in (status["connector"], *status["tasks"])]
    return len(parts) == 2 * len(names) and all((part["state"], part["worker_id"]) == ("RUNNING", own) for part in parts)


def standstill(moments: Sequence[float], began: float, ended: float) -> float:
    """Return the longest time between two moments, of those from just before ``began`` to just after ``ended``."""
    near = [each for each in moments if began - 5 <= each <= ended + 5]
    return max((later - earlier for earlier, later in itertools.pairwise(near)), default=float("inf"))


def print_window(way: str, began: float, ended: float, moments: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """Print how long a move took, and return the median and the longest standstill of its connectors."""
    still = {name: standstill(times, began, ended) for name, times in moments.items()}
    median, most = statistics.median(still.values()), max(still.values())
    print(f"{way}: {len(still)} connectors in {ended - began:.1f} s; standstill median {median:.1f} s, most {most:.1f} s")
    print("  " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in sorted(still.items(), key=lambda each: -each[1])[:6]))
    return median, most


def arrivals(load: Load) -> tuple[list[str], dict[str, list[float]]]:
    """End the load, and return what was lost or repeated, and when the records of each connector arrived."""
    load.close()
    return list(errors(load)), load.moments()


def verdict(load: Load, wrong: Sequence[str], *, bad: bool) -> int:
    """Print what was lost or repeated, and return the exit code; ``bad`` is whether a limit was exceeded."""
    print("\n".join(wrong) or f"{load.written} records of each connector: 0 lost, 0 repeated")
    return int(bad or bool(wrong))


def errors(load: Load) -> Iterator[str]:
    """Wait until every line has arrived, and yield what was lost or repeated."""
    wanted = {f"line {number}" for number in range(load.written)}

    def arrived() -> bool:
        return all(wanted <= set(lines_of(file)) for file in load.sinks.values()) and all(
            wanted <= {value for _, value in records} for records in load.values().values()
        )

    with contextlib.suppress(AssertionError):
        eventually(arrived, within=60, what="all lines")
    found = {name: lines_of(file) for name, file in load.sinks.items()}
    found |= {name: [value for _, value in records] for name, records in load.values().items()}
    for name, lines in found.items():
        lost, repeated = len(wanted - set(lines)), sum(count - 1 for count in Counter(lines).values())
        if lost or repeated:
            yield f"{name}: {lost} lost, {repeated} repeated"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connectors", type=int, default=20)
    parser.add_argument("--rate", type=float, default=50.0, help="records per second of each connector")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--own", action="store_true", help="each connector has an application of its own")
    kinds.add_argument("--take-over", action="store_true", help="the stack takes over the worker's topics, and gives them back")
    parser.add_argument("--parallel", type=int, help="connectors that move side by side")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-migrate-") as folder:
        worker = {
            **STRINGS,
            **({} if options.own else {"sluiceway.application.default": "small"}),
            **(SHARED if options.take_over else {}),
        }
        home = Path(folder) / "stack"
        home.mkdir()
        with contextlib.ExitStack() as ends:
            if options.take_over:
                broker = EmbeddedBroker(Path(folder) / "broker")
                worker["bootstrap.servers"] = broker.start()
                ends.callback(broker.stop)
            stack = RunningStack(home, worker=worker)
            ends.callback(stack.close)
            return (take_over if options.take_over else measure)(stack, Path(folder), options)


def measure(stack: RunningStack, folder: Path, options: argparse.Namespace) -> int:
    bootstrap = stack.addresses.bootstrap
    load = Load(bootstrap, folder, options.connectors // 2, options.rate)
    windows: list[tuple[str, float, float]] = []
    bad = False
    try:
        with peer.PeerDistributed(bootstrap, GROUP, folder / "peer", TOPICS, STRINGS) as theirs:
            run_all(theirs, load)
            command = [sys.executable, "-m", "sluiceway.cli.main", "migrate", "--from", theirs.rest, "--to", stack.addresses.rest]
            began = time.monotonic()
            subprocess.run(command, capture_output=True, check=True)
            reported = time.monotonic() - began
            command += ["--execute", "--all"] + ([f"--parallel={options.parallel}"] if options.parallel else [])
            for way, more in (("there", []), ("back", ["--back"])):
                began = time.time()
                done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
                windows.append((way, began, time.time()))
                print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
                bad |= done.returncode != 0
                load.grows(8)
            wrong, moments = arrivals(load)
    finally:
        load.close()
    bad |= reported > REPORT_LIMIT
    print(f"report: {reported:.1f} s")
    for way, began, ended in windows:
        median, most = print_window(way, began, ended, moments)
        limit = OWN_LIMIT if options.own else MOST_LIMIT
        bad |= ended - began > MOVE_LIMIT or most > limit or (not options.own and median > MEDIAN_LIMIT)
    return verdict(load, wrong, bad=bad)


if __name__ == "__main__":
    sys.exit(main())
