"""Measures change data capture beside real Debezium in Kafka Connect 4.3.0, on the same databases and broker, in the same run.

Both sides are one standalone worker with default settings, driven over REST. The snapshot reads a table of ten columns. The
stream reads inserts and updates, half of each in transactions of 50,000 rows, that were made while the connector was stopped. The
rate covers 15 % to 95 % of the records, by the topic's end offset; CPU is that of the worker's processes. The sides alternate
within each round, so a ratio is the median of the rounds' ratios.

Run: python tests/benchmarks/bench_cdc.py [--events N] [--rounds N] [--only CASE ...]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_engine import measure
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.stack.broker import EmbeddedBroker
from support.cdc_bench import MariaDbSource, PostgresSource, Source, Worker
from support.eventually import eventually
from support.java_plugins import DEBEZIUM_MARIADB, DEBEZIUM_POSTGRES, plugin_folder
from support.mariadb import MariaDbServer
from support.peer import PeerStandalone, change_state, delete_connector, put_config, states
from support.postgres import PostgresServer
from support.toggles import table as text_table

_GOAL = 2.0
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_WORKER = {"offset.flush.interval.ms": "1000"}
OURS, PEER = "ours", "Debezium"


class Rest(Protocol):
    """A worker that runs."""

    rest: str

    def cpu_seconds(self) -> float: ...


class Case(NamedTuple):
    source: str
    stream: bool
    schemas: bool

    @property
    def name(self) -> str:
        parts = (self.source, "stream" if self.stream else "snapshot", "schemas" if self.schemas else "plain")
        return "-".join(parts).lower()


_BOTH = (False, True)
CASES = [Case(kind, stream, schemas) for kind in ("PostgreSQL", "MariaDB") for stream in _BOTH for schemas in _BOTH]


@dataclass
class Measured:
    """Events per second, and per CPU second, of each round."""

    case: Case
    rates: dict[str, list[float]] = field(default_factory=lambda: {OURS: [], PEER: []})
    per_cpu: dict[str, list[float]] = field(default_factory=lambda: {OURS: [], PEER: []})

    def row(self) -> Sequence[str]:
        cells = [self.case.name]
        ratios = []
        for values in (self.rates, self.per_cpu):
            both = list(zip(values[OURS], values[PEER], strict=False))
            ratio = statistics.median(own / other for own, other in both) if both else 0.0
            ratios.append(ratio)
            cells += [*(_spread(values[side]) for side in (OURS, PEER)), f"{ratio:.2f}x"]
        return [*cells, "yes" if min(ratios) >= _GOAL else "NO"]


def _spread(values: list[float]) -> str:
    if not values:
        return "-"
    return f"{statistics.median(values):,.0f} [{min(values):,.0f}-{max(values):,.0f}]"


class Bench:
    """The servers and workers of a run."""

    def __init__(self, bootstrap: str, sources: dict[str, Source], workers: dict[str, Rest], events: int) -> None:
        self.bootstrap = bootstrap
        self.sources = sources
        self.workers = workers
        self.events = events
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.watcher = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})

    def run(self, case: Case, side: str) -> tuple[float, float]:
        """Return the events per second and per CPU second of a side."""
        source, worker = self.sources[case.source], self.workers[side]
        name = f"cdc_{uuid.uuid4().hex[:8]}"
        config = {
            **source.config(name),
            **{f"{part}.converter": _JSON for part in ("key", "value")},
            **{f"{part}.converter.schemas.enable": str(case.schemas).lower() for part in ("key", "value")},
            "snapshot.mode": "no_data" if case.stream else "initial_only",
        }
        topic = source.topic(name)
        self.admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        source.create(name)
        try:
            rate, cores = (self._stream if case.stream else self._snapshot)(source, worker, name, config)
        finally:
            delete_connector(worker.rest, name)
            eventually(lambda: self.dropped(source, name), within=60, what="the slot to be free")
            self.admin.delete_topics([topic])[topic].result(30)
        return rate, rate / cores

    def _snapshot(self, source: Source, worker: Rest, name: str, config: dict[str, str]) -> tuple[float, float]:
        source.insert(name, 0, self.events)
        put_config(worker.rest, name, config)
        return measure(lambda: self.end(source.topic(name)), worker.cpu_seconds, self.events)

    def _stream(self, source: Source, worker: Rest, name: str, config: dict[str, str]) -> tuple[float, float]:
        topic, half = source.topic(name), self.events // 2
        put_config(worker.rest, name, config)
        eventually(lambda: states(worker.rest, name) == ["RUNNING", "RUNNING"], within=120, what="a running task")
        ids = iter(range(1_000_000_000, 1_000_001_000))
        eventually(lambda: self._arrives(source, name, next(ids)), within=120, what="the first record")
        change_state(worker.rest, name, "stop")
        eventually(lambda: states(worker.rest, name) == ["STOPPED"], within=60, what="a stopped connector")
        source.insert(name, 0, half)
        source.update(name, 0, half)
        begin = self.end(topic)
        change_state(worker.rest, name, "resume")
        return measure(lambda: self.end(topic) - begin, worker.cpu_seconds, self.events)

    def _arrives(self, source: Source, name: str, number: int) -> bool:
        """Insert a row; tell whether records have arrived."""
        source.insert(name, number, number + 1)
        return self.end(source.topic(name)) > 0

    @staticmethod
    def dropped(source: Source, name: str) -> bool:
        try:
            source.drop(name)
        except Exception:  # noqa: BLE001 (the driver's error while the connector still has its connections)
            return False
        return True

    def end(self, topic: str) -> int:
        """Return the end offset of a topic's only partition, 0 while its leader is not known."""
        try:
            return int(self.watcher.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
        except KafkaException:
            return 0


@contextmanager
def opened(events: int, kinds: set[str], *, peer: bool) -> Iterator[Bench]:
    """Start the broker, the databases and the workers, and stop them at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluiceway-bench-")))
        broker = EmbeddedBroker(folder / "broker")
        bootstrap = broker.start()
        stack.callback(broker.stop)
        sources: dict[str, Source] = {}
        if "PostgreSQL" in kinds:
            sources["PostgreSQL"] = PostgresSource(stack.enter_context(PostgresServer()))
        if "MariaDB" in kinds:
            sources["MariaDB"] = MariaDbSource(stack.enter_context(MariaDbServer(binlog=True)), bootstrap)
        workers: dict[str, Rest] = {OURS: stack.enter_context(Worker(bootstrap, folder / "ours", _WORKER))}
        if peer:
            plugin_folder(folder / "plugins", "debezium-postgres", DEBEZIUM_POSTGRES)
            plugin_folder(folder / "plugins", "debezium-mariadb", DEBEZIUM_MARIADB)
            properties = {**_WORKER, "plugin.path": str(folder / "plugins"), "plugin.discovery": "service_load"}
            workers[PEER] = stack.enter_context(PeerStandalone(bootstrap, folder / "peer", [], properties))
        yield Bench(bootstrap, sources, workers, events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=[case.name for case in CASES], help="measure these cases only")
    parser.add_argument("--without-peer", action="store_true", help="measure our side only")
    options = parser.parse_args()
    measured = [Measured(case) for case in CASES if options.only is None or case.name in options.only]
    with opened(options.events, {each.case.source for each in measured}, peer=not options.without_peer) as bench:
        for number in range(options.rounds):
            for each in measured:
                for side in list(bench.workers) if number % 2 == 0 else reversed(list(bench.workers)):
                    rate, per_cpu = bench.run(each.case, side)
                    each.rates[side].append(rate)
                    each.per_cpu[side].append(per_cpu)
                    print(
                        f"round {number + 1} {each.case.name}, {side}: {rate:,.0f}/s, {per_cpu:,.0f} per CPU second", flush=True
                    )
    print(f"\n{options.events:,} events, median [lowest-highest]; goal {_GOAL:g} times Debezium in both")
    headings = ("case", "events/s", "Debezium", "ratio", "events/CPU s", "Debezium", "ratio", "reached")
    print(text_table(headings, [each.row() for each in measured]))


if __name__ == "__main__":
    main()
