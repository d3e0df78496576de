"""HBase's tables as source and target, while the task's process and the Thrift server are killed, and regions split and merge.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: between two scans, between a put and
a deletion of one batch.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from sluiceway.connectors.hbase import HBaseSourceConnector
from sluiceway.connectors.hbase.client import Put
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.hbase.server import HBaseServer
from support.jdbc_sink import STATIC_MEMBER, TaskProcess, kill_at_random
from support.kafka import Kafka
from support.source_process import SourceProcess, stored_offsets, task_config
from support.transactions import seen

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
ROWS = int(os.environ.get("HBASE_ROWS", "1000000"))
REGIONS, PARTITIONS = 8, 2
RECORDS = 2000  # for each kill of the sink
KEYS = 500
LONGEST = 1.0  # seconds from the first new record to the kill
FIRST_TIME = 1_700_000_000_000  # ms


@pytest.fixture(scope="module")
def server() -> Iterator[HBaseServer]:
    with HBaseServer() as started:
        yield started


def key_of(number: int) -> bytes:
    return b"r%09d" % number


@pytest.mark.timeout(3600)
def test_killed_many_times_each_row_is_in_the_topic_once(
    kafka_bootstrap: str, server: HBaseServer, unique: Callable[[str], str], row: NewRow, chance: random.Random
) -> None:
    made = row(
        f"2: HBaseSource, {ROWS} rows, {KILLS} kills -9, every fifth of the Thrift server too, 2 splits, a merge, a move",
        "0 lost, 0 duplicated",
    )
    splits = [key_of(ROWS * number // REGIONS) for number in range(1, REGIONS)]
    table = server.create(unique("hbase-fault"), "cf", splits=splits)
    with server.client() as client:
        for first in range(0, ROWS, 5000):
            client.put(
                table, [Put(key_of(each), ((b"cf", b"n", b"%d" % each),)) for each in range(first, min(first + 5000, ROWS))]
            )
    kafka = Kafka(kafka_bootstrap)
    kafka.create(table)
    worker = exactly_once_worker(kafka_bootstrap, unique) | {"offset.flush.interval.ms": "200"}
    config = {
        "name": table,
        "connector.class": "HBaseSource",
        "hbase.thrift.servers": f"127.0.0.1:{server.port}",
        "hbase.table": table,
        "batch.max.rows": str(max(10, ROWS // 2000)),
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    changes = {
        KILLS // 5: ("split", table, key_of(ROWS // 16).decode()),
        2 * KILLS // 5: ("merge", table, splits[3].decode()),
        3 * KILLS // 5: ("move", table),
        4 * KILLS // 5: ("split", table, key_of(ROWS - ROWS // 16).decode()),
    }
    for number in range(KILLS):
        started, before = time.monotonic(), kafka.end(table)
        given = task_config(HBaseSourceConnector, config, stored_offsets(config, worker))
        with SourceProcess(given, worker) as task:
            eventually(lambda: kafka.end(table) > before or not task.alive, what="new records")  # noqa: B023
            assert task.alive
            made.recovered(time.monotonic() - started)
            time.sleep(chance.uniform(0, LONGEST))  # where to kill
            if change := changes.get(number):
                server.do(*change)
            if number % 5 == 4:
                server.thrift.kill()
                server.start()
            assert task.alive
    given = task_config(HBaseSourceConnector, config, stored_offsets(config, worker))
    with SourceProcess(given, worker) as task:

        def complete() -> bool:
            assert task.alive
            offsets = stored_offsets(config, worker).all()
            positions = [offset for partition, offset in offsets if "start" in partition]
            return len(positions) > REGIONS and all(offset["since"] and "until" not in offset for offset in positions)

        eventually(complete, what="the end of the first pass of all ranges", within=1800, latest=5)
    found = Counter(int(json.loads(message.value() or b"")["cf:n"]) for message in seen(kafka_bootstrap, table))
    made.seen = f"{found.total()} records of {ROWS} rows"
    made.lost, made.duplicated = len(set(range(ROWS)) - set(found)), found.total() - len(found)
    assert set(found) == set(range(ROWS))
    assert made.duplicated == 0


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("times", ["record", "offset"])
def test_killed_many_times_the_table_equals_the_topic(
    kafka_bootstrap: str, server: HBaseServer, unique: Callable[[str], str], row: NewRow, chance: random.Random, times: str
) -> None:
    table, kafka = server.create(unique("hbase-fault"), "cf", splits=[b"k250"]), Kafka(kafka_bootstrap)
    made = row(
        f"2: HBaseSink, timestamps of {times}s, {KILLS} kills -9 of the task, every fourth of the Thrift server too, splits",
        "the table equals the folded topic",
    )
    kafka.create(table, PARTITIONS)
    settings = {
        "name": f"sink-{table}",
        "connector.class": "HBaseSink",
        "topics": table,
        "hbase.thrift.servers": f"127.0.0.1:{server.port}",
        "hbase.table": table,
        "hbase.timestamp": times,
        "batch.size": "50",  # many requests, so that kills fall everywhere
        "key.converter": "StringConverter",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        **STATIC_MEMBER,
    }
    splits = {KILLS // 3: "k100", 2 * KILLS // 3: "k400"}
    expected: dict[bytes, dict[str, bytes]] = {}
    total = 0

    def begun() -> int:
        since = total - RECORDS + FIRST_TIME if times == "record" else (total - RECORDS) // PARTITIONS + 1
        with server.client() as client:
            return len(client.scan(table, since=since, most=1))

    for number in range(KILLS):
        fill(kafka_bootstrap, table, total, expected)
        total += RECORDS
        made.recovered(kill_at_random(settings, kafka_bootstrap, begun, chance, LONGEST))
        if number % 4 == 0:
            with TaskProcess(settings, kafka_bootstrap) as task:
                server.thrift.kill()
                server.start()
                assert task.alive
        if number in splits:
            server.do("split", table, splits[number])
    with TaskProcess(settings, kafka_bootstrap, bounded=True) as task:
        task.finish()
    found = server.rows(table)
    made.seen = f"{total} records, {len(found)} rows"
    made.lost = sum(found.get(key) != cells for key, cells in expected.items())
    made.duplicated = len(set(found) - set(expected))
    assert found == expected


def fill(bootstrap: str, topic: str, first: int, expected: dict[bytes, dict[str, bytes]]) -> None:
    """Produce updates and deletions of rows, in which fields come and go, and fold them."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(first, first + RECORDS):
        key, time_ms = b"k%03d" % (number % KEYS), FIRST_TIME + number
        value: dict[str, str | None] | None = {"n": str(number), "odd": None if number // KEYS % 2 else "yes"}
        if number * 2_654_435_761 % 2**32 < 0.14 * 2**32:
            value = None
        producer.produce(topic, None if value is None else json.dumps(value), key, number % PARTITIONS, timestamp=time_ms)
        if value is None:
            expected.pop(key, None)
        else:
            expected[key] = {f"cf:{name}": each.encode() for name, each in value.items() if each is not None}
    assert producer.flush(LIMIT) == 0
