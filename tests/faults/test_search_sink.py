"""The search sink while its process and the node are killed; the index's documents are checked.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: between two requests,
between a request and Kafka's commit.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from support.eventually import LIMIT
from support.faults.rows import NewRow
from support.jdbc_sink import STATIC_MEMBER, TaskProcess, kill_at_random
from support.kafka import Kafka
from support.search import SearchServer

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
RECORDS = int(os.environ.get("RECORDS", "1500"))  # for each kill
PARTITIONS = 2
KEYS = 300
LONGEST = 0.5  # seconds from the first document to the kill
DLQ = "errors.deadletterqueue.topic.name"

Change = tuple[str, dict[str, object] | None, int]


@pytest.fixture(scope="module")
def server() -> Iterator[SearchServer]:
    with SearchServer() as started:
        yield started


@pytest.fixture
def topic(kafka_bootstrap: str, unique: Callable[[str], str]) -> str:
    name = unique("search-fault")
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(LIMIT)
    return name


def config(server: SearchServer, topic: str, dlq: str) -> dict[str, str]:
    return {
        "name": f"sink-{topic}",
        "connector.class": "ElasticsearchSink",
        "topics": topic,
        "connection.url": server.url,
        "read.timeout.ms": str(int(LIMIT * 1000)),
        "behavior.on.null.values": "delete",
        "batch.size": "20",  # many small requests, so that kills fall everywhere
        "key.converter": "StringConverter",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        DLQ: dlq,
        "errors.deadletterqueue.context.headers.enable": "true",
        "errors.deadletterqueue.topic.replication.factor": "1",
        **STATIC_MEMBER,
    }


def changes(chance: random.Random, first: int) -> Iterator[Change]:
    """Yield documents, deletions, and one document of a hundred that the server refuses, with their partitions."""
    for number in range(first, first + RECORDS):
        key, kind = chance.randrange(KEYS), chance.random()
        value = None if kind < 0.14 else {"n": "no number" if kind < 0.15 else number}
        yield f"k{key}", value, key % PARTITIONS


def fill(bootstrap: str, topic: str, some: list[Change]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for key, value, partition in some:
        producer.produce(topic, None if value is None else json.dumps(value), key, partition)
    assert producer.flush(LIMIT) == 0


def final(records: list[Change]) -> dict[str, dict[str, object]]:
    """Return the documents that a topic's records add up to, without the refused ones."""
    found: dict[str, dict[str, object]] = {}
    for key, value, _partition in records:
        if value is None:
            found.pop(key, None)
        elif isinstance(value["n"], int):
            found[key] = value
    return found


def refused(records: list[Change]) -> set[tuple[str, str]]:
    """Return the partitions and offsets of the documents that the server refuses."""
    ends, found = [0] * PARTITIONS, set()
    for _key, value, partition in records:
        if value is not None and not isinstance(value["n"], int):
            found.add((str(partition), str(ends[partition])))
        ends[partition] += 1
    return found


def reported(kafka: Kafka, dlq: str) -> set[tuple[str, str]]:
    """Return the partitions and offsets of the records in the dead letter queue."""
    headers = [dict(each.headers()) for each in kafka.read(dlq, kafka.count(dlq))]
    return {(each["__connect.errors.partition"].decode(), each["__connect.errors.offset"].decode()) for each in headers}


def writes(server: SearchServer) -> int:
    """Return how many documents the server has written or deleted."""
    total = server.call("GET", "/_stats/indexing")["_all"]["primaries"]["indexing"]
    return int(total.get("index_total", 0) + total.get("delete_total", 0))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("also_the_node", [False, True], ids=["task", "task and node"])
def test_killed_twenty_times_the_index_matches_the_topic(
    kafka_bootstrap: str, server: SearchServer, topic: str, row: NewRow, chance: random.Random, also_the_node: bool
) -> None:
    what = "the task and OpenSearch" if also_the_node else "the task"
    made = row(f"2: Elasticsearch sink, kill -9 of {what}, {KILLS} times", "the index equals the topic, bad documents in the DLQ")
    settings = config(server, topic, f"{topic}-dlq")
    server.call("PUT", f"/{topic}", {"mappings": {"properties": {"n": {"type": "long"}}}})
    records: list[Change] = []
    for number in range(KILLS):
        some = list(changes(chance, len(records)))
        fill(kafka_bootstrap, topic, some)
        records += some
        made.recovered(kill_at_random(settings, kafka_bootstrap, lambda: writes(server), chance, LONGEST))
        if also_the_node and number % 4 == 0:
            with TaskProcess(settings, kafka_bootstrap) as task:
                server.kill()
                server.start()
                assert task.alive
    with TaskProcess(settings, kafka_bootstrap, bounded=True) as task:
        task.finish()
    expected, found, dead = final(records), server.documents(topic), reported(Kafka(kafka_bootstrap), settings[DLQ])
    made.seen = f"{len(records)} records, {len(expected)} documents, {len(dead)} bad ones"
    assert found == expected
    assert dead == refused(records)
