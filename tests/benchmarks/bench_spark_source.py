"""Rows per second into a topic, exactly once: SparkSource from a Parquet folder and JdbcSource from a SQLite table.

Both have the same rows of about 200 bytes, JsonConverter with schemas, and one local Spark application with ``--cores`` slots.
The time is that from RUNNING to the stored offset of the last row. A first, small run of each warms up JVM and Python and does
not count. CPU seconds are those of the JVM and all Python processes.

Run: python tests/benchmarks/bench_spark_source.py [--rows N] [--rounds N] [--cores N]
"""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

import psutil
import pyarrow
import pyarrow.parquet
from pyspark import SparkContext

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.spark.session import local_conf, spark_context
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.factory import open_stores
from support.eventually import eventually
from support.kafka import worker_for
from support.spark_application import Application

JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
GIVE_UP_SECONDS = 1800.0
FILES = 4


def main() -> None:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        broker = EmbeddedBroker(folder / "broker")
        bootstrap = broker.start()
        stack.callback(broker.stop)
        context = spark_context("bench-spark-source", local_conf(), master=f"local[{options.cores}]")
        stack.callback(context.stop)
        sources = {}
        for rows in (1000, options.rows):
            _write(folder / str(rows), rows)
            parquet, database = folder / str(rows) / "parquet", folder / str(rows) / "rows.db"
            spark = {"connector.class": "SparkSource", "format": "parquet", "path": str(parquet), "splits": str(options.cores)}
            jdbc = {"connector.class": "JdbcSource", "connection.url": f"jdbc:sqlite:{database}", "mode": "incrementing"}
            sources[rows] = {
                "SparkSource, Parquet": {**spark, "split.max.rows": "250000", "topic": "t"},
                "JdbcSource, SQLite": {**jdbc, "table.whitelist": "o", "topic.prefix": ""},
            }
        found: dict[str, list[tuple[float, float]]] = {}
        for kind, config in sources[1000].items():
            _run(context, bootstrap, kind, config, 1000)
        for _ in range(options.rounds):
            for kind, config in sources[options.rows].items():
                found.setdefault(kind, []).append(_run(context, bootstrap, kind, config, options.rows))
        for kind, runs in found.items():
            seconds, cpu = (statistics.median(values) for values in zip(*runs, strict=True))
            print(f"{kind}: {options.rows / seconds:,.0f} rows/s, {cpu * 1_000_000 / options.rows:.1f} CPU s a million rows")


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


def _run(context: SparkContext, bootstrap: str, kind: str, config: dict[str, str], rows: int) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of one run to a new topic."""
    settings = {"exactly.once.source.support": "enabled", "key.converter": STRING, "value.converter": JSON}
    worker = worker_for(bootstrap, lambda prefix: f"{prefix}-{uuid.uuid4().hex[:8]}", **settings)
    with open_stores(worker) as stores:
        app = Application(f"bench-{uuid.uuid4().hex[:8]}", worker, stores, context)
        # Topics of their own, with the same partitions.
        creation = {"topic.creation.default.partitions": "4", "topic.creation.default.replication.factor": "1"}
        own = {"incrementing.column.name": "id", **config, **creation, "poll.interval.ms": "200"}
        app.start(own)
        started, before = time.perf_counter(), _cpu()
        eventually(
            lambda: any(offset.get("incrementing") == rows for _, offset in app.offsets()), within=GIVE_UP_SECONDS, what="the end"
        )
        seconds, cpu = time.perf_counter() - started, _cpu() - before
        app.leave()
    print(f"  {kind}: {rows} rows in {seconds:.1f} s, {cpu:.1f} CPU s", flush=True)
    return seconds, cpu


def _cpu() -> float:
    """Return the CPU seconds of this process and all below it, without the broker."""
    total = 0.0
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if "kafka.Kafka" not in process.cmdline():
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total


if __name__ == "__main__":
    main()
