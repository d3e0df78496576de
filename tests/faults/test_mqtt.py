"""MQTT's topics as source, while the task's process is killed beside a publisher.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: between two reads, between Kafka's
acknowledgement and MQTT's. A broker that restarts is in ``tests/integration/test_mqtt.py``: Mosquitto 2.0.11, restarted, keeps
no messages for a session before its client is there again.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from sluiceway.connectors.mqtt import MqttSourceConnector
from support.database import HOST
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.kafka import Kafka
from support.mqtt_server import MqttServer
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


class Publisher:
    """A thread that publishes rising numbers. ``known`` counts those that the broker has for certain: all below it."""

    def __init__(self, server: MqttServer, topic: str) -> None:
        self._topic = topic
        self._stopping = threading.Event()
        self.known = 0
        self._client = client = Client(CallbackAPIVersion.VERSION2, "publisher", protocol=MQTTProtocolVersion.MQTTv5)
        client.connect(HOST, server.port)
        client.loop_start()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stopping.wait(0.05):
            batch = [self._client.publish(self._topic, b"%d" % number, 1) for number in range(self.known, self.known + 20)]
            for each in batch:
                while not each.is_published() and not self._stopping.is_set():
                    each.wait_for_publish(0.1)  # the client publishes it again once the broker is there
            if all(each.is_published() for each in batch):
                self.known += len(batch)

    def __enter__(self) -> Publisher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)
        self._client.disconnect()
        self._client.loop_stop()


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
        eventually(lambda: _has_session(server, topic) or not task.alive, what="the session")
        assert task.alive
    with Publisher(server, topic) as publisher:
        for _ in range(KILLS):
            started, before = time.monotonic(), kafka.end(topic)
            with SourceProcess(config, worker) as task:
                eventually(lambda: kafka.end(topic) > before or not task.alive, what="new records")  # noqa: B023
                assert task.alive
                made.recovered(time.monotonic() - started)
                time.sleep(chance.uniform(0, LONGEST))  # where to kill

    def found() -> Counter[int]:
        return Counter(int(message.value() or b"") for message in kafka.read_committed(topic))

    with SourceProcess(config, worker) as task:

        def complete() -> bool:
            assert task.alive
            return set(range(publisher.known)) <= set(found())

        eventually(complete, what="the last message")
    numbers = found()
    made.seen = f"{numbers.total()} records of {publisher.known} messages"
    made.lost, made.duplicated = len(set(range(publisher.known)) - set(numbers)), numbers.total() - len(numbers)
    assert made.lost == 0
    assert made.duplicated <= HELD * (KILLS + 1)


def _has_session(server: MqttServer, topic: str) -> bool:
    log = (server.folder / "mqtt.log").read_text()
    return f"New client connected from {HOST}" in log and f"sluiceway-{topic}-0" in log
