"""A client of the test broker, apart from the code under test."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.config.worker import WorkerConfig
from support.eventually import LIMIT, eventually


class Kafka:
    """A client of the test broker: creates topics, writes and reads records, reads offsets."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def worker(self, **more: str) -> dict[str, str]:
        strings = {"key.converter": "StringConverter", "value.converter": "StringConverter"}
        return {"bootstrap.servers": self.bootstrap, **strings, **{key.replace("_", "."): text for key, text in more.items()}}

    def create(self, topic: str, partitions: int = 1, **settings: str) -> str:
        """Create a topic; ``settings`` are its own, with underscores for dots."""
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(LIMIT)
        eventually(lambda: len(self.admin.list_topics(topic, timeout=10).topics[topic].partitions) == partitions)
        return topic

    def produce(self, topic: str, *values: str | bytes | None, partition: int = 0, **more: Any) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for value in values:
            producer.produce(topic, value, partition=partition, **more)
        assert producer.flush(30) == 0

    def read(self, topic: str, count: int) -> list[Any]:
        """Return the first ``count`` messages of a topic, and fail if there are more."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": uuid.uuid4().hex,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": False,
            }
        )
        try:
            partitions = list(self.admin.list_topics(topic, timeout=10).topics[topic].partitions)
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            messages: list[Any] = []
            eventually(lambda: messages.extend(consumer.consume(10000, 0.2)) or len(messages) >= count, what=f"{count} records")
            assert len(messages) == count
            return messages
        finally:
            consumer.close()

    def read_committed(self, topic: str) -> list[Any]:
        """Return all messages of a topic that are not of aborted transactions."""
        own = {"group.id": uuid.uuid4().hex, "isolation.level": "read_committed", "enable.partition.eof": True}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "auto.offset.reset": "earliest", **own})
        try:
            partitions = list(self.admin.list_topics(topic, timeout=10).topics[topic].partitions)
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            messages: list[Any] = []
            ended: set[int | None] = set()

            def at_end() -> bool:
                for message in consumer.consume(10000, 0.2):
                    if message.error() is None:
                        messages.append(message)
                    else:
                        ended.add(message.partition())
                return len(ended) == len(partitions)

            eventually(at_end, what=f"the end of {topic}")
            return messages
        finally:
            consumer.close()

    def values(self, topic: str, count: int) -> list[str]:
        return [message.value().decode() for message in self.read(topic, count)]

    def end(self, topic: str, partition: int = 0) -> int:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "unused"})
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[1]
        finally:
            consumer.close()

    def count(self, topic: str) -> int:
        """Return the end of a topic with one partition, or -1 while a busy broker does not answer."""
        try:
            return self.end(topic)
        except KafkaException:
            return -1

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        (future,) = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        return {(place.topic, place.partition): place.offset for place in future.result(LIMIT).topic_partitions}

    def set_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Set the offsets of a group without members."""
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        (future,) = self.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)]).values()
        future.result(LIMIT)


def worker_for(bootstrap: str, unique: Callable[[str], str], **properties: str) -> WorkerConfig:
    """Return a worker's config with a group and internal topics of its own."""
    base = {"bootstrap.servers": bootstrap, "group.id": unique("group"), "offset.storage.partitions": "5"}
    for kind in ("config", "offset", "status"):
        base |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    return WorkerConfig.of({**base, **properties})
