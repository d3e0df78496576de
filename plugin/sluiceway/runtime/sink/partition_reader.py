"""Reads the assigned partitions of a sink task's consumer: librdkafka does, or the Java task itself."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, cast

from sluiceway.api import TopicPartition
from sluiceway.java_plugins.sink_task import JavaSinkTask
from sluiceway.kafka.clients import ConsumedMessage, Consumer, Message, TopicPartitionOffset
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.runtime.sink.polled import partition_of
from sluiceway.runtime.sink.seeks import Seeks

log = logging.getLogger(__name__)

# Errors returned in place of messages that do not go away by waiting.
PERMANENT = {
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "_AUTO_OFFSET_RESET",
    "INVALID_TOPIC_EXCEPTION",
    "FENCED_INSTANCE_ID",
    "_FATAL",
    "_INVALID_ARG",
}
_END = "_PARTITION_EOF"
_JOIN_SECONDS = 0.1


class PartitionReader(Protocol):
    """Reads partitions. All methods run on the task's thread, but ``pause`` and ``resume`` may also come from another one."""

    def read(self, seconds: float, most: int) -> Sequence[ConsumedMessage]:
        """Return available messages, at most ``most``, waiting up to ``seconds`` for the first.

        Serves the consumer's callbacks. Raises ConnectError for an error that waiting does not solve.
        """

    def assign(self, positions: list[Any], *, incremental: bool) -> None:
        """Read these partitions, from their offsets or else from the group's, instead of others or, incrementally, as well."""

    def forget(self, partitions: frozenset[TopicPartition]) -> None:
        """Read these partitions no more."""

    def pause(self, partitions: frozenset[TopicPartition]) -> None:
        """Return no messages of these partitions; those that ``read`` returns all the same must be read again."""

    def resume(self, partitions: frozenset[TopicPartition]) -> None:
        """Undo ``pause``."""

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue at these offsets."""


class ConsumerReader:
    """Reads with the consumer that is the group's member. Adds the ends that it reaches to ``at_end``."""

    def __init__(self, consumer: Consumer, at_end: dict[TopicPartition, int]) -> None:
        self._consumer = consumer
        self._at_end = at_end
        self._seeks = Seeks(consumer)
        self._more = False  # there may be more messages already, because the last poll returned some

    def read(self, seconds: float, most: int) -> Sequence[ConsumedMessage]:
        with mapped_errors("read from Kafka"):
            # consume() would wait for a full batch, so poll() waits.
            messages = self._consumer.consume(most, 0) if self._more else []
            if not messages and (first := self._consumer.poll(seconds)) is not None:
                messages = [first]
                if most > 1:
                    messages += self._consumer.consume(most - 1, 0)
        self._more = bool(messages)
        return self._seeks.settled(without_errors(messages, self._at_end))

    def assign(self, positions: list[Any], *, incremental: bool) -> None:
        (self._consumer.incremental_assign if incremental else self._consumer.assign)(positions)

    def forget(self, partitions: frozenset[TopicPartition]) -> None:
        self._seeks.forget(partitions)

    def pause(self, partitions: frozenset[TopicPartition]) -> None:
        """Pause partitions that have given a message since they were assigned; others are paused with their first message.

        A partition that is paused while librdkafka starts to fetch it may never be fetched (issues 2190 and 5591).
        """
        fetched = self._seeks.fetched(partitions)
        with mapped_errors("pause partitions"):
            self._consumer.pause(_kafka(fetched))

    def resume(self, partitions: frozenset[TopicPartition]) -> None:
        with mapped_errors("resume partitions"):
            self._consumer.resume(_kafka(partitions))

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._seeks.seek(offsets)


class JavaReader:
    """Lets a Java task read. The consumer is the group's member only: its partitions stay paused."""

    def __init__(self, consumer: Consumer, task: JavaSinkTask) -> None:
        self._consumer = consumer
        self._task = task
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._changes: list[object] = []
        self._lock = threading.Lock()

    def read(self, seconds: float, most: int) -> Sequence[ConsumedMessage]:
        with mapped_errors("read from Kafka"):
            first = self._consumer.poll(0 if self._assigned else min(seconds, _JOIN_SECONDS))
        if first is not None:
            without_errors([first], {})
        if not self._assigned:
            return ()
        with self._lock:
            changes, self._changes = self._changes, []
        return self._task.read(changes, seconds, most)

    def assign(self, positions: list[Any], *, incremental: bool) -> None:
        self._assigned |= {TopicPartition(each.topic, each.partition) for each in positions}
        self._change("assign", [[each.topic, each.partition, each.offset if each.offset >= 0 else None] for each in positions])
        for each in positions:
            each.offset = 0  # any offset will do for what is never fetched, and this needs no request
        (self._consumer.incremental_assign if incremental else self._consumer.assign)(positions)
        if positions:
            self._consumer.pause(positions)

    def forget(self, partitions: frozenset[TopicPartition]) -> None:
        self._assigned -= partitions
        self._change("unassign", [[*each] for each in partitions])

    def pause(self, partitions: frozenset[TopicPartition]) -> None:
        self._change("pause", [[*each] for each in partitions])

    def resume(self, partitions: frozenset[TopicPartition]) -> None:
        self._change("resume", [[*each] for each in partitions])

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._change("seek", [[*partition, offset] for partition, offset in offsets.items()])

    def _change(self, kind: str, places: Collection[Sequence[object]]) -> None:
        """Tell Java with the next read: the task's thread there may be waiting for the caller."""
        if places:
            with self._lock:
                self._changes.append([kind, places])


def without_errors(messages: Sequence[Message], at_end: dict[TopicPartition, int]) -> list[ConsumedMessage]:
    """Return the messages that are none of the consumer's errors and ends of partitions. Raises ConnectError for an error.

    ``at_end`` gets the ends: the offset of the next record by partition.
    """
    consumed = cast("list[ConsumedMessage]", messages)
    if not any(map(Message.error, messages)):
        return consumed
    good: list[ConsumedMessage] = []
    for message in consumed:
        error = message.error()
        if error is None:
            good.append(message)
        elif error.name() == _END:
            at_end[partition_of(message)] = message.offset()
        elif error.fatal() or error.name() in PERMANENT:
            raise to_connect_error(error, f"read from topic {message.topic()}")
        else:
            log.warning("Reading from Kafka: %s (%s)", error.str(), error.name())
    return good


def _kafka(partitions: frozenset[TopicPartition]) -> list[Any]:
    return [TopicPartitionOffset(*partition) for partition in partitions]
