"""Seeks of a sink task's consumer, also of partitions that librdkafka does not fetch yet.

Between an assignment and the first fetch of a partition, librdkafka refuses a seek (``_STATE``), or takes it and then starts at
the committed offset all the same, before or after the first messages from the new one: a busy broker tells late where the
partition begins. Java's consumer has no such time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sluiceway.api import TopicPartition
from sluiceway.errors import KafkaClientError
from sluiceway.kafka.clients import ConsumedMessage, Consumer, TopicPartitionOffset
from sluiceway.kafka.errors import mapped_errors
from sluiceway.runtime.sink.polled import partition_of, starts_of

_REPEAT_SECONDS = 1.0
_WATCH_SECONDS = 60.0  # for which the answer to an earlier request may come; librdkafka's own limit of a request


@dataclass(slots=True)
class _EarlySeek:
    """A seek whose effect has not been seen. ``again`` is when to repeat it: 0 until it is taken; None if no more."""

    offset: int
    again: float | None = 0.0


@dataclass(slots=True)
class _Watched:
    """A partition after an early seek: the offset that follows its last message, until when it is watched."""

    next: int
    ends: float
    has_gap: bool = False
    """Whether offsets were missing once, so that the seek was repeated: the partition has gaps."""


class Seeks:
    """Seeks, and repeats what came too early. Not thread-safe."""

    def __init__(self, consumer: Consumer, clock: Callable[[], float] = time.monotonic) -> None:
        self._consumer = consumer
        self._clock = clock
        self._early: dict[TopicPartition, _EarlySeek] = {}
        self._watched: dict[TopicPartition, _Watched] = {}

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue at these offsets. Raises ConnectError."""
        fetched = self.fetched(offsets)
        self.forget(offsets)
        for partition, offset in offsets.items():
            if partition in fetched:
                self._seek(partition, offset)
            else:
                self._early[partition] = _EarlySeek(offset)
                self._try(partition)

    def fetched(self, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Return those of which a message has arrived since their assignment or the last seek."""
        if not partitions:
            return frozenset()
        with mapped_errors("look up positions"):
            positions = self._consumer.position([TopicPartitionOffset(*partition) for partition in partitions])
        return frozenset(TopicPartition(each.topic, each.partition) for each in positions if each.offset >= 0)

    def settled(self, messages: list[ConsumedMessage]) -> list[ConsumedMessage]:
        """Return a poll's messages without those that do not follow an early seek, which is repeated. Call for each poll."""
        if not (self._early or self._watched):
            return messages
        now = self._clock()
        for partition in starts_of(messages):
            if (seek := self._early.pop(partition, None)) is not None:
                self._watched[partition] = _Watched(seek.offset, now + _WATCH_SECONDS)
        for partition in self._early:
            self._try(partition)
        wrong: set[TopicPartition] = set()
        following = [message for message in messages if self._follows(message, wrong)]
        self._watched = {partition: each for partition, each in self._watched.items() if now < each.ends}
        return following

    def _follows(self, message: ConsumedMessage, wrong: set[TopicPartition]) -> bool:
        """Return whether a message is the next one of its partition, or follows a gap. If not, seek, and add the partition."""
        partition, offset = partition_of(message), message.offset()
        watched = None if partition in wrong else self._watched.get(partition)
        if watched is None:
            return partition not in wrong
        if offset == watched.next or (offset > watched.next and watched.has_gap):
            watched.next = offset + 1
            return True
        wrong.add(partition)
        self._seek(partition, watched.next)  # after a gap in the offsets the same messages come again
        if offset > watched.next:
            watched.has_gap = True
        else:
            del self._watched[partition]  # if it begins there once more, the offset does not exist any more
        return False

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the seeks of partitions that are no longer assigned."""
        for partition in partitions:
            self._early.pop(partition, None)
            self._watched.pop(partition, None)

    def _try(self, partition: TopicPartition) -> None:
        """Seek if that was refused before; once more a second after it was not, in case it was forgotten."""
        seek, now = self._early[partition], self._clock()
        if seek.again is None or now < seek.again:
            return
        try:
            self._seek(partition, seek.offset)
        except KafkaClientError as error:
            if error.code != "_STATE":
                raise
        else:
            seek.again = None if seek.again else now + _REPEAT_SECONDS

    def _seek(self, partition: TopicPartition, offset: int) -> None:
        with mapped_errors(f"seek to offset {offset} of {partition.topic}-{partition.partition}"):
            self._consumer.seek(TopicPartitionOffset(*partition, offset))
