"""Reads and changes a broker's topics and consumer groups, independently of the code under test."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, OffsetSpec, ResourceType

from sluiceway.stack.process import BackgroundProcess
from support.eventually import LIMIT, eventually

_REQUEST_SECONDS = 30.0
_READ_SECONDS = 60.0

Bytes = bytes | str | None


class StoredRecord(NamedTuple):
    """A record in a topic; ``timestamp`` is in milliseconds since the epoch, -1 for none."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int

    @property
    def content(self) -> tuple[object, ...]:
        """All parts except partition and offset."""
        return self.key, self.value, self.headers, self.timestamp

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key == name]
        return found[-1].decode() if found and found[-1] is not None else None


def _stored(message: Message) -> StoredRecord:
    """Convert a consumed message without an error."""
    kind, timestamp = message.timestamp()
    headers: Any = message.headers() or ()  # a consumed message's headers are a list, never a dictionary
    return StoredRecord(
        message.partition() or 0, message.offset() or 0, message.key(), message.value(), tuple(headers), timestamp if kind else -1
    )


class Cluster:
    """A client of one broker. Every method blocks until the broker has completed the request."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._admin = AdminClient({"bootstrap.servers": address})

    def create(self, topic: str, partitions: int = 1, **settings: str) -> str:
        """Create a topic and return its name; settings have underscores for dots."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        self._admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(_REQUEST_SECONDS)
        return topic

    def delete(self, topic: str) -> None:
        """Delete a topic and wait until metadata does not list it."""
        self._admin.delete_topics([topic])[topic].result(_REQUEST_SECONDS)
        eventually(lambda: topic not in self.topics(), what=f"{topic} gone")

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=_REQUEST_SECONDS).topics)

    def set(self, topic: str, **settings: str) -> None:
        """Change settings of a topic; their names have underscores for dots."""
        entries = [
            ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result(_REQUEST_SECONDS)

    def truncate(self, topic: str, offset: int, partition: int = 0) -> None:
        """Delete the records before an offset, as retention does."""
        until = TopicPartition(topic, partition, offset)
        self._admin.delete_records([until])[until].result(_REQUEST_SECONDS)

    def send(self, topic: str, records: Iterable[tuple[Bytes, Bytes]], partition: int | None = None) -> None:
        """Produce keys and values to a partition; by default, keys are partitioned like Java clients do."""
        producer = Producer({"bootstrap.servers": self._address, "partitioner": "murmur2_random", "enable.idempotence": True})
        for key, value in records:
            while True:
                try:
                    producer.produce(topic, value, key, -1 if partition is None else partition)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(_REQUEST_SECONDS) == 0, f"{topic} did not take all records"

    def messages(self, topic: str) -> list[StoredRecord]:
        """Return a topic's committed records up to its current end offsets, in the order of partition and offset."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": uuid.uuid4().hex,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        found: list[StoredRecord] = []
        deadline = time.monotonic() + _READ_SECONDS
        try:
            unread = set(consumer.list_topics(topic, _REQUEST_SECONDS).topics[topic].partitions)
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in unread])
            while unread:
                for message in consumer.consume(5000, 0.2):
                    error = message.error()
                    if error is None:
                        found.append(_stored(message))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        unread.discard(message.partition())
                assert time.monotonic() < deadline, f"{topic} was not read to its end within {_READ_SECONDS:g} s"
        finally:
            consumer.close()
        return sorted(found, key=lambda told: (told.partition, told.offset))

    def end(self, topic: str) -> int:
        """Return the end offset of a topic with one partition."""
        partition = TopicPartition(topic, 0)
        return int(self._admin.list_offsets({partition: OffsetSpec.latest()})[partition].result(_REQUEST_SECONDS).offset)

    def grown(self, topic: str, records: int, driver: BackgroundProcess, within: float = LIMIT) -> None:
        """Wait until a topic with one partition has ``records`` more records; fail if ``driver`` ends."""
        before = self.end(topic)

        def longer() -> bool:
            assert driver.is_running(), f"{driver.name} has ended\n{driver.log_tail(30)}"
            time.sleep(0.2)  # a tight loop would take CPU time from the processes under test
            return self.end(topic) >= before + records

        eventually(longer, within=within, what=f"{records} more records of {driver.log}")

    def committed(self, connector: str, topic: str) -> int:
        """Return a sink's committed offset in a topic with one partition, 0 if none."""
        asked = ConsumerGroupTopicPartitions(f"connect-{connector}")
        found = next(iter(self._admin.list_consumer_group_offsets([asked]).values())).result(_REQUEST_SECONDS)
        return max([0, *(each.offset for each in found.topic_partitions or () if each.topic == topic)])

    def commit(self, connector: str, topic: str, offset: int) -> None:
        """Commit an offset for a sink in a topic with one partition, while the sink does not run."""
        asked = ConsumerGroupTopicPartitions(f"connect-{connector}", [TopicPartition(topic, 0, offset)])
        next(iter(self._admin.alter_consumer_group_offsets([asked]).values())).result(_REQUEST_SECONDS)

    def compact(self, topic: str, done: Callable[[Sequence[StoredRecord]], bool], within: float = LIMIT) -> list[StoredRecord]:
        """Compact a topic until ``done`` returns True for its records, and return them.

        Appends filler records, because only closed segments are compacted.
        """
        self.set(
            topic, segment_ms="100", min_cleanable_dirty_ratio="0.001", delete_retention_ms="0", max_compaction_lag_ms="1000"
        )
        partitions = range(len(self._admin.list_topics(topic, _REQUEST_SECONDS).topics[topic].partitions))

        def compacted() -> list[StoredRecord]:
            for partition in partitions:
                self.send(topic, [(f"filler-{partition}", None)], partition)
            time.sleep(1)  # time for the log cleaner
            left = self.messages(topic)
            return left if done(left) else []

        return eventually(compacted, within=within, what=f"the compaction of {topic}")
