"""Handles the messages of a poll, which are in Python or, for a Java task that reads them itself, only in its process. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sluiceway.api import TopicPartition
from sluiceway.java_plugins.fetched import FetchedMessages
from sluiceway.kafka.clients import ConsumedMessage


def partition_of(message: ConsumedMessage) -> TopicPartition:
    return TopicPartition(message.topic(), message.partition())


def starts_of(*batches: Sequence[ConsumedMessage]) -> dict[TopicPartition, int]:
    """Return the first offset of each partition in successive messages."""
    starts: dict[TopicPartition, int] = {}
    for messages in batches:
        if isinstance(messages, FetchedMessages):
            starts = {**messages.starts, **starts}
            continue
        for message in messages:
            starts.setdefault(partition_of(message), message.offset())
    return starts


def without(messages: Sequence[ConsumedMessage], partitions: Collection[TopicPartition]) -> Sequence[ConsumedMessage]:
    """Return the messages without those of these partitions; the same object if there are none."""
    if not partitions:
        return messages
    if isinstance(messages, FetchedMessages):
        return messages.without(partitions)
    left = [message for message in messages if partition_of(message) not in partitions]
    return messages if len(left) == len(messages) else left


def times_of(messages: Sequence[ConsumedMessage]) -> tuple[int | None, int | None]:
    """Return the timestamps of the first and last message in milliseconds, as far as they have one. There must be a message."""
    if isinstance(messages, FetchedMessages):
        return messages.times
    return _timestamp(messages[0]), _timestamp(messages[-1])


def _timestamp(message: ConsumedMessage) -> int | None:
    kind, milliseconds = message.timestamp()
    return milliseconds if kind else None
