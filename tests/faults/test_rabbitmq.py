"""RabbitMQ's queues and streams as sources, and as target, while the task's process and RabbitMQ are killed beside a publisher.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: between Kafka's acknowledgement and
RabbitMQ's, or before a confirm.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.connectors.rabbitmq import RabbitQueueSourceConnector, RabbitStreamSourceConnector
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.jdbc_sink import STATIC_MEMBER, TaskProcess, kill_at_random
from support.kafka import Kafka
from support.queues.publishers import RabbitPublisher
from support.queues.sources import numbers_in
from support.rabbitmq_server import RabbitServer
from support.source_process import SourceProcess, task_config

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
PREFETCH = 300
RECORDS = 1000  # for each kill of the sink
LONGEST = 1.0  # seconds from the first new record to the kill


@pytest.fixture
def server() -> Iterator[RabbitServer]:
    with closing(RabbitServer()) as started:
        started.start()
        yield started


@pytest.fixture
def new_topic(kafka_bootstrap: str, unique: Callable[[str], str]) -> Callable[[], str]:
    def create() -> str:
        name = unique("rabbit-fault")
        admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT)
        return name

    return create


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_killed_many_times_each_message_is_in_the_topic(
    kafka_bootstrap: str,
    server: RabbitServer,
    new_topic: Callable[[], str],
    unique: Callable[[str], str],
    row: NewRow,
    chance: random.Random,
    kind: str,
) -> None:
    topic, once, kafka = new_topic(), kind == "stream", Kafka(kafka_bootstrap)
    connector = RabbitStreamSourceConnector if once else RabbitQueueSourceConnector
    promised = "0 lost, 0 duplicated" if once else f"0 lost, at most {PREFETCH} duplicated for each kill"
    made = row(f"2: source of a {kind}, {KILLS} kills -9 of the task, every fourth time RabbitMQ ends, too", promised)
    worker = {**exactly_once_worker(kafka_bootstrap, unique), "offset.flush.interval.ms": "200"}
    if not once:
        worker["exactly.once.source.support"] = "disabled"
    config = task_config(
        connector,
        {
            "name": topic,
            "connector.class": "RabbitStreamSource" if once else "RabbitQueueSource",
            **server.config,
            "rabbitmq.queue": topic,
            "rabbitmq.prefetch.count": str(PREFETCH),
            "rabbitmq.network.recovery.interval.ms": "1000",
            "key.converter": "StringConverter",
            "value.converter": "ByteArrayConverter",
        },
    )
    server.declare(topic, kind)
    with RabbitPublisher(server, topic) as publisher:
        for number in range(KILLS):
            started, before = time.monotonic(), kafka.count(topic)
            with SourceProcess(config, worker) as task:
                eventually(lambda: kafka.count(topic) > before or not task.alive, what="new records")  # noqa: B023
                assert task.alive
                made.recovered(time.monotonic() - started)
                time.sleep(chance.uniform(0, LONGEST))  # where to kill
                if number % 4 == 0:
                    # After a kill, RabbitMQ 3.10 may find a new stream or quorum queue no more, whoever asks.
                    is_new = once or (kind == "quorum" and number == 0)
                    server.end(signal.SIGTERM if is_new else signal.SIGKILL)
                    time.sleep(chance.uniform(0, LONGEST))  # for which it is away
                    server.start()
                    assert task.alive
    with SourceProcess(config, worker) as task:

        def complete() -> bool:
            assert task.alive
            return publisher.known <= set(numbers_in(kafka_bootstrap, topic))

        eventually(complete, what="the last message")
    found = numbers_in(kafka_bootstrap, topic)
    made.seen = f"{found.total()} records of {len(publisher.known)} confirmed messages"
    made.lost, made.duplicated = len(publisher.known - set(found)), found.total() - len(found)
    assert publisher.known <= set(found) <= set(range(publisher.number))
    assert made.duplicated <= (0 if once else PREFETCH * KILLS)


@pytest.mark.timeout(3600)
def test_killed_many_times_each_record_is_in_the_queue(
    kafka_bootstrap: str, server: RabbitServer, new_topic: Callable[[], str], row: NewRow, chance: random.Random
) -> None:
    topic, window = new_topic(), 100
    made = row(f"2: RabbitSink, {KILLS} kills -9 of the task, every fourth of RabbitMQ too", "0 lost")
    settings = {
        "name": f"sink-{topic}",
        "connector.class": "RabbitSink",
        "topics": topic,
        **server.config,
        "rabbitmq.publish.max.batch.size": str(window),
        "rabbitmq.network.recovery.interval.ms": "1000",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        **STATIC_MEMBER,
    }
    server.declare(topic)
    total = 0
    for number in range(KILLS):
        producer = Producer({"bootstrap.servers": kafka_bootstrap, "linger.ms": 20})
        for each in range(total, total + RECORDS):
            producer.produce(topic, str(each))
        assert producer.flush(LIMIT) == 0
        total += RECORDS
        made.recovered(kill_at_random(settings, kafka_bootstrap, lambda: server.count(topic), chance, LONGEST))
        if number % 4 == 0:
            with TaskProcess(settings, kafka_bootstrap) as task:
                server.end(signal.SIGKILL)
                server.start()
                assert task.alive
    with TaskProcess(settings, kafka_bootstrap, bounded=True) as task:
        task.finish()
    found = Counter(int(body) for _properties, body in server.take(topic))
    made.seen = f"{total} records, {found.total()} messages"
    made.lost, made.duplicated = len(set(range(total)) - set(found)), found.total() - len(found)
    assert set(found) == set(range(total))
