"""A sink task's consumer: group membership, batches of messages, pausing, seeking and committing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sluiceway.api import TopicPartition
from sluiceway.errors import ConnectError
from sluiceway.kafka import clients
from sluiceway.kafka.clients import Message
from sluiceway.kafka.errors import mapped_errors, to_connect_error

log = logging.getLogger(__name__)

# Errors that come among the messages and that waiting does not mend.
_HOPELESS = {
    "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "_AUTO_OFFSET_RESET",
    "INVALID_TOPIC_EXCEPTION", "FENCED_INSTANCE_ID", "_FATAL", "_INVALID_ARG",
}  # fmt: skip
_END = "_PARTITION_EOF"
_LIST_SECONDS = 30.0


class Rebalances(Protocol):
    """Told of partitions that come and go, during a call of ``poll`` or ``idle``."""

    def assigned(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Take partitions; returns offsets to read from where those that the group committed are not wanted."""

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Give partitions back; their offsets can still be committed."""

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Partitions are gone to another member already."""


class TaskConsumer:
    """For one thread, on an executor. Offsets are the next to read."""

    def __init__(self, config: Mapping[str, str], rebalances: Rebalances, batch_size: int) -> None:
        self._config = {**config, "on_commit": self._on_commit}
        self._cooperative = "cooperative" in config.get("partition.assignment.strategy", "")
        self._rebalances = rebalances
        self._batch_size = batch_size
        self._consumer = clients.consumer(self._config)
        self._held: frozenset[TopicPartition] = frozenset()  # by the task
        self._paused = False  # all of them, by an order
        self._failure: BaseException | None = None
        self._closing = False
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.committed: dict[TopicPartition, int] = {}
        self.at_end: set[TopicPartition] = set()
        self.joined = False
        self.rebalanced = False

    def topics(self) -> list[str]:
        """Return the names of all topics of the cluster."""
        with mapped_errors("list the topics"):
            return list(self._consumer.list_topics(timeout=_LIST_SECONDS).topics)

    def subscribe(self, topics: list[str]) -> None:
        """Join the group, or change what is read."""
        with mapped_errors(f"subscribe to {', '.join(topics)}"):
            self._consumer.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def end_offsets(self, topics: list[str]) -> dict[TopicPartition, int]:
        """Return the present ends of all partitions of these topics. Only before ``subscribe``: it is slow later."""
        ends: dict[TopicPartition, int] = {}
        with mapped_errors("list the end offsets"):
            known = self._consumer.list_topics(timeout=_LIST_SECONDS).topics
            for topic in topics:
                for number in known[topic].partitions if topic in known else ():
                    _, end = self._consumer.get_watermark_offsets(clients.TopicPartition(topic, number), timeout=_LIST_SECONDS)
                    ends[TopicPartition(topic, number)] = end
        return ends

    def poll(self, seconds: float) -> list[Message]:
        """Return what is there, waiting up to ``seconds`` for the first message. Raises ConnectError if it is hopeless."""
        self.rebalanced = False
        with mapped_errors("read from Kafka"):
            # consume() would wait for a full batch, so poll() does the waiting.
            messages = self._consumer.consume(self._batch_size, 0)
            if not messages and (first := self._consumer.poll(seconds)) is not None:
                messages = [first]
                if self._batch_size > 1:
                    messages += self._consumer.consume(self._batch_size - 1, 0)
        self._raise_failure()
        if any(map(Message.error, messages)):
            messages = self._without_errors(messages)
        if self.rebalanced:
            messages = [message for message in messages if _partition_of(message) in self.assignment]
        return messages

    def idle(self, seconds: float) -> None:
        """Keep the membership alive for a while with everything paused; what slips through is read again later."""
        slipped: dict[TopicPartition, int] = {}
        for message in self.poll(seconds):
            slipped.setdefault(_partition_of(message), message.offset())
        self.seek(slipped)

    def _without_errors(self, messages: list[Message]) -> list[Message]:
        good: list[Message] = []
        for message in messages:
            error = message.error()
            if error is None:
                good.append(message)
            elif error.name() == _END:
                self.at_end.add(_partition_of(message))
            elif error.fatal() or error.name() in _HOPELESS:
                raise to_connect_error(error, f"read from topic {message.topic()}")
            else:
                log.warning("Reading from Kafka: %s (%s)", error.str(), error.name())
        return good

    def pause(self) -> None:
        """Read nothing until ``resume``; the group membership stays as long as ``idle`` is called."""
        self._paused = True
        self._apply_pause(self.assignment)

    def resume(self) -> None:
        """Read on, except for partitions that the task holds."""
        self._paused = False
        self._consumer_resume(self.assignment - self._held)

    def hold(self, partitions: frozenset[TopicPartition]) -> None:
        """Pause some partitions on the task's behalf."""
        self._check_assigned(partitions)
        self._held |= partitions
        self._apply_pause(partitions)

    def release(self, partitions: frozenset[TopicPartition]) -> None:
        """Resume some partitions on the task's behalf."""
        self._check_assigned(partitions)
        self._held -= partitions
        if not self._paused:
            self._consumer_resume(partitions)

    def _check_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        if foreign := partitions - self.assignment:
            raise ConnectError(f"SinkTask may not pause or resume partitions not assigned to it: {sorted(foreign)}")

    def _apply_pause(self, partitions: frozenset[TopicPartition]) -> None:
        with mapped_errors("pause partitions"):
            self._consumer.pause(_kafka(partitions))

    def _consumer_resume(self, partitions: frozenset[TopicPartition]) -> None:
        with mapped_errors("resume partitions"):
            self._consumer.resume(_kafka(partitions))

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from these offsets; partitions that are not assigned are left out."""
        with mapped_errors("seek"):
            for partition, offset in offsets.items():
                if partition in self.assignment:
                    self._consumer.seek(clients.TopicPartition(*partition, offset))

    def commit(self, offsets: Mapping[TopicPartition, int], *, wait: bool) -> None:
        """Commit offsets for the group. A failure is logged; ``committed`` holds what Kafka has confirmed."""
        if not offsets:
            return
        positions = [clients.TopicPartition(*partition, offset) for partition, offset in offsets.items()]
        try:
            with mapped_errors("commit offsets"):
                done = self._consumer.commit(offsets=positions, asynchronous=not wait)
        except ConnectError as error:
            log.warning("%s They will be tried again with the next commit, if the task still has the partitions.", error)
            return
        if wait:
            self._on_commit(None, done)

    def _on_commit(self, error: Any, positions: list[Any]) -> None:
        for position in positions:
            partition, problem = TopicPartition(position.topic, position.partition), error or position.error
            if problem is not None:
                log.warning("Committing offset %d of %s-%d failed: %s", position.offset, *partition, problem)
            elif partition in self.committed:
                self.committed[partition] = position.offset

    def close(self) -> None:
        """Leave the group; nothing is committed and nobody is called back."""
        self._closing = True
        self._consumer.close()

    def _on_assign(self, _consumer: Any, positions: list[Any]) -> None:
        if self._closing:
            return
        partitions = _ours(positions)
        self.joined = self.rebalanced = True
        self.assignment = self.assignment | partitions if self._cooperative else partitions
        self.at_end -= partitions
        try:
            starts = self._rebalances.assigned(partitions)
            for position in positions:
                position.offset = starts.get(TopicPartition(position.topic, position.partition), position.offset)
            assign = self._consumer.incremental_assign if self._cooperative else self._consumer.assign
            assign(positions)
            if paused := partitions if self._paused else partitions & self._held:
                self._apply_pause(paused)
        except Exception as error:  # noqa: BLE001 (raised again by poll; librdkafka's thread of calls is no place for it)
            self._failure = error

    def _on_revoke(self, _consumer: Any, positions: list[Any]) -> None:
        self._give_up(_ours(positions), self._rebalances.revoked)

    def _on_lost(self, _consumer: Any, positions: list[Any]) -> None:
        self._give_up(_ours(positions), self._rebalances.lost)

    def _give_up(self, partitions: frozenset[TopicPartition], tell: Callable[[frozenset[TopicPartition]], None]) -> None:
        if self._closing:
            return
        self.rebalanced = True
        try:
            tell(partitions)
        except Exception as error:  # noqa: BLE001 (raised again by poll)
            self._failure = error
        self.assignment -= partitions
        self._held -= partitions
        self.at_end -= partitions
        for partition in partitions:
            self.committed.pop(partition, None)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


def _partition_of(message: Message) -> TopicPartition:
    return TopicPartition(message.topic(), message.partition())


def _ours(positions: list[Any]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(position.topic, position.partition) for position in positions)


def _kafka(partitions: frozenset[TopicPartition]) -> list[Any]:
    return [clients.TopicPartition(*partition) for partition in partitions]
