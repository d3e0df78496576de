"""Reads some records of topics without a consumer group: nothing is committed, and no topic or group is created."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from typing import cast

from confluent_kafka import KafkaError

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.admin import beginning_offsets, end_offsets, offsets_at, partition_counts
from sluiceway.kafka.clients import ConsumedMessage, TopicPartitionOffset, admin_client, consumer
from sluiceway.kafka.errors import mapped_errors, to_connect_error

_POLL_SECONDS = 0.5
_SETTINGS = {
    "group.id": "sluiceway-preview",  # required by librdkafka, but never joined
    "allow.auto.create.topics": "false",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "queued.min.messages": "100",
    "queued.max.messages.kbytes": "4096",
}
_OF_GROUPS = ("group.instance.id", "group.protocol", "group.remote.assignor", "session.timeout.ms", "heartbeat.interval.ms")


class TopicSample:
    """Reads records of topics, each partition up to its end at the time of construction.

    ``settings`` are librdkafka's, as for a consumer of the records; those of groups have no effect. ``missing`` are the
    topics that do not exist.
    """

    def __init__(self, worker: WorkerConfig, settings: Mapping[str, str], admin_overrides: Mapping[str, str]) -> None:
        self._settings = {key: value for key, value in settings.items() if key not in _OF_GROUPS} | _SETTINGS
        self._admin = admin_client(worker, admin_overrides)
        self._counts = partition_counts(self._admin)
        self.missing: list[str] = []

    def topics(self) -> list[str]:
        """Return the names of all topics in the cluster."""
        return list(self._counts)

    def sizes(self) -> list[tuple[str, int, int]]:
        """Return each topic's name, number of partitions, and number of offsets from their beginnings to their ends."""
        partitions = self._partitions(self._counts)
        begins, ends = beginning_offsets(self._admin, partitions), end_offsets(self._admin, partitions)
        sizes = dict.fromkeys(sorted(self._counts), 0)
        for each in partitions:
            sizes[each.topic] += max(0, ends[each] - begins[each])
        return [(name, self._counts[name], size) for name, size in sizes.items()]

    def starts(self, topic: str, start: str | int | datetime) -> dict[TopicPartition, int]:
        """Return the offsets of a start: an offset or a time; empty for the beginning. After the last record is the end."""
        partitions = self._partitions([topic])
        if isinstance(start, int):
            return dict.fromkeys(partitions, start)
        if isinstance(start, str):
            return {}
        found, ends = offsets_at(self._admin, partitions, int(start.timestamp() * 1000)), end_offsets(self._admin, partitions)
        return {each: found[each] if found[each] >= 0 else ends[each] for each in partitions}

    def read(
        self, topics: Collection[str], offsets: Mapping[TopicPartition, int], most: int, deadline: float
    ) -> Iterator[ConsumedMessage]:
        """Yield up to ``most`` records, until ``deadline`` (monotonic seconds).

        A partition is read from its offset in ``offsets``, or from its beginning. Raises ConnectError.
        """
        partitions = self._partitions(topics)
        if not partitions:
            return
        begins, ends = beginning_offsets(self._admin, partitions), end_offsets(self._admin, partitions)
        starts = {each: min(max(begins[each], offsets.get(each, begins[each])), ends[each]) for each in partitions}
        unread = {each for each in partitions if starts[each] < ends[each]}
        if unread:
            yield from self._messages({each: starts[each] for each in sorted(unread)}, ends, most, deadline)

    def newest(self, topics: Collection[str], each: int, deadline: float) -> Iterator[ConsumedMessage]:
        """Yield up to ``each`` of the newest records of each partition, until ``deadline``. Otherwise as ``read``."""
        partitions = self._partitions(topics)
        if not partitions:
            return
        begins, ends = beginning_offsets(self._admin, partitions), end_offsets(self._admin, partitions)
        starts = {partition: max(begins[partition], ends[partition] - each) for partition in partitions}
        unread = {partition: starts[partition] for partition in sorted(partitions) if starts[partition] < ends[partition]}
        if unread:
            yield from self._messages(unread, ends, each * len(unread), deadline)

    def _partitions(self, topics: Collection[str]) -> list[TopicPartition]:
        self.missing = [topic for topic in topics if topic not in self._counts]
        return [TopicPartition(topic, number) for topic in topics for number in range(self._counts.get(topic, 0))]

    def _messages(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], most: int, deadline: float
    ) -> Iterator[ConsumedMessage]:
        unread = set(starts)
        with closing(consumer(self._settings)) as reader, mapped_errors("read the topics"):
            reader.assign([TopicPartitionOffset(*each, offset) for each, offset in starts.items()])
            while unread and most and (left := deadline - time.monotonic()) > 0:
                message = reader.poll(min(left, _POLL_SECONDS))
                if message is None:
                    continue
                found = cast("ConsumedMessage", message)
                partition, error = TopicPartition(found.topic(), found.partition()), found.error()
                if error is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise to_connect_error(error, f"read topic {partition.topic}")
                    unread.discard(partition)
                elif partition in unread and found.offset() < ends[partition]:
                    most -= 1
                    yield found
                if error is None and found.offset() + 1 >= ends[partition]:
                    unread.discard(partition)
