"""A worker that is killed in the middle of a large snapshot continues where it was.

One table of TABLE_ROWS=5000000 rows, and TABLES=1000 tables. Run with -s to see the times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec

from cdc.configs import mariadb_config, postgres_config
from support.cdc_bench import Worker
from support.database import DatabaseForTest
from support.eventually import LIMIT, eventually
from support.kafka import Kafka
from support.mariadb import MariaDbServer
from support.peer import put_config
from support.postgres import PostgresServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(14_400)]

ROWS = int(os.environ.get("TABLE_ROWS", "5000000"))
TABLES = int(os.environ.get("TABLES", "1000"))
_ROWS_OF_EACH = 1000
_PER_TRANSACTION = 2_000_000
_AGAIN = 500_000  # rows of the ranges that were read at the kill, and of those whose end was not yet stored
_WITHIN_SECONDS = 7200
_WORKER = {"offset.flush.interval.ms": "1000"}


@dataclass
class _Source:
    """A captured database. Records of its tables have topics that begin with ``prefix``."""

    kafka: Kafka
    database: DatabaseForTest
    config: Mapping[str, str]
    prefix: str
    numbers: str

    def fill(self, table: str, rows: int) -> str:
        """Create a table with rows, and its topic; return the topic."""
        self.database.execute(f"create table {table} (id int primary key, v int)")
        for low in range(1, rows + 1, _PER_TRANSACTION):
            numbers = self.numbers.format(low=low, high=min(rows, low + _PER_TRANSACTION - 1))
            self.database.execute(f"insert into {table} select seq, seq % 1000 from {numbers}")  # noqa: S608 (names of our own)
        return f"{self.prefix}.{table}"

    @contextmanager
    def worker(self, folder: Path) -> Iterator[Worker]:
        """Run the connector in a worker of its own until the end of the block, with the offsets that are in the folder."""
        with Worker(self.kafka.bootstrap, folder, _WORKER) as worker:
            put_config(worker.rest, self.config["name"], {**self.config, "producer.override.compression.type": "lz4"})
            yield worker


@pytest.fixture(params=["postgresql", "mariadb"])
def source(request: pytest.FixtureRequest, kafka: Kafka, unique: Callable[[str], str]) -> Iterator[_Source]:
    name = unique("large")
    if request.param == "postgresql":
        with PostgresServer() as server:
            numbers = "generate_series({low}, {high}) as t(seq)"
            yield _Source(kafka, server.first, postgres_config(server.first, name), f"{name}.public", numbers)
    else:
        with MariaDbServer(binlog=True) as server:
            server.execute("create database shop")
            database = server.database("shop")
            config = mariadb_config(database, name, kafka.bootstrap)
            yield _Source(kafka, database, config, f"{name}.shop", "seq_{low}_to_{high}")


class _Arrived:
    """Counts the records of topics, which have one partition each."""

    def __init__(self, kafka: Kafka, topics: list[str], rows: int) -> None:
        self._kafka = kafka
        self._latest = {TopicPartition(topic, 0): OffsetSpec.latest() for topic in topics}
        created = kafka.admin.create_topics([NewTopic(topic, 1, 1) for topic in topics])
        for future in created.values():
            future.result(LIMIT)
        self._seen = np.zeros((len(topics), rows + 1), np.bool_)
        self._numbers = {topic: number for number, topic in enumerate(topics)}
        self._consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "large", "fetch.min.bytes": 100_000})
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
        self.records = 0

    def read(self) -> int:
        """Read the next records that have arrived, if any; return how many there were."""
        messages = self._consumer.consume(20_000, 0.5)
        for message in messages:
            assert not message.error()
            key, topic = message.key(), message.topic()
            assert key is not None
            assert topic is not None
            self._seen[self._numbers[topic], int(key[len(b'{"id":') : -1])] = True
        self.records += len(messages)
        return len(messages)

    def written(self) -> int:
        """Return how many records the topics have, read or not: reading many takes longer than writing them."""

        def ends() -> list[int] | None:
            try:
                return [found.result(LIMIT).offset for found in self._kafka.admin.list_offsets(self._latest).values()]
            except KafkaException as error:
                if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:  # as new topics have none yet
                    raise
                return None

        return sum(eventually(ends, what="leaders of all topics"))

    def wait_for(self, rows: int) -> None:
        """Read until this many different rows have been seen, and all records that the topics have then."""

        def arrived() -> bool:
            self.read()
            return int(np.count_nonzero(self._seen)) >= rows

        eventually(arrived, within=_WITHIN_SECONDS, what=f"{rows} rows")
        while self.records < self.written():
            self.read()

    def close(self) -> None:
        self._consumer.close()


def _check(source: _Source, tables: int, rows: int, folder: Path) -> None:
    topics = [source.fill(f"t{number}", rows) for number in range(tables)]
    source.database.execute("analyze t0" if "generate" in source.numbers else "analyze table t0")
    arrived = _Arrived(source.kafka, topics, rows)
    total = tables * rows
    try:
        begun = time.monotonic()
        with source.worker(folder) as worker:
            eventually(lambda: arrived.written() >= total // 2, within=_WITHIN_SECONDS, what=f"{total // 2} records")
            worker.kill()
        half, at_kill = time.monotonic(), arrived.written()
        with source.worker(folder):
            arrived.wait_for(total)
            ended = time.monotonic()
    finally:
        arrived.close()
    print(
        f"{tables} x {rows} rows: killed after {at_kill} records and {half - begun:.0f} s, the rest took "
        f"{ended - half:.0f} s; {arrived.records - total} records were repeated",
        flush=True,
    )
    assert at_kill < total * 0.8
    assert arrived.records - total <= min(_AGAIN, total // 4)


def test_a_table_of_many_rows(source: _Source, tmp_path: Path) -> None:
    _check(source, 1, ROWS, tmp_path / "worker")


def test_many_tables(source: _Source, tmp_path: Path) -> None:
    _check(source, TABLES, _ROWS_OF_EACH, tmp_path / "worker")
