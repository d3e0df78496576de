"""The JDBC sink while its process is killed and its database is unavailable; the table's rows are checked.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: between two statements of a
transaction, between the database's commit and Kafka's.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.api import SinkRecord
from support.database import DatabaseForTest
from support.eventually import LIMIT, eventually
from support.faults.durations import fault_seconds
from support.faults.proxy import TcpProxy
from support.faults.rows import NewRow, Row
from support.jdbc_sink import JSON, STATIC_MEMBER, UPSERT, TaskProcess, fill, kill_at_random, person, tombstone

pytestmark = pytest.mark.kafka

KILLS = 20
RECORDS = 1500  # for each kill
PARTITIONS = 2
LONGEST = 0.25  # seconds from the first transaction to the kill
GROWTH = 48 << 20  # bytes: far less than the waiting records, far more than allocators retain
INSERT = {"insert.mode": "insert", "pk.mode": "none", "auto.create": "true"}


@pytest.fixture
def topic(kafka_bootstrap: str, unique: Callable[[str], str]) -> str:
    name = unique("jdbc-fault")
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(LIMIT)
    return name


def config(database: DatabaseForTest, topic: str, mode: dict[str, str]) -> dict[str, str]:
    return {
        "name": f"sink-{topic}",
        "connector.class": "JdbcSink",
        "topics": topic,
        "table.name.format": "people",
        # Many small transactions, so that kills fall everywhere in them.
        "consumer.override.max.poll.records": "20",
        **JSON,
        **STATIC_MEMBER,
        **database.config,
        **mode,
    }


def changes(topic: str, chance: random.Random, first: int) -> Iterator[SinkRecord]:
    """Yield upserts and deletions of a few keys; the name column identifies the record."""
    for number in range(first, first + RECORDS):
        key = chance.randrange(300)
        to = {"topic": topic, "partition": key % PARTITIONS}
        yield tombstone(0, key, **to) if chance.random() < 0.2 else person(0, key, f"n{number}", **to)


def final(records: list[SinkRecord]) -> dict[int, str]:
    """Return the rows that a topic's records add up to."""
    table: dict[int, str] = {}
    for each in records:
        if each.value is None:
            table.pop(each.key["id"], None)
        else:
            table[each.key["id"]] = each.value["name"]
    return table


def progress(database: DatabaseForTest) -> int:
    """Return the number of records whose offset is stored."""
    try:
        return int(database.execute("select coalesce(sum(next_offset), 0) from sluiceway_offsets")[0][0])
    except Exception:  # noqa: BLE001 (the table is not there yet)
        return 0


def judge(row: Row, count: int, different: int, sent: int) -> None:
    row.seen, row.lost, row.duplicated = f"{count} records", sent - different, count - different


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "sqlite"])
def test_killed_twenty_times_each_record_is_inserted_once(
    request: pytest.FixtureRequest, kafka_bootstrap: str, topic: str, kind: str, row: NewRow, chance: random.Random
) -> None:
    made = row(f"2: JDBC sink into {kind} without a key, kill -9 of the task, {KILLS} times", "0 lost, 0 duplicated")
    database: DatabaseForTest = request.getfixturevalue(kind)
    settings = config(database, topic, INSERT)
    sent = 0
    for _ in range(KILLS):
        fill(kafka_bootstrap, [person(0, n, f"n{n}", topic=topic, partition=n % PARTITIONS) for n in range(sent, sent + RECORDS)])
        sent += RECORDS
        made.recovered(kill_at_random(settings, kafka_bootstrap, lambda: progress(database), chance, LONGEST))
    behind = sent - progress(database)
    with TaskProcess(settings, kafka_bootstrap, bounded=True) as task:
        task.finish()
    found = [number for (number,) in database.execute("select id from people order by id")]
    judge(made, len(found), len(set(found)), sent)
    made.seen += f"; {behind} behind at the last kill"
    assert found == list(range(sent))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_killed_twenty_times_the_table_matches_the_topic(
    request: pytest.FixtureRequest, kafka_bootstrap: str, topic: str, kind: str, row: NewRow, chance: random.Random
) -> None:
    made = row(f"2: JDBC sink into {kind}, upserts and deletes, kill -9 of the task, {KILLS} times", "the table equals the topic")
    database: DatabaseForTest = request.getfixturevalue(kind)
    settings = config(database, topic, UPSERT)
    records: list[SinkRecord] = []
    for _ in range(KILLS):
        some = list(changes(topic, chance, len(records)))
        fill(kafka_bootstrap, some)
        records += some
        made.recovered(kill_at_random(settings, kafka_bootstrap, lambda: progress(database), chance, LONGEST))
    with TaskProcess(settings, kafka_bootstrap, bounded=True) as task:
        task.finish()
    expected, found = final(records), dict(database.execute("select id, name from people"))
    made.seen = f"{len(records)} records, {len(expected)} rows, {len(set(expected.items()) ^ set(found.items()))} differ"
    assert found == expected


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_the_sink_waits_for_an_unavailable_database(
    request: pytest.FixtureRequest, kafka_bootstrap: str, topic: str, kind: str, row: NewRow
) -> None:
    seconds = fault_seconds(20, full=300)
    made = row(f"19: {kind} of a JDBC sink down for {seconds:g} s", "0 lost, 0 duplicated, no growth, RUNNING by itself")
    database: DatabaseForTest = request.getfixturevalue(kind)
    with TcpProxy(database.port) as proxy:
        url = database.jdbc_url.replace(f":{database.port}/", f":{proxy.port}/")
        settings = {
            **config(database, topic, INSERT),
            "connection.url": url,
            "consumer.override.max.poll.records": "500",
            "retry.backoff.ms": "1000",
        }
        fill(kafka_bootstrap, [person(0, n, "x" * 1000, topic=topic) for n in range(5000)])
        with TaskProcess(settings, kafka_bootstrap) as task:
            eventually(lambda: progress(database) == 5000, what="5000 records")
            before = task.resident
            proxy.drop()
            fill(kafka_bootstrap, [person(0, n, "x" * 1000, topic=topic) for n in range(5000, 105_000)])
            time.sleep(seconds)  # how long the fault lasts
            assert task.alive
            grown = task.resident - before
            assert progress(database) == 5000
            proxy.restore()
            ended = time.monotonic()
            eventually(lambda: progress(database) == 105_000, what="the rest")
            made.recovered(time.monotonic() - ended)
            most = task.resident - before
    [(count, different)] = database.execute("select count(*), count(distinct id) from people")
    judge(made, count, different, 105_000)
    made.seen += f"; grown by {grown / 2**20:.0f} MiB while away, {most / 2**20:.0f} MiB at the end"
    assert (count, different) == (105_000, 105_000)
    assert grown < GROWTH + (64 << 20)  # the consumer's own buffer fills meanwhile: queued.max.messages.kbytes
