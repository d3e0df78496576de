# ruff: noqa: S608 (of a database of our own)
"""Rows per second from a PostgreSQL table to a topic, beside COPY to a process that only makes the lines, and beside dlt.

All read one table of the run's own PostgreSQL. Ours goes all the way into Kafka, with JsonConverter; the floor is
``COPY ... TO STDOUT`` of rows as JSON, read by a Python process that counts them; dlt (in a virtual environment of its own,
made for the run) only extracts to files. Ours without Kafka, rows to JSON in memory, is what compares with that. A task's
start does not count, its look for more rows at the end does. Rounds alternate the order. Then the memory of a task that reads
5 million rows is printed.

Run: python tests/benchmarks/bench_jdbc_source.py [--rows N] [--rounds N] [--memory-rows N] [--no-dlt]
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.connectors.jdbc.source.task import JdbcSourceTask
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.runtime.garbage import raise_gc_threshold
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.model import State
from sluiceway.testing import MemoryOffsets, MemorySourceContext
from support.database import DatabaseForTest
from support.engine import RunningTask
from support.postgres import PostgresServer

JSON = "org.apache.kafka.connect.json.JsonConverter"
GIVE_UP_SECONDS = 900.0
COPY, DLT = "COPY of JSON lines, nothing else", "dlt to files, default backend"

_TABLE = """
create table {name} as select i::bigint as id, i % 1000 as customer, 'customer number ' || i % 1000 as name,
    (i % 100000) / 100.0::numeric(10,2) as amount, i % 2 = 0 as paid,
    timestamp '2024-01-01' + i * interval '1 second' as created from generate_series(1, {rows}) as i
"""
_ALTER = "alter table {name} alter column amount type numeric(10,2), add primary key (id)"

_DLT = """
import sys, time, tempfile
import dlt
from dlt.sources.sql_database import sql_table
url, table, backend = sys.argv[1:4]
pipeline = dlt.pipeline("bench_" + backend, destination="filesystem", pipelines_dir=tempfile.mkdtemp())
source = sql_table(url, table=table, backend=backend, chunk_size=50000)
began = time.monotonic()
pipeline.extract(source)
print(time.monotonic() - began)
"""


def fill(server: DatabaseForTest, name: str, rows: int) -> None:
    server.execute(_TABLE.format(name=name, rows=rows))
    server.execute(_ALTER.format(name=name))
    server.execute(f"analyze {name}")


def config_of(server: DatabaseForTest, table: str, *, schemas: bool, mode: str, batch: int) -> dict[str, str]:
    name = f"bench-{uuid.uuid4().hex[:6]}"
    return {
        "name": name,
        "connector.class": "JdbcSource",
        **server.config,
        "mode": mode,
        "topic.prefix": f"{name}-",
        "tables": f'["\\"public\\".\\"{table}\\""]',
        "batch.max.rows": str(batch),
        "poll.interval.ms": "3600000",
        "key.converter": JSON,
        "value.converter": JSON,
        "value.converter.schemas.enable": str(schemas).lower(),
        "incrementing.column.name": "id" if mode == "incrementing" else "",
    }


def run_task(config: dict[str, str], bootstrap: str, answer: multiprocessing.Queue[tuple[float, int, float]], rows: int) -> None:
    """Run the task until it has sent this many rows; report the time and memory that it took. Runs in a process of its own."""
    with RunningTask(config, {"bootstrap.servers": bootstrap}, bounded=True) as task:
        task.wait_for(State.RUNNING, within=GIVE_UP_SECONDS)
        began, most = time.monotonic(), 0
        while task._thread.is_alive():
            most = max(most, psutil.Process().memory_info().rss)
            time.sleep(0.05)
        result = task.join(within=GIVE_UP_SECONDS)
    assert not result.failed, result.trace
    answer.put((time.monotonic() - began, result.records, most / 2**20))


def ours(
    server: DatabaseForTest, table: str, bootstrap: str, rows: int, *, schemas: bool, mode: str, batch: int
) -> tuple[float, float]:
    """Return rows a second and the most megabytes of the task's process."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    config = config_of(server, table, schemas=schemas, mode=mode, batch=batch)
    process = context.Process(target=run_task, args=(config, bootstrap, answer, rows))
    process.start()
    seconds, records, megabytes = answer.get(timeout=GIVE_UP_SECONDS)
    process.join()
    assert records == rows, f"{records} of {rows}"
    return rows / seconds, megabytes


def lines(server: DatabaseForTest, table: str, rows: int, batch: int) -> float:
    """Return our rows a second without Kafka: read, converted, and made JSON."""
    raise_gc_threshold()
    config = config_of(server, table, schemas=False, mode="bulk", batch=batch)
    task, converter, count = JdbcSourceTask(), JsonConverter(), 0
    converter.configure({"schemas.enable": "false"})
    task.initialize(MemorySourceContext(config, MemoryOffsets()))
    task.start(config)
    began = time.monotonic()
    while count < rows:
        for record in task.poll() or ():
            count += converter.encoder(record.topic, record.value_schema)(record.value) is not None
    task.stop()
    return rows / (time.monotonic() - began)


def floor(server: DatabaseForTest, table: str, rows: int) -> float:
    """Return the lines a second of COPY, each a JSON object that the database makes."""
    began, count = time.monotonic(), 0
    sql = f"copy (select row_to_json(t) from {table} t) to stdout"
    with closing(server.connect()) as connection, connection.cursor() as cursor, cursor.copy(sql) as copy:
        for block in copy:
            count += bytes(block).count(b"\n")
    assert count == rows
    return rows / (time.monotonic() - began)


def dlt_python(folder: Path) -> Path:
    """Make a virtual environment with dlt, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "dlt[filesystem]", "sqlalchemy<2.1", "psycopg2-binary", "pyarrow", "numpy"],
        check=True,
    )
    (folder / "extract.py").write_text(_DLT)
    return python


def dlt(server: DatabaseForTest, table: str, rows: int, python: Path, backend: str) -> float:
    """Return dlt's rows a second, extracting to files."""
    folder = python.parents[2]
    url = f"postgresql+psycopg2://{server.user}:{server.password}@127.0.0.1:{server.port}/{server.name}"
    out = subprocess.run(
        [python, folder / "extract.py", url, table, backend],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={
            "DESTINATION__FILESYSTEM__BUCKET_URL": f"file://{folder}/out",
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "RUNTIME__DLTHUB_TELEMETRY": "false",
        },
    )
    if out.returncode:
        raise SystemExit(f"dlt failed:\n{out.stderr[-2000:]}")
    return rows / float(out.stdout.strip().splitlines()[-1])


def contestants(
    server: DatabaseForTest, bootstrap: str, python: Path | None, rows: int, batch: int
) -> dict[str, Callable[[], float]]:
    """Return what is measured, by name; each gives rows a second."""

    def kafka(mode: str, schemas: bool) -> Callable[[], float]:
        return lambda: ours(server, "orders", bootstrap, rows, schemas=schemas, mode=mode, batch=batch)[0]

    found: dict[str, Callable[[], float]] = {
        COPY: lambda: floor(server, "orders", rows),
        "ours, rows to JSON, without Kafka": lambda: lines(server, "orders", rows, batch),
        "ours into Kafka, bulk": kafka("bulk", False),
        "ours into Kafka, incrementing": kafka("incrementing", False),
        "ours into Kafka, incrementing, schemas": kafka("incrementing", True),
    }
    if python is not None:
        found[DLT] = functools.partial(dlt, server, "orders", rows, python, "sqlalchemy")
        found["dlt to files, backend pyarrow"] = functools.partial(dlt, server, "orders", rows, python, "pyarrow")
    return found


def compare(runs: dict[str, Callable[[], float]], rounds: int) -> None:
    """Run all in turn, every other round backwards; print medians, and medians of the rounds' own ratios."""
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in runs if number % 2 == 0 else reversed(runs):
            rates[name].append(runs[name]())
            print(f"round {number + 1}: {name}: {rates[name][-1]:,.0f}/s", flush=True)
    print(f"\n{'rows/s, median [lowest-highest]':42}{'':28} {'of COPY':>8} {'of dlt':>7}")
    for name, found in rates.items():
        shares = [
            f"{statistics.median(own / other for own, other in zip(found, rates[base], strict=True)):.2f}"
            if base in rates
            else "-"
            for base in (COPY, DLT)
        ]
        spread = f"{statistics.median(found):,.0f} [{min(found):,.0f}-{max(found):,.0f}]"
        print(f"{name:42}{spread:>28} {shares[0]:>8} {shares[1]:>7}")


def ratio(mine: list[float], other: list[float]) -> str:
    return f"{statistics.median(own / theirs for own, theirs in zip(mine, other, strict=True)):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-rows", type=int, default=5_000_000)
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--no-dlt", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluiceway-bench-") as name, PostgresServer() as started:
        server = started.first
        broker = EmbeddedBroker(Path(name) / "broker")
        bootstrap = broker.start()
        try:
            if options.rounds:
                fill(server, "orders", options.rows)
                python = None if options.no_dlt else dlt_python(Path(name))
                compare(contestants(server, bootstrap, python, options.rows, options.batch), options.rounds)
                server.execute("drop table orders")
            if options.memory_rows:
                fill(server, "many", options.memory_rows)
                rate, memory = ours(
                    server, "many", bootstrap, options.memory_rows, schemas=False, mode="incrementing", batch=options.batch
                )
                print(f"{options.memory_rows:,} rows: {rate:,.0f} rows/s, at most {memory:.0f} MB in the task's process")
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
