"""Rows per second into a topic, exactly once: SparkSource from a Parquet folder and a table, and JdbcSource from that table.

All have the same rows of about 200 bytes, JsonConverter with schemas, and one local Spark application with ``--cores`` slots.
JdbcSource, on one core, has its default batches of 100 rows, or batches of 2,000, which are columns.
The table is in SQLite, which is no process of its own. The time is that from RUNNING to the stored offset of the last row. A
first, small run of each warms up JVM and Python and does not count. CPU seconds are those of the JVM and all Python processes.
Rounds alternate the order. After each run, the topic must have every row once, by its committed records.

Run: python tests/benchmarks/bench_spark_source.py [--rows N] [--rounds N] [--cores N]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import NamedTuple

import psutil
import pyarrow
import pyarrow.parquet
from confluent_kafka import Consumer, TopicPartition
from pyspark import SparkContext

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.spark.session import local_conf, spark_context
from sluiceway.stack import maven
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.factory import open_stores
from support.kafka import worker_for
from support.spark_application import Application

JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
GIVE_UP_SECONDS = 1800.0
FILES = 16
PARTITIONS = 4
POLL_SECONDS = 0.2
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
PARQUET, SPARK_JDBC = "SparkSource, Parquet", "SparkSource, JDBC"
RECORDS, COLUMNS = "JdbcSource", "JdbcSource, columns"
_COLUMN = {"incrementing.column.name": "id"}
_ID = re.compile(rb'"payload":\{"id":(\d+)')


class Run(NamedTuple):
    """The costs of one run; CPU seconds of the Spark JVM and of Python."""

    seconds: float
    jvm: float
    python: float


def main() -> None:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        broker = EmbeddedBroker(folder / "broker")
        bootstrap = broker.start(timeout=GIVE_UP_SECONDS)
        stack.callback(broker.stop)
        os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 2g pyspark-shell")
        jars = ",".join(map(str, maven.resolve([SQLITE_DRIVER])))
        conf = {**local_conf(), "spark.jars": jars}
        context = spark_context("bench-spark-source", conf, master=f"local[{options.cores}]")
        stack.callback(context.stop)
        for rows in (1000, options.rows):
            _write(folder / str(rows), rows)
        for kind, config in _sources(folder / "1000", options).items():
            _run(context, bootstrap, kind, config, 1000)
        found: dict[str, list[Run]] = {}
        sources = _sources(folder / str(options.rows), options)
        for number in range(options.rounds):
            for kind in sources if number % 2 == 0 else reversed(sources):
                found.setdefault(kind, []).append(_run(context, bootstrap, kind, sources[kind], options.rows))
        _report(found, options.rows)


def _sources(folder: Path, options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Return the configs of the sources of one folder."""
    spark = {"connector.class": "SparkSource", "splits": str(options.cores), "split.max.rows": "250000"}
    url = f"jdbc:sqlite:{folder / 'rows.db'}"
    table = {"option.url": url, "option.driver": "org.sqlite.JDBC", "table": "o"}
    jdbc = {"connector.class": "JdbcSource", "connection.url": url, "mode": "incrementing", "table.whitelist": "o"}
    return {
        PARQUET: {**spark, "splits": str(4 * options.cores), "format": "parquet", "path": str(folder / "parquet")},
        SPARK_JDBC: {**spark, "format": "jdbc", **table, **_COLUMN},
        RECORDS: {**jdbc, **_COLUMN},
        COLUMNS: {**jdbc, "batch.max.rows": "2000", **_COLUMN},
    }


def _report(found: dict[str, list[Run]], rows: int) -> None:
    """Print the medians, and the medians of the rounds' own ratios to the records engine."""
    print(f"\n{rows:,} rows, medians  {'rows/s':>12} {'CPU s':>8} {'JVM':>8} {'Python':>8} {'of JdbcSource':>14}")
    for kind, runs in found.items():
        rate = statistics.median(rows / run.seconds for run in runs)
        jvm, python = (statistics.median(values) for values in ([run.jvm for run in runs], [run.python for run in runs]))
        cpu = statistics.median(run.jvm + run.python for run in runs)
        ratio = statistics.median(other.seconds / run.seconds for run, other in zip(runs, found[RECORDS], strict=True))
        print(f"{kind:22} {rate:18,.0f} {cpu:8.1f} {jvm:8.1f} {python:8.1f} {ratio:14.2f}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    return parser


def _write(folder: Path, rows: int) -> None:
    """Write the same rows to Parquet files and to a SQLite table."""
    (folder / "parquet").mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(folder / "rows.db")) as database:
        database.execute("create table o (id integer primary key, customer text, amount real, note text)")
        step = -(-rows // FILES)
        for start in range(1, rows + 1, step):
            numbers = range(start, min(start + step, rows + 1))
            made = [(n, f"customer {n % 99991}", n % 5000 + 0.25, "x" * 100 + str(n)) for n in numbers]
            database.executemany("insert into o values (?, ?, ?, ?)", made)
            columns = dict(zip(("id", "customer", "amount", "note"), map(list, zip(*made, strict=True)), strict=True))
            pyarrow.parquet.write_table(pyarrow.table(columns), folder / "parquet" / f"{start}.parquet")
        database.commit()


def _run(context: SparkContext, bootstrap: str, kind: str, config: dict[str, str], rows: int) -> Run:
    """Return the costs of one run to a new topic."""
    settings = {"exactly.once.source.support": "enabled", "key.converter": STRING, "value.converter": JSON}
    worker = worker_for(bootstrap, lambda prefix: f"{prefix}-{uuid.uuid4().hex[:8]}", **settings)
    name = f"bench-{uuid.uuid4().hex[:8]}"
    with open_stores(worker) as stores:
        app = Application(name, worker, stores, context)
        creation = {"topic.creation.default.partitions": str(PARTITIONS), "topic.creation.default.replication.factor": "1"}
        target = {"topic.prefix": f"{name}-"} if kind in (RECORDS, COLUMNS) else {"topic": f"{name}-o"}
        app.start({**config, **creation, **target, "poll.interval.ms": "200"})
        started, cpu = time.perf_counter(), CpuTimes()
        last = [{"incrementing": rows}] if kind != PARQUET else [{"complete": True}] * FILES
        while [offset for _, offset in app.offsets()] != last:
            assert app.states() == ["RUNNING"], app.traces()
            assert time.perf_counter() - started < GIVE_UP_SECONDS
            time.sleep(POLL_SECONDS)
            cpu.sample()
        run = Run(time.perf_counter() - started, *cpu.used())
        app.leave()
    _check(bootstrap, f"{name}-o", rows)
    print(f"  {kind}: {rows} rows in {run.seconds:.1f} s, CPU s {run.jvm:.1f} JVM + {run.python:.1f} Python", flush=True)
    return run


def _check(bootstrap: str, topic: str, rows: int) -> None:
    """Stop the benchmark unless the topic has each id once."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "check", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
    seen, count, left = bytearray(rows + 1), 0, PARTITIONS
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    while left:
        for message in consumer.consume(10_000, 10):
            if message.error() is not None:
                left -= 1
                continue
            found = _ID.search(message.value() or b"")
            assert found is not None
            seen[int(found[1])] = 1
            count += 1
    consumer.close()
    if (count, sum(seen)) != (rows, rows):
        raise SystemExit(f"{topic} has {count} records with {sum(seen)} different ids of {rows}")


class CpuTimes:
    """CPU seconds of Spark's JVM, and of this process and all other processes below it, without the broker.

    Spark's Python daemon leaves its workers' times to nobody when they end, so the last ones seen of each process count.
    """

    def __init__(self) -> None:
        self._last: dict[psutil.Process, tuple[bool, float]] = {}
        self.sample()
        self._begin = self._sums()

    def used(self) -> tuple[float, float]:
        """Return the seconds since the beginning: those of the JVM, and of Python."""
        self.sample()
        jvm, python = self._sums()
        return jvm - self._begin[0], python - self._begin[1]

    def sample(self) -> None:
        for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                command = process.cmdline()
                if command and "kafka.Kafka" not in command:
                    times = process.cpu_times()
                    self._last[process] = Path(command[0]).name == "java", times.user + times.system

    def _sums(self) -> tuple[float, float]:
        times = self._last.values()
        return sum(seconds for is_jvm, seconds in times if is_jvm), sum(seconds for is_jvm, seconds in times if not is_jvm)


if __name__ == "__main__":
    main()
