"""A sink task's consumer: group membership, batches of messages, pausing, seeking and committing."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sluiceway.api import TopicPartition
from sluiceway.config.connector import overrides
from sluiceway.config.consumer_group import sink_group
from sluiceway.errors import ConnectError
from sluiceway.kafka import clients
from sluiceway.kafka.clients import Message, consumer_config
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.runtime.sink.bounded import within
from sluiceway.runtime.sink.position_check import Positions
from sluiceway.runtime.task import TaskSpec

log = logging.getLogger(__name__)

# Errors that come among the messages and that waiting does not mend.
_HOPELESS = {
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
_BATCH_SIZE = 500  # Java's max.poll.records; larger ones are no faster
_SESSION_MS = 10_000
_LIST_SECONDS = 30.0
_OFFSETS_SECONDS = 10.0


class Rebalances(Protocol):
    """Told of partitions that come and go, during a call of ``poll`` or ``idle``."""

    def assigned(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Take partitions; returns offsets to read from where those that the group committed are not wanted."""

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Give partitions back; their offsets can still be committed."""

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Partitions are gone to another member already."""


def sink_consumer(spec: TaskSpec) -> tuple[dict[str, str], int]:
    """Return the settings of a sink task's consumer, and how many records it may be given at once."""
    own = overrides(spec.config, "consumer")
    most = int(own.get("max.poll.records") or spec.worker.raw.get("consumer.max.poll.records") or _BATCH_SIZE)
    # Java's consumer creates a missing topic, too; a partition's end is only told where it ends the task.
    defaults = {"allow.auto.create.topics": "true", "enable.partition.eof": str(spec.bounded).lower()}
    group = sink_group(spec.worker, spec.id.connector, spec.config)
    settings = consumer_config(spec.worker, f"connector-consumer-{spec.id}", group, {**defaults, **own})
    if settings.get("group.protocol", "").strip().lower() != "consumer":  # there the brokers say how long
        settings.setdefault("session.timeout.ms", str(_session_ms(settings)))
    if settings["auto.offset.reset"] == "none":
        settings["auto.offset.reset"] = "error"  # librdkafka's word for it
    return settings, most


def _session_ms(settings: Mapping[str, str]) -> int:
    """Return how long the group waits for a task that was killed, in milliseconds: 10 s, where the clients' default is 45.

    Heartbeats come from a thread of librdkafka's, so neither a slow ``put`` nor Python can hold them up. Membership is not
    static, which would be quicker still: librdkafka's static members never leave, so each stop and scale-down would wait.
    """
    beat = int(settings.get("heartbeat.interval.ms", "3000"))
    return min(max(_SESSION_MS, 3 * beat), int(settings.get("max.poll.interval.ms", "300000")))


def starts_of(messages: Sequence[Message]) -> dict[TopicPartition, int]:
    """Return the first offset of each partition."""
    starts: dict[TopicPartition, int] = {}
    for message in messages:
        starts.setdefault(_partition_of(message), message.offset())
    return starts


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
        self._giving_up = False
        self.positions = Positions(self._begin)
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
                    _, end = self._consumer.get_watermark_offsets(
                        clients.TopicPartitionOffset(topic, number), timeout=_LIST_SECONDS
                    )
                    ends[TopicPartition(topic, number)] = end
        return ends

    def poll(self, seconds: float, most: int | None = None) -> list[Message]:
        """Return what is there, at most so many messages, waiting up to ``seconds`` for the first.

        Raises ConnectError if it is hopeless.
        """
        self.rebalanced = False
        batch_size = self._batch_size if most is None else most
        with mapped_errors("read from Kafka"):
            # consume() would wait for a full batch, so poll() does the waiting.
            messages = self._consumer.consume(batch_size, 0)
            if not messages and (first := self._consumer.poll(seconds)) is not None:
                messages = [first]
                if batch_size > 1:
                    messages += self._consumer.consume(batch_size - 1, 0)
        self._raise_failure()
        if any(map(Message.error, messages)):
            messages = self._without_errors(messages)
        if self.rebalanced:
            messages = [message for message in messages if _partition_of(message) in self.assignment]
        return messages

    def idle(self, seconds: float) -> None:
        """Keep the membership alive for a while with everything paused; what slips through is read again later."""
        self.seek(starts_of(self.poll(seconds)))

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
        offsets = {partition: offset for partition, offset in offsets.items() if partition in self.assignment}
        with mapped_errors("seek"):
            for partition, offset in offsets.items():
                self._consumer.seek(clients.TopicPartitionOffset(*partition, offset))
        self.positions.expect(offsets)

    def commit(self, offsets: Mapping[TopicPartition, int], *, wait: float | None = None) -> None:
        """Commit offsets for the group, waiting up to ``wait`` seconds for the answer, or not at all if None.

        A failure is logged; ``committed`` holds what Kafka has confirmed. While partitions are being given up it waits for as
        long as Kafka does: librdkafka answers only the thread that it has called back.
        """
        if not offsets:
            return
        positions = [clients.TopicPartitionOffset(*partition, offset) for partition, offset in offsets.items()]
        commit = functools.partial(self._consumer.commit, offsets=positions, asynchronous=wait is None)
        try:
            with mapped_errors("commit offsets"):
                done = commit() if wait is None or self._giving_up else within(wait, commit, "The commit of offsets")
        except (ConnectError, TimeoutError) as error:
            log.warning("%s They will be tried again with the next commit, if the task still has the partitions.", error)
            return
        if wait is not None:
            self._on_commit(None, done)

    def _on_commit(self, error: Any, positions: list[Any]) -> None:
        for position in positions:
            partition, problem = TopicPartition(position.topic, position.partition), error or position.error
            if problem is not None:
                log.warning("Committing offset %d of %s-%d failed: %s", position.offset, *partition, problem)
            elif partition in self.committed:
                self.committed[partition] = position.offset

    def close(self, seconds: float) -> None:
        """Leave the group; nothing is committed and nobody is called back. Raises TimeoutError after ``seconds``."""
        self._closing = True
        within(seconds, self._consumer.close, "Leaving the consumer group")

    def _on_assign(self, _consumer: Any, positions: list[Any]) -> None:
        if self._closing:
            return
        partitions = _ours(positions)
        self.joined = self.rebalanced = True
        self.assignment = self.assignment | partitions if self._cooperative else partitions
        self.at_end -= partitions
        try:
            starts = self._rebalances.assigned(partitions)
            self.positions.expect({**self._group_offsets(positions), **starts})
            for position in positions:
                position.offset = starts.get(TopicPartition(position.topic, position.partition), position.offset)
            assign = self._consumer.incremental_assign if self._cooperative else self._consumer.assign
            assign(positions)
            if paused := partitions if self._paused else partitions & self._held:
                self._apply_pause(paused)
        except (Exception, Interrupted, Abandoned) as error:  # noqa: BLE001 (poll raises it; librdkafka's callbacks must not)
            self._failure = error

    def _on_revoke(self, _consumer: Any, positions: list[Any]) -> None:
        self._give_up(_ours(positions), self._rebalances.revoked)

    def _on_lost(self, _consumer: Any, positions: list[Any]) -> None:
        self._give_up(_ours(positions), self._rebalances.lost)

    def _give_up(self, partitions: frozenset[TopicPartition], tell: Callable[[frozenset[TopicPartition]], None]) -> None:
        if self._closing:
            return
        self.rebalanced = True
        self._giving_up = True
        try:
            tell(partitions)
        except (Exception, Interrupted, Abandoned) as error:  # noqa: BLE001 (raised again by poll)
            self._failure = error
        finally:
            self._giving_up = False
        self.assignment -= partitions
        self._held -= partitions
        self.at_end -= partitions
        self.positions.forget(partitions)
        for partition in partitions:
            self.committed.pop(partition, None)

    def _group_offsets(self, positions: list[Any]) -> dict[TopicPartition, int]:
        """Return what the group has committed. Only to tell of jumps: without an answer, none can be told of."""
        try:
            with mapped_errors("read the group's offsets"):
                known = self._consumer.committed(list(positions), timeout=_OFFSETS_SECONDS) if positions else []
        except ConnectError as error:
            log.info("Cannot tell whether reading goes on where it stopped: %s", error)
            return {}
        return {TopicPartition(each.topic, each.partition): each.offset for each in known if each.offset >= 0 and not each.error}

    def _begin(self, partition: TopicPartition) -> int | None:
        """Return where a partition begins now, or None if that cannot be told."""
        try:
            with mapped_errors("read where a partition begins"):
                low, _ = self._consumer.get_watermark_offsets(clients.TopicPartitionOffset(*partition), timeout=_OFFSETS_SECONDS)
        except ConnectError as error:
            log.info("%s", error)
            return None
        return int(low)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


def _partition_of(message: Message) -> TopicPartition:
    return TopicPartition(message.topic(), message.partition())


def _ours(positions: list[Any]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(position.topic, position.partition) for position in positions)


def _kafka(partitions: frozenset[TopicPartition]) -> list[Any]:
    return [clients.TopicPartitionOffset(*partition) for partition in partitions]
