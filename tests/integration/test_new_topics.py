"""Records for partitions that their leader is still creating: it names them in metadata before it takes records."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.clients import consumer, consumer_config, producer, producer_config
from support.eventually import LIMIT
from support.kafka import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.long]

_PARTITIONS = 60  # their leader takes a while to create them
_LAST = _PARTITIONS - 1
_TOPICS = 48  # with several requests in flight, one of about 20 lost its first records
_AT_ONCE = 6
_RECORDS = [b"%d" % number for number in range(8)]


def test_the_first_records_of_a_new_topic_are_all_there_and_in_order(kafka: Kafka, unique: Callable[[str], str]) -> None:
    worker = WorkerConfig.of({"bootstrap.servers": kafka.bootstrap, "producer.linger.ms": "0"})

    def is_known(topic: str) -> bool:
        found = kafka.admin.list_topics(timeout=LIMIT).topics
        return topic in found and len(found[topic].partitions) == _PARTITIONS

    def send(topic: str) -> None:
        client = producer(producer_config(worker, topic))
        kafka.admin.create_topics([NewTopic(topic, _PARTITIONS, 1)])
        while not is_known(topic):  # with a pause between, the leader would be ready
            pass
        for record in _RECORDS:
            client.produce(topic, record, partition=_LAST)
            client.poll(0.002)  # until the request is sent
        assert client.flush(LIMIT) == 0

    def read(topic: str) -> list[bytes | None]:
        reader.assign([TopicPartition(topic, _LAST, 0)])
        end = time.monotonic() + LIMIT
        _, count = reader.get_watermark_offsets(TopicPartition(topic, _LAST), timeout=LIMIT)
        found: list[bytes | None] = []
        while len(found) < count and time.monotonic() < end:
            found += [message.value() for message in reader.consume(count, 1.0)]
        return found

    topics = [unique("new") for _ in range(_TOPICS)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(send, topics))
    reader = consumer(consumer_config(worker, "reader", unique("group")))
    try:
        assert {topic: found for topic in topics if (found := read(topic)) != _RECORDS} == {}
    finally:
        reader.close()
