"""Tests of the probe and of dead letter queue topics on a real cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from sluiceway.api import TopicPartition as Place
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.dead_letter_topic import DeadLetterTopic
from sluiceway.provider.progress.connector_progress import measure
from sluiceway.provider.progress.probe import KafkaProbe
from sluiceway.provider.progress.probe_request import ProbeRequest
from support.dashboard import WORKER
from support.eventually import eventually

pytestmark = pytest.mark.kafka


@pytest.fixture
def worker(kafka_bootstrap: str) -> WorkerConfig:
    return WorkerConfig.of({**WORKER, "bootstrap.servers": kafka_bootstrap})


def _write(bootstrap: str, topic: str, values: list[str], headers: list[tuple[str, str | bytes | None]] | None = None) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, headers=headers)
    assert producer.flush(30) == 0


def _commit(bootstrap: str, group: str, partition: TopicPartition) -> None:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group})

    def committed() -> bool:
        try:
            reader.commit(offsets=[partition], asynchronous=False)
        except KafkaException:  # a broker that has only just started may still load its coordinator
            return False
        return True

    eventually(committed, what="the commit")
    reader.close()


def test_a_snapshot_has_lags_ends_and_dead_letter_queue_records(
    worker: WorkerConfig, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic, dead, group = unique("topic"), unique("dead"), unique("group")
    _write(kafka_bootstrap, topic, ["a"] * 10)
    _write(kafka_bootstrap, dead, ["b"] * 3)
    _commit(kafka_bootstrap, group, TopicPartition(topic, 0, 4))
    sink = ProbeRequest("sink", group, (topic, unique("missing")), dead)
    never = ProbeRequest("never", unique("group"), (topic,))
    source = ProbeRequest("source", None, (topic,), unique("missing"))
    snapshot = KafkaProbe(worker).snapshot([sink, never, source])
    assert (measure(sink, snapshot).lag, measure(sink, snapshot).dead_letters) == (6, 3)
    assert measure(never, snapshot).lag == 10
    assert (measure(source, snapshot).positions, measure(source, snapshot).dead_letters) == ({Place(topic, 0): 10}, 0)


def test_the_newest_dead_letter_queue_records_of_the_connector_come_first(
    worker: WorkerConfig, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    dead = unique("dead")
    for number in range(6):
        name = "mine" if number % 2 else "other"
        _write(kafka_bootstrap, dead, [str(number)], [("__connect.errors.connector.name", name)])
    letters = DeadLetterTopic(worker, dead, "mine")
    assert [letter.value for letter in letters.newest(4)] == [b"5", b"3"]
    assert [letter.value for letter in letters.newest(100)] == [b"5", b"3", b"1"]
