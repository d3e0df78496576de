"""Measures rows per second from a topic into PostgreSQL: our JDBC sink beside Debezium's in Kafka Connect.

A topic with one partition has keyed records of six fields with schemas (JsonConverter). One task per side writes them to a table
of its own, by insert and by upsert; half of the upserts update a row. Each side runs with its defaults (ours exactly once), and
then tuned as its manual recommends: both with max.poll.records=3000, Debezium with batch.size=3000 and its unnest form for
PostgreSQL. Rounds alternate which side runs first. The rate covers 15 % to 95 % of the records, measured from outside: the
table's row count or the offset in its rows.

Run: python tests/benchmarks/bench_jdbc_sink.py [--records N] [--rounds N] [--only insert|upsert]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import psutil
from bench_engine import Result, measure, spread
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.api import SinkRecord
from sluiceway.data import (
    BOOLEAN_SCHEMA,
    FLOAT64_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
    timestamp_schema,
)
from sluiceway.data.instant import timestamp_of
from sluiceway.stack import maven
from sluiceway.stack.broker import EmbeddedBroker
from support.database import DatabaseForTest
from support.jdbc_sink import JSON, TaskProcess, fill
from support.peer import PeerStandalone, delete_connector, get_status, put_config
from support.postgres import PostgresServer

DEBEZIUM = "io.debezium:debezium-connector-jdbc:3.3.0.Final"
DRIVER = "org.postgresql:postgresql:42.7.7"
# Jackson's modules find each other only in the same class loader.
THE_WORKERS = [
    "org.apache.kafka:*",
    "org.slf4j:*",
    *(f"com.fasterxml.jackson.{part}:*" for part in ("core", "datatype", "module")),
]
KEY = Schema.struct({"id": INT64_SCHEMA}, name="key")
VALUE = Schema.struct(
    {
        "id": INT64_SCHEMA,
        "name": STRING_SCHEMA,
        "amount": FLOAT64_SCHEMA,
        "ok": BOOLEAN_SCHEMA,
        "at": timestamp_schema(),
        "level": INT32_SCHEMA,
    },
    name="value",
)
FASTER = {"consumer.override.max.poll.records": "3000"}
VARIANTS = {
    "defaults": ({}, {}),
    "tuned": (FASTER, {**FASTER, "batch.size": "3000", "dialect.postgres.unnest.insert.enabled": "true"}),
}


def records(topic: str, count: int, mode: str) -> Iterator[SinkRecord]:
    """Produce records; for upserts each key occurs twice, as far apart as possible."""
    keys = count if mode == "insert" else count // 2
    for number in range(count):
        key = number % keys
        values = [key, f"name number {number}", number * 1.5, number % 2 == 0, timestamp_of(1_700_000_000_000 + number), number]
        yield SinkRecord(topic, 0, number, Struct.of(VALUE, values), VALUE, Struct.of(KEY, [key]), KEY)


class Bench:
    def __init__(self, bootstrap: str, database: DatabaseForTest, peer: PeerStandalone, count: int) -> None:
        self.bootstrap = bootstrap
        self.database = database
        self.peer = peer
        self.count = count
        self.topics: dict[str, str] = {}
        self.memory: dict[str, int] = {}

    def topic(self, mode: str) -> str:
        if mode not in self.topics:
            topic = f"bench_{mode}_{uuid.uuid4().hex[:6]}"
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
            fill(self.bootstrap, records(topic, self.count, mode))
            self.topics[mode] = topic
        return self.topics[mode]

    def run(self, side: str, mode: str, variant: str) -> tuple[float, float]:
        topic, name = self.topic(mode), f"{side}_{uuid.uuid4().hex[:8]}"
        columns = (
            "id bigint primary key, name text not null, amount double precision not null, ok boolean not null, "
            "at timestamp not null, level int not null"
        )
        self.database.execute(f"create table {name} ({columns})")
        common = {"name": name, "topics": topic, **JSON, **self.database.config, "insert.mode": mode}
        try:
            running = self.ours(common, name, variant) if side == "ours" else self.theirs(common, name, variant)
            with running as cpu, closing(self.database.connect()) as connection:
                return measure(lambda: self.done(connection, name), cpu, self.count)
        finally:
            self.database.execute(f"drop table {name}")

    @staticmethod
    def done(connection: Any, table: str) -> int:
        """Return the number of applied records: the highest number written, because rows are in the topic's order."""
        time.sleep(0.05)  # counting uses CPU time that both sides need
        [(highest,)] = connection.execute(f"select max(level) from {table}").fetchall()  # noqa: S608
        return 0 if highest is None else int(highest) + 1

    @contextmanager
    def ours(self, common: dict[str, str], name: str, variant: str) -> Iterator[Callable[[], float]]:
        config = {
            **common,
            "connector.class": "JdbcSink",
            "table.name.format": name,
            "pk.mode": "record_key",
            **VARIANTS[variant][0],
        }
        with TaskProcess(config, self.bootstrap) as task:
            process = psutil.Process(task._process.pid)
            yield lambda: sum(process.cpu_times()[:2])
            self.memory["ours"] = max(self.memory.get("ours", 0), task.resident)

    @contextmanager
    def theirs(self, common: dict[str, str], name: str, variant: str) -> Iterator[Callable[[], float]]:
        config = {key.replace("connection.user", "connection.username"): value for key, value in common.items()}
        config |= {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "collection.name.format": name,
            "primary.key.mode": "record_key",
            "tasks.max": "1",
            **VARIANTS[variant][1],
        }
        put_config(self.peer.rest, config["name"], config)
        try:
            yield self.peer.cpu_seconds
            status = get_status(self.peer.rest, config["name"])
            assert status["tasks"][0]["state"] == "RUNNING", status
            self.memory["peer"] = max(self.memory.get("peer", 0), psutil.Process(self.peer.pid).memory_info().rss)
        finally:
            delete_connector(self.peer.rest, config["name"])


def show(results: dict[tuple[str, str], dict[str, Result]], bench: Bench) -> None:
    print(f"\nRows/s into PostgreSQL, median [lowest-highest], {bench.count:,} records of one partition, one task each")
    print(f"{'':18} {'ours':>26} {'Connect + Debezium':>26} {'ratio':>7} {'cores ours':>11} {'cores peer':>11}")
    import statistics

    for (mode, variant), sides in results.items():
        mine, peer = sides["ours"], sides["peer"]
        ratio = statistics.median(own / other for own, other in zip(mine.rates, peer.rates, strict=True))
        print(
            f"{mode + ' ' + variant:18} {spread(mine.rates):>26} {spread(peer.rates):>26} {ratio:>6.2f}x "
            f"{statistics.median(mine.cores):>11.2f} {statistics.median(peer.cores):>11.2f}"
        )
    for side, size in bench.memory.items():
        print(f"memory of {'our task' if side == 'ours' else 'the Connect worker'}: {size / 2**20:.0f} MiB resident at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("insert", "upsert"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluiceway-bench-") as temporary:
        folder = Path(temporary)
        broker = EmbeddedBroker(folder / "broker")
        server = PostgresServer()
        try:
            server.start()
            bootstrap, database = broker.start(), server.first
            plugins = folder / "plugins" / "debezium"
            plugins.mkdir(parents=True)
            jars = maven.resolve([DEBEZIUM, DRIVER], exclude=THE_WORKERS, title="Debezium's JDBC sink")
            for jar in jars:
                (plugins / jar.name).symlink_to(jar)
            worker = {"plugin.path": str(plugins.parent), "offset.flush.interval.ms": "10000", "plugin.discovery": "service_load"}
            peer = PeerStandalone(bootstrap, folder / "peer", [], worker)
            peer.start(timeout=300)  # plugin discovery reads more than a hundred jars
            try:
                compare(Bench(bootstrap, database, peer, options.records), options)
            finally:
                peer.stop()
        finally:
            server.close()
            broker.stop()


def compare(bench: Bench, options: argparse.Namespace) -> None:
    results = {
        (mode, variant): {"ours": Result(), "peer": Result()}
        for variant in VARIANTS
        for mode in ([options.only] if options.only else ["insert", "upsert"])
    }
    for number in range(options.rounds):
        for (mode, variant), sides in results.items():
            for side in ("ours", "peer") if number % 2 == 0 else ("peer", "ours"):
                measured = bench.run(side, mode, variant)
                sides[side].add(measured)
                print(f"round {number + 1} {mode} {variant}, {side}: {measured[0]:,.0f}/s, {measured[1]:.2f} cores", flush=True)
    show(results, bench)


if __name__ == "__main__":
    main()
