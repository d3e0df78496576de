# ruff: noqa: S608 (of a database of our own)
"""Rows per second from a PostgreSQL table to a topic, beside COPY to a process that only makes the lines, and beside dlt.

All read one table of the run's own PostgreSQL. Ours goes all the way into Kafka, with JsonConverter; the floor is
``COPY ... TO STDOUT`` of rows as JSON, read by a Python process that counts them; dlt (in a virtual environment of its own,
made for the run) only extracts to files. Ours without Kafka, rows to JSON in memory, is what compares with that. A task's
start does not count, its look for more rows at the end does. Then the memory of a task that reads 5 million rows is printed.

Run: python tests/benchmarks/bench_jdbc_source.py [--rows N] [--memory-rows N] [--no-dlt]
"""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.connectors.jdbc.source_task import JdbcSourceTask
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.runtime.garbage import collect_seldom
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.model import State
from sluiceway.testing import MemoryOffsets
from sluiceway.testing.contexts import MemorySourceContext

from support import databases
from support.databases import DatabaseForTest
from support.engine import RunningTask

JSON = "org.apache.kafka.connect.json.JsonConverter"
GIVE_UP_SECONDS = 900.0

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


@contextmanager
def postgresql() -> Iterator[DatabaseForTest]:
    """The server that the tests have, outside of pytest."""
    yield from databases.postgresql_server.__wrapped__()  # type: ignore[attr-defined]


def fill(server: DatabaseForTest, name: str, rows: int) -> None:
    server.execute(_TABLE.format(name=name, rows=rows))
    server.execute(_ALTER.format(name=name))
    server.execute(f"analyze {name}")


def config_of(server: DatabaseForTest, table: str, *, schemas: bool, mode: str, batch: int) -> dict[str, str]:
    name = f"bench-{uuid.uuid4().hex[:6]}"
    return {
        "name": name, "connector.class": "JdbcSource", **server.config, "mode": mode, "topic.prefix": f"{name}-",
        "tables": f'["\\"public\\".\\"{table}\\""]', "batch.max.rows": str(batch), "poll.interval.ms": "3600000",
        "key.converter": JSON, "value.converter": JSON, "value.converter.schemas.enable": str(schemas).lower(),
        "incrementing.column.name": "id" if mode == "incrementing" else "",
    }  # fmt: skip


def run_task(config: dict[str, str], bootstrap: str, answer: multiprocessing.Queue[tuple[float, int, float]], rows: int) -> None:
    """What our process does: run the task until it has sent so many rows, and say how long that took and how much memory."""
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
    collect_seldom()
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


def dlt(server: DatabaseForTest, table: str, rows: int, folder: Path) -> dict[str, float]:
    """Return dlt's rows a second by backend."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "dlt[filesystem]", "sqlalchemy<2.1", "psycopg2-binary", "pyarrow", "numpy"],
        check=True,
    )
    script = folder / "extract.py"
    script.write_text(_DLT)
    url = f"postgresql+psycopg2://{server.user}:{server.password}@127.0.0.1:{server.port}/{server.name}"
    found = {}
    for backend in ("sqlalchemy", "pyarrow"):
        out = subprocess.run(
            [python, script, url, table, backend], check=False, capture_output=True, text=True, cwd=folder,
            env={"DESTINATION__FILESYSTEM__BUCKET_URL": f"file://{folder}/out", "PATH": "/usr/bin:/bin", "HOME": str(folder),
                 "RUNTIME__DLTHUB_TELEMETRY": "false"},
        )  # fmt: skip
        if out.returncode:
            raise SystemExit(f"dlt failed:\n{out.stderr[-2000:]}")
        found[backend] = rows / float(out.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--memory-rows", type=int, default=5_000_000)
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--no-dlt", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluiceway-bench-") as name, postgresql() as server:
        broker = EmbeddedBroker(Path(name) / "broker")
        bootstrap = broker.start()
        try:
            rows = options.rows
            fill(server, "orders", rows)
            lowest = floor(server, "orders", rows)
            print(f"COPY as JSON lines, nothing else:          {lowest:10,.0f} rows/s")
            print(
                f"ours without Kafka, rows to JSON:          {lines(server, 'orders', rows, options.batch):10,.0f} rows/s",
                flush=True,
            )
            for mode in ("bulk", "incrementing"):
                for schemas in (False, True):
                    rate, memory = ours(server, "orders", bootstrap, rows, schemas=schemas, mode=mode, batch=options.batch)
                    what = f"{mode}, {'with' if schemas else 'without'} schemas"
                    print(
                        f"ours into Kafka, {what:<26}{rate:10,.0f} rows/s  {rate / lowest:5.2f} of COPY  {memory:4.0f} MB",
                        flush=True,
                    )
            if not options.no_dlt:
                for backend, rate in dlt(server, "orders", rows, Path(name)).items():
                    print(f"dlt to files, {backend:<29}{rate:10,.0f} rows/s", flush=True)
            if options.memory_rows:
                server.execute("drop table orders")
                fill(server, "many", options.memory_rows)
                rate, memory = ours(
                    server, "many", bootstrap, options.memory_rows, schemas=False, mode="incrementing", batch=options.batch
                )
                print(f"{options.memory_rows:,} rows: {rate:,.0f} rows/s, at most {memory:.0f} MB in the task's process")
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
