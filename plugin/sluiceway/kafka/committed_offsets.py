"""Reads the committed offsets of consumer groups.

A consumer asks for them. The same request of an admin client can end the whole process, or never be answered, when a broker dies
while it is under way (librdkafka's issue 4605, open in 2.16.1).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as TopicPartitionOffset

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.clients import consumer, group_reader_config
from sluiceway.kafka.errors import mapped_errors

_SECONDS = 30.0
_SLICE_SECONDS = 2.0


class CommittedOffsets:
    """Reads offsets of any group of one cluster, which it joins none of. Runs in any process. Thread-safe.

    ``overrides`` are a connector's ``admin.override.*`` settings without the prefix.
    """

    def __init__(self, worker: WorkerConfig, overrides: Mapping[str, str] | None = None) -> None:
        self._worker = worker
        self._overrides = dict(overrides or {})

    def read(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, str]]:
        """Return those of partitions with their metadata, without partitions that have none. Raises KafkaClientError."""
        if not partitions:
            return {}
        config = group_reader_config(self._worker, group, self._overrides)
        with (
            mapped_errors(f"read the offsets of consumer group '{group}'"),
            contextlib.closing(consumer(config)) as reader,
        ):
            found = _committed(reader, [TopicPartitionOffset(*each) for each in partitions])
        return {
            TopicPartition(each.topic, each.partition): (each.offset, each.metadata or "")
            for each in found
            if each.offset >= 0 and each.error is None
        }


def _committed(reader: Consumer, asked: list[TopicPartitionOffset]) -> list[TopicPartitionOffset]:
    """Wait for the answer. That the group may not be described is an event beside it, which the request would wait for."""
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            return reader.committed(asked, timeout=_SLICE_SECONDS)
        except KafkaException:
            event = reader.poll(0)
            error = None if event is None else event.error()
            if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                raise KafkaException(error) from None
            if time.monotonic() >= deadline:
                raise
