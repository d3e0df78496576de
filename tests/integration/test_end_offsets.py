"""The end offsets of a sink task's topic partitions, asked for from a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer

from sluiceway.api import TopicPartition
from sluiceway.runtime.sink.task_consumer import EndOffsets
from support.kafka import Kafka

pytestmark = pytest.mark.kafka


@contextmanager
def consumer(bootstrap: str) -> Iterator[Consumer]:
    made = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 0})
    try:
        yield made
    finally:
        made.close()


def test_ends_are_reported_once_in_a_while(kafka: Kafka, unique: Callable[[str], str]) -> None:
    topic = kafka.create(unique("ends"), partitions=3)
    for partition, count in ((0, 4), (1, 2)):
        kafka.produce(topic, *["x"] * count, partition=partition)
    wanted = [TopicPartition(topic, number) for number in range(3)]
    seen: list[Mapping[TopicPartition, int]] = []
    with consumer(kafka.bootstrap) as client:
        ends = EndOffsets(client, seen.append)
        ends.refresh([])
        ends.refresh(wanted)
        ends.refresh(wanted)
        EndOffsets(client, None).refresh(wanted)
    assert seen == [dict(zip(wanted, (4, 2, 0), strict=True))]


def test_brokers_that_cannot_be_reached_are_no_error() -> None:
    seen: list[Mapping[TopicPartition, int]] = []
    with consumer("127.0.0.1:9") as client:
        EndOffsets(client, seen.append).refresh([TopicPartition("t", 0)])
    assert seen == []
