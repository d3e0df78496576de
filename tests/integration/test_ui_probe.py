"""What the connectors' page asks of a real cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from sluiceway.api import TopicPartition as Place
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.dead_letter_topic import DeadLetterTopic
from sluiceway.provider.progress.measures import measure
from sluiceway.provider.progress.probe import KafkaProbe
from sluiceway.provider.progress.subjects import Subject
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


def _commit(bootstrap: str, group: str, place: TopicPartition) -> None:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group})

    def committed() -> bool:
        try:
            reader.commit(offsets=[place], asynchronous=False)
        except KafkaException:  # a broker that has only just started may still load its coordinator
            return False
        return True

    eventually(committed, what="the commit")
    reader.close()


def test_one_look_tells_lags_ends_and_dead_letters(
    worker: WorkerConfig, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic, dead, group = unique("topic"), unique("dead"), unique("group")
    _write(kafka_bootstrap, topic, ["a"] * 10)
    _write(kafka_bootstrap, dead, ["b"] * 3)
    _commit(kafka_bootstrap, group, TopicPartition(topic, 0, 4))
    sink = Subject("sink", group, (topic, unique("missing")), dead)
    never = Subject("never", unique("group"), (topic,))
    source = Subject("source", None, (topic,), unique("missing"))
    reading = KafkaProbe(worker).read([sink, never, source])
    assert (measure(sink, reading).lag, measure(sink, reading).dead_letters) == (6, 3)
    assert measure(never, reading).lag == 10
    assert (measure(source, reading).positions, measure(source, reading).dead_letters) == ({Place(topic, 0): 10}, 0)


def test_the_newest_dead_letters_come_first_and_are_the_connectors_own(
    worker: WorkerConfig, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    dead = unique("dead")
    for number in range(6):
        name = "mine" if number % 2 else "other"
        _write(kafka_bootstrap, dead, [str(number)], [("__connect.errors.connector.name", name)])
    letters = DeadLetterTopic(worker, dead, "mine")
    assert [letter.value for letter in letters.newest(4)] == [b"5", b"3"]
    assert [letter.value for letter in letters.newest(100)] == [b"5", b"3", b"1"]
