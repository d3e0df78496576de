"""Memory of a task during one large transaction and with large rows: ROWS=5000000 rows, LARGE=20 rows of 10 MB.

Run with -s to see the peaks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from cdc.configs import JSON, mariadb_config, postgres_config
from cdc.measured_task import measured_task
from support.database import DatabaseForTest
from support.eventually import eventually
from support.kafka import Kafka
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(7200)]

ROWS = int(os.environ.get("ROWS", "5000000"))
LARGE = int(os.environ.get("LARGE", "20"))
LIMIT = 300 << 20
_LARGE_BYTES = 10_000_000
_WITHIN_SECONDS = 3600
_PRODUCER = {
    "producer.override.max.request.size": "40000000",
    "producer.override.compression.type": "lz4",
    "max.queue.size.in.bytes": "0",
}
_MAKE = {
    "postgresql": "insert into big select g, g * 7, 'text of row ' || g from generate_series(1, {rows}) g",
    "mariadb": "insert into big select seq, seq * 7, concat('text of row ', seq) from seq_1_to_{rows}",
}


def check(
    kafka: Kafka, database: DatabaseForTest, kind: str, config: dict[str, str], schema: str, folder: Path, large: bool
) -> None:
    """Run the connector while rows are written, and check that all arrive and that the memory is bounded."""
    rows = LARGE if large else ROWS
    name = config["name"]
    topic = f"{name}.{schema}.big"
    kafka.admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "60000000"})])[topic].result(LIMIT)
    database.execute(
        "create table big (id bigint primary key, a bigint, b text)"
        if kind == "postgresql"
        else "create table big (id bigint primary key, a bigint, b longtext)"
    )
    database.execute("create table small (id int primary key)")
    kafka.create(f"{name}.{schema}.small")
    worker = {"bootstrap.servers": kafka.bootstrap, **JSON, "offset.flush.interval.ms": "1000"}
    with measured_task(folder, {**config, **_PRODUCER, "snapshot.mode": "no_data"}, worker) as task:

        def started() -> bool:
            assert task.process.poll() is None, (folder / "task.log").read_text()[-5000:]
            database.execute(f"insert into small values ({next(numbers)})")  # noqa: S608
            return kafka.count(f"{name}.{schema}.small") > 0

        numbers = iter(range(10**6))
        eventually(started, what="the first record")
        began = time.monotonic()
        if large:
            for number in range(rows):
                database.execute(f"insert into big values ({number}, 0, repeat('x', {_LARGE_BYTES}))")  # noqa: S608
        else:
            database.execute(_MAKE[kind].format(rows=rows))
        written = time.monotonic()

        def arrived() -> bool:
            assert task.process.poll() is None, (folder / "task.log").read_text()[-5000:]
            time.sleep(0.5)
            return kafka.count(topic) >= rows

        eventually(arrived, within=_WITHIN_SECONDS, what=f"{rows} records")
        seconds = time.monotonic() - written
    what = f"{rows} rows of {_LARGE_BYTES >> 20} MiB" if large else f"one transaction of {rows} rows"
    print(
        f"{kind}, {what}: written in {written - began:.0f} s, captured {seconds:.0f} s later, peak memory {task.peak >> 20} MiB",
        flush=True,
    )
    assert task.peak <= LIMIT


@pytest.mark.parametrize("large", [False, True], ids=["transaction", "rows"])
def test_postgresql(kafka: Kafka, unique: Callable[[str], str], tmp_path: Path, large: bool) -> None:
    with PostgresServer() as server:
        check(kafka, server.first, "postgresql", postgres_config(server.first, unique("pgmem")), "public", tmp_path, large)


@pytest.mark.parametrize("large", [False, True], ids=["transaction", "rows"])
def test_mariadb(kafka: Kafka, unique: Callable[[str], str], tmp_path: Path, large: bool) -> None:
    with MariaDbServer(binlog=True) as server:
        server.execute("create database big")
        database = server.database("big")
        config = mariadb_config(database, unique("mymem"), kafka.bootstrap)
        check(kafka, database, "mariadb", config, "big", tmp_path, large)
