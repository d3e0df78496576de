"""MQTT's topics as source, while the task's process is killed beside a publisher.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: between two reads, between Kafka's
acknowledgement and MQTT's. A broker that restarts is in ``tests/integration/test_mqtt.py``: Mosquitto 2.0.11, restarted, keeps
no messages for a session before its client is there again.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from sluiceway.connectors.mqtt import MqttSourceConnector
from support.eventually import eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.kafka import Kafka
from support.mqtt_server import MqttServer
from support.queues.publishers import MqttPublisher
from support.queues.sources import numbers_in
from support.source_process import SourceProcess, task_config

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
HELD = 100
LONGEST = 1.0  # seconds from the first new record to the kill


@pytest.fixture
def server() -> Iterator[MqttServer]:
    with closing(MqttServer()) as started:
        started.start()
        yield started


@pytest.mark.timeout(3600)
def test_killed_many_times_each_message_is_in_the_topic(
    kafka_bootstrap: str, server: MqttServer, unique: Callable[[str], str], row: NewRow, chance: random.Random
) -> None:
    kafka = Kafka(kafka_bootstrap)
    topic = kafka.create(unique("mqtt-fault"))
    made = row(
        f"2: MqttSource, {KILLS} kills -9 of the task",
        f"0 lost, at most {HELD} duplicated for each kill",
    )
    config = task_config(
        MqttSourceConnector,
        {
            "name": topic,
            "connector.class": "MqttSource",
            "mqtt.server.uri": server.url,
            "mqtt.topics": topic,
            "kafka.topic": topic,
            "mqtt.held": str(HELD),
            "key.converter": "StringConverter",
            "value.converter": "ByteArrayConverter",
        },
    )
    own = {"exactly.once.source.support": "disabled", "offset.flush.interval.ms": "200"}
    worker = {**exactly_once_worker(kafka.bootstrap, unique), **own}
    with SourceProcess(config, worker) as task:  # the session begins before the first message
        eventually(lambda: server.has_subscriber(f"sluiceway-{topic}-0") or not task.alive, what="the session")
        assert task.alive
    with MqttPublisher(server, topic) as publisher:
        for _ in range(KILLS):
            started, before = time.monotonic(), kafka.end(topic)
            with SourceProcess(config, worker) as task:
                eventually(lambda: kafka.end(topic) > before or not task.alive, what="new records")  # noqa: B023
                assert task.alive
                made.recovered(time.monotonic() - started)
                time.sleep(chance.uniform(0, LONGEST))  # where to kill

    def found() -> Counter[int]:
        return numbers_in(kafka_bootstrap, topic)

    with SourceProcess(config, worker) as task:

        def complete() -> bool:
            assert task.alive
            return publisher.known <= set(found())

        eventually(complete, what="the last message")
    numbers = found()
    made.seen = f"{numbers.total()} records of {len(publisher.known)} messages"
    made.lost, made.duplicated = len(publisher.known - set(numbers)), numbers.total() - len(numbers)
    assert made.lost == 0
    assert made.duplicated <= HELD * (KILLS + 1)
