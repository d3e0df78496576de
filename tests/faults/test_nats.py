"""NATS JetStream as source and as target, while the task's process is killed, and every fourth time NATS, too.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: between two reads, between Kafka's
acknowledgement and JetStream's, or before a stream's.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from sluiceway.connectors.nats import NatsConsumerSourceConnector, NatsStreamSourceConnector
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.jdbc_sink import STATIC_MEMBER, TaskProcess, kill_at_random
from support.kafka import Kafka
from support.nats_server import NatsServer
from support.queues.publishers import NatsPublisher
from support.queues.sources import numbers_in
from support.source_process import SourceProcess, task_config

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
HELD = 200
RECORDS = 1000  # for each kill of the sink
LONGEST = 1.0  # seconds from the first new record to the kill
WINDOW = 3600  # seconds in which the stream drops repeats
_ACK_WAIT = "3000"


@pytest.fixture
def server() -> Iterator[NatsServer]:
    with NatsServer() as started:
        yield started


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["stream", "consumer"])
def test_killed_many_times_each_message_is_in_the_topic(
    kafka_bootstrap: str, server: NatsServer, unique: Callable[[str], str], row: NewRow, chance: random.Random, kind: str
) -> None:
    kafka, once = Kafka(kafka_bootstrap), kind == "stream"
    topic = kafka.create(unique("nats-fault"))
    promised = "0 lost, 0 duplicated" if once else f"0 lost, at most {HELD} duplicated for each kill"
    made = row(f"2: source of a {kind} of NATS, {KILLS} kills -9 of the task, every fourth time of NATS, too", promised)
    worker = {**exactly_once_worker(kafka_bootstrap, unique), "offset.flush.interval.ms": "200"}
    own = {"connector.class": "NatsStreamSource", "nats.streams": topic, "batch.size": "50"}
    if not once:
        worker["exactly.once.source.support"] = "disabled"
        own = {"connector.class": "NatsConsumerSource", "nats.stream": topic, "nats.consumer": "c", "nats.held": str(HELD)}
        own["nats.consumer.ack.wait.ms"] = _ACK_WAIT
    config = task_config(
        NatsStreamSourceConnector if once else NatsConsumerSourceConnector,
        {
            "name": topic,
            **server.config,
            **own,
            "nats.reconnect.max.ms": "1000",
            "key.converter": "StringConverter",
            "value.converter": "ByteArrayConverter",
        },
    )
    server.create(topic)
    with NatsPublisher(server, topic) as publisher:
        for number in range(KILLS):
            started, before = time.monotonic(), kafka.count(topic)
            with SourceProcess(config, worker) as task:
                eventually(lambda: kafka.count(topic) > before or not task.alive, what="new records")  # noqa: B023
                assert task.alive
                made.recovered(time.monotonic() - started)
                time.sleep(chance.uniform(0, LONGEST))  # where to kill
                if number % 4 == 0:
                    # A server that is killed forgets acknowledgements that it has shown, of seconds on a busy machine.
                    server.end(signal.SIGKILL if once else signal.SIGTERM)
                    time.sleep(chance.uniform(0, LONGEST))  # for which it is away
                    server.start()
                    assert task.alive
    with SourceProcess(config, worker) as task:

        def complete() -> bool:
            assert task.alive
            return publisher.known <= set(numbers_in(kafka_bootstrap, topic))

        eventually(complete, what="the last message")
    found = numbers_in(kafka_bootstrap, topic)
    made.seen = f"{found.total()} records of {len(publisher.known)} acknowledged messages"
    made.lost, made.duplicated = len(publisher.known - set(found)), found.total() - len(found)
    assert publisher.known <= set(found) <= set(range(publisher.number))
    assert made.duplicated <= (0 if once else HELD * (KILLS + KILLS // 4 + 1))


@pytest.mark.timeout(3600)
def test_killed_many_times_each_record_is_in_the_stream_once(
    kafka_bootstrap: str, server: NatsServer, unique: Callable[[str], str], row: NewRow, chance: random.Random
) -> None:
    topic = Kafka(kafka_bootstrap).create(unique("nats-fault"))
    made = row(f"2: NatsSink, {KILLS} kills -9 of the task, every fourth of NATS too", "0 lost, 0 duplicated")
    settings = {
        "name": f"sink-{topic}",
        "connector.class": "NatsSink",
        "topics": topic,
        **server.config,
        "nats.publish.window": "100",
        "nats.reconnect.max.ms": "1000",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        **STATIC_MEMBER,
    }
    server.create(topic, duplicate_window=WINDOW * 1_000_000_000)
    total = 0
    for number in range(KILLS):
        producer = Producer({"bootstrap.servers": kafka_bootstrap, "linger.ms": 20})
        for each in range(total, total + RECORDS):
            producer.produce(topic, str(each), partition=0)
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
    found = [int(message.data) for message in server.take(topic)]
    made.seen = f"{total} records, {len(found)} messages"
    made.lost, made.duplicated = len(set(range(total)) - set(found)), len(found) - len(set(found))
    assert found == list(range(total)), "in their order"
