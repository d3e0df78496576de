"""Redis' streams as source and target, while the task's process and Redis are killed beside a writer.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: between two reads, between Kafka's
acknowledgement and Redis'. Redis writes each command to its disk.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from redis import Redis

from sluiceway.api import SourceConnector
from sluiceway.connectors.redis import RedisGroupSourceConnector, RedisStreamSourceConnector
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.jdbc_sink import STATIC_MEMBER, TaskProcess, kill_at_random
from support.kafka import Kafka
from support.queues.publishers import RedisPublisher
from support.queues.sources import RedisStreamSource, numbers_in
from support.redis_server import RedisServer
from support.source_process import SourceProcess, task_config

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
HELD = 300
PARTITIONS = 2
RECORDS = 2000  # for each kill of the sink
LONGEST = 1.0  # seconds from the first new record to the kill
KINDS: dict[str, type[SourceConnector]] = {
    "RedisStreamSource": RedisStreamSourceConnector,
    "RedisGroupSource": RedisGroupSourceConnector,
}


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with closing(RedisServer(durable=True)) as started:
        started.start()
        yield started


@pytest.fixture
def new_topic(kafka_bootstrap: str, unique: Callable[[str], str]) -> Callable[[int], str]:
    def create(partitions: int) -> str:
        name = unique("redis-fault")
        admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(LIMIT)
        return name

    return create


def entries(client: Redis, stream: str) -> list[int]:
    found: Any = client.xrange(stream)
    return [int(fields[b"n"]) for _id, fields in found]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_killed_many_times_each_entry_is_in_the_topic(
    kafka_bootstrap: str,
    server: RedisServer,
    new_topic: Callable[[int], str],
    unique: Callable[[str], str],
    row: NewRow,
    chance: random.Random,
    kind: str,
) -> None:
    topic, once, kafka = new_topic(1), kind == "RedisStreamSource", Kafka(kafka_bootstrap)
    promised = "0 lost, 0 duplicated" if once else f"0 lost, at most {HELD} duplicated for each kill"
    made = row(f"2: {kind}, {KILLS} kills -9 of the task, every fourth of Redis too", promised)
    worker = {**exactly_once_worker(kafka_bootstrap, unique), "offset.flush.interval.ms": "200"}
    if not once:
        worker["exactly.once.source.support"] = "disabled"
    config = task_config(
        KINDS[kind],
        {
            "name": topic,
            "connector.class": kind,
            "redis.uri": server.url,
            "redis.stream.name": topic,
            "batch.size": "50",  # many reads, so that kills fall everywhere
            "value.converter": "JsonConverter",
            "value.converter.schemas.enable": "false",
            **({} if once else {"redis.stream.held": str(HELD)}),
        },
    )
    with RedisPublisher(server.url, topic) as publisher:
        for number in range(KILLS):
            started, before = time.monotonic(), kafka.end(topic)
            with SourceProcess(config, worker) as task:
                eventually(lambda: kafka.end(topic) > before or not task.alive, what="new records")  # noqa: B023
                assert task.alive
                made.recovered(time.monotonic() - started)
                time.sleep(chance.uniform(0, LONGEST))  # where to kill
                if number % 4 == 0:
                    server.end(signal.SIGKILL)
                    server.start()
                    assert task.alive

    def found() -> Counter[int]:
        return numbers_in(kafka_bootstrap, topic, RedisStreamSource.number_of)

    with SourceProcess(config, worker) as task:

        def complete() -> bool:
            assert task.alive
            return publisher.known <= set(found())

        eventually(complete, what="the last entry")
    with closing(Redis.from_url(server.url)) as client:
        numbers, given = found(), entries(client, topic)
    made.seen = f"{numbers.total()} records of {len(given)} entries"
    made.lost, made.duplicated = len(set(given) - set(numbers)), numbers.total() - len(numbers)
    assert set(numbers) == set(given)
    assert made.duplicated <= (0 if once else HELD * KILLS)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("also_redis", [False, True], ids=["task", "task and Redis"])
def test_killed_many_times_streams_with_ids_of_offsets_equal_the_topic(
    kafka_bootstrap: str,
    server: RedisServer,
    new_topic: Callable[[int], str],
    row: NewRow,
    chance: random.Random,
    also_redis: bool,
) -> None:
    topic, what = new_topic(PARTITIONS), "the task and Redis" if also_redis else "the task"
    made = row(f"2: RedisSink to streams, ids of offsets, kill -9 of {what}, {KILLS} times", "0 lost, 0 duplicated")
    settings = {
        "name": f"sink-{topic}",
        "connector.class": "RedisSink",
        "topics": topic,
        "redis.uri": server.url,
        "redis.key": "${topic}-${partition}",
        "redis.stream.ids": "offset",
        "batch.size": "50",  # many requests, so that kills fall everywhere
        "key.converter": "StringConverter",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        **STATIC_MEMBER,
    }
    streams = [f"{topic}-{partition}" for partition in range(PARTITIONS)]

    def written() -> int:
        with closing(Redis.from_url(server.url)) as client:
            return sum(int(str(client.xlen(stream))) for stream in streams)

    total = 0
    for number in range(KILLS):
        fill(kafka_bootstrap, topic, total)
        total += RECORDS
        made.recovered(kill_at_random(settings, kafka_bootstrap, written, chance, LONGEST))
        if also_redis and number % 4 == 0:
            with TaskProcess(settings, kafka_bootstrap) as task:
                server.end(signal.SIGKILL)
                server.start()
                assert task.alive
    with TaskProcess(settings, kafka_bootstrap, bounded=True) as task:
        task.finish()
    with closing(Redis.from_url(server.url)) as client:
        found = [entries(client, stream) for stream in streams]
    made.seen = f"{total} records, {sum(map(len, found))} entries"
    made.lost = total - len({number for each in found for number in each})
    made.duplicated = sum(len(each) - len(set(each)) for each in found)
    assert found == [list(range(partition, total, PARTITIONS)) for partition in range(PARTITIONS)]


def fill(bootstrap: str, topic: str, first: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(first, first + RECORDS):
        producer.produce(topic, json.dumps({"n": number}), partition=number % PARTITIONS)
    assert producer.flush(LIMIT) == 0
