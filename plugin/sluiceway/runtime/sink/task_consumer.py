"""Wraps a sink task's consumer: group membership, polling, pausing, seeking and committing."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from sluiceway.api import TopicPartition
from sluiceway.errors import ConnectError
from sluiceway.java_plugins.sink_task import JavaSinkTask
from sluiceway.kafka import clients
from sluiceway.kafka.clients import OFFSET_END, ConsumedMessage, Consumer, TopicPartitionOffset
from sluiceway.kafka.errors import mapped_errors
from sluiceway.kafka.group_metadata import ConsumerGroup, consumer_group
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.runtime.sink.interval_filter import IntervalFilter
from sluiceway.runtime.sink.partition_reader import ConsumerReader, JavaReader, PartitionReader
from sluiceway.runtime.sink.polled import starts_of, without
from sluiceway.runtime.sink.position_check import PositionCheck

log = logging.getLogger(__name__)

_LIST_SECONDS = 30.0
_OFFSETS_SECONDS = 10.0

T = TypeVar("T")
_INTERVAL_SECONDS = 10.0
_TIMEOUT_SECONDS = 1.0

Report = Callable[[Mapping[TopicPartition, int]], None]


class RebalanceListener(Protocol):
    """Receives assignment changes, during a call of ``poll`` or ``idle``."""

    def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Handle new partitions. Return offsets to read from instead of the group's committed offsets."""

    def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Handle partitions that are about to be revoked. Their offsets can still be committed."""

    def on_partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Handle partitions that already belong to another member."""


class TaskConsumer:
    """A sink task's consumer. Runs on an executor. Not thread-safe. Offsets are those of the next record to read.

    ``on_commit`` is called after each commit with the seconds that it took and with ``succeeded``; ``on_ends`` with end offsets,
    as long as there are more records than are taken. ``java`` is a task that reads its records itself. ``interval`` picks the
    messages that ``poll`` returns.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        batch_size: int,
        on_commit: Callable[..., None] = lambda _seconds, *, succeeded: None,
        on_ends: Report | None = None,
        java: JavaSinkTask | None = None,
        interval: IntervalFilter | None = None,
    ) -> None:
        self._interval = interval
        self._report_commit = on_commit
        self._commit_began = 0.0
        self._config = {**config, "on_commit": self._on_commit}
        self._cooperative = "cooperative" in config.get("partition.assignment.strategy", "")
        self._eager = not self._cooperative and config.get("group.protocol", "").strip().lower() != "consumer"
        self._batch_size = batch_size
        self._consumer = clients.consumer(self._config)
        self._ends = EndOffsets(self._consumer, on_ends)
        self._paused_by_task: frozenset[TopicPartition] = frozenset()
        self._paused = False  # all partitions, by the worker
        self._failure: BaseException | None = None
        self._closing = False
        self._revoking = False
        self.positions = PositionCheck(self._beginning_offset)
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.committed: dict[TopicPartition, int] = {}
        self.at_end: dict[TopicPartition, int] = {}
        """The ends that were reached: the offset of the next record by partition, which an open transaction may hold back."""
        self.joined = False
        self._rebalanced = False
        self._reader: PartitionReader = JavaReader(self._consumer, java) if java else ConsumerReader(self._consumer, self.at_end)

    def group(self) -> ConsumerGroup:
        """Return the membership in the consumer group."""
        return consumer_group(self._consumer.consumer_group_metadata())

    def group_offsets(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the group's committed offsets. Raises ConnectError."""
        with mapped_errors("read the group's offsets"):
            known = self._consumer.committed(_kafka(partitions), timeout=_OFFSETS_SECONDS) if partitions else []
        return {TopicPartition(each.topic, each.partition): each.offset for each in known if each.offset >= 0 and not each.error}

    def topics(self) -> list[str]:
        """Return the names of all topics in the cluster."""
        with mapped_errors("list the topics"):
            return list(self._consumer.list_topics(timeout=_LIST_SECONDS).topics)

    def subscribe(self, topics: list[str], listener: RebalanceListener) -> None:
        """Join the consumer group, or change its topics."""
        with mapped_errors(f"subscribe to {', '.join(topics)}"):
            self._consumer.subscribe(
                topics,
                on_assign=functools.partial(self._on_assign, listener),
                on_revoke=functools.partial(self._on_revoke, listener),
                on_lost=functools.partial(self._on_lost, listener),
            )

    def end_offsets(self, topics: list[str]) -> dict[TopicPartition, int]:
        """Return the current end offsets of all partitions of these topics. Call before ``subscribe``: it is slow later."""
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

    def poll(self, seconds: float, most: int | None = None) -> Sequence[ConsumedMessage]:
        """Return available messages, at most ``most``, waiting up to ``seconds`` for the first.

        Raises ConnectError for an error that waiting does not solve, and what a rebalance listener raised.
        """
        self._rebalanced = False
        batch_size = self._batch_size if most is None else most
        messages = self._reader.read(seconds, batch_size)
        self._raise_failure()
        if len(messages) == batch_size:
            self._ends.refresh(self.assignment)
        if self._rebalanced:
            messages = without(messages, starts_of(messages).keys() - self.assignment)
        if self._paused_by_task and not self._paused:
            self._put_back(without(messages, starts_of(messages).keys() - self._paused_by_task))
            messages = without(messages, self._paused_by_task)
        return messages if self._interval is None or self._paused else self._in_interval(self._interval, messages)

    def _in_interval(self, interval: IntervalFilter, messages: Sequence[ConsumedMessage]) -> Sequence[ConsumedMessage]:
        """Return the messages of the interval; read no more of partitions that have no more of them."""
        finished = interval.finished(self.assignment)
        kept = interval.take(messages)
        interval.reached(self.at_end)
        self.at_end.clear()
        if done := interval.finished(self.assignment) - finished:
            self._reader.pause(done)
        return kept

    def idle(self, seconds: float) -> None:
        """Poll while all partitions are paused, to stay in the group. Messages that still arrive are read again later."""
        self._put_back(self.poll(seconds))

    def pause(self) -> None:
        """Pause all partitions until ``resume``. Call ``idle`` meanwhile to stay in the group."""
        self._paused = True
        self._reader.pause(self.assignment)

    def resume(self) -> None:
        """Resume all partitions except those that the task paused."""
        self._paused = False
        self._reader.resume(self.assignment - self._paused_by_task - self._finished())

    def pause_for_task(self, partitions: frozenset[TopicPartition]) -> None:
        """Pause partitions at the task's request."""
        self._check_assigned(partitions)
        self._paused_by_task |= partitions
        self._reader.pause(partitions)

    def resume_for_task(self, partitions: frozenset[TopicPartition]) -> None:
        """Resume partitions at the task's request."""
        self._check_assigned(partitions)
        self._paused_by_task -= partitions
        if not self._paused:
            self._reader.resume(partitions - self._finished())

    @property
    def paused_by_task(self) -> frozenset[TopicPartition]:
        """The partitions that the task has paused."""
        return self._paused_by_task

    def _check_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        if foreign := partitions - self.assignment:
            raise ConnectError(f"SinkTask may not pause or resume partitions not assigned to it: {sorted(foreign)}")

    def _put_back(self, messages: Sequence[ConsumedMessage]) -> None:
        """Pause the partitions of these messages, and read the messages again after that."""
        if starts := starts_of(messages):
            self._reader.pause(frozenset(starts))
            self.seek(starts)

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue at these offsets. Ignores partitions that are not assigned."""
        offsets = {TopicPartition(*partition): offset for partition, offset in offsets.items() if partition in self.assignment}
        finished = self._finished()
        self._reader.seek(offsets)
        self._not_at_end(frozenset(offsets))
        self.positions.expect(offsets)
        if self._interval is not None:
            self._interval.sought(offsets)
            if again := (finished & offsets.keys()) - self._finished():
                self._reader.resume(frozenset(again) - self._paused_by_task)

    def _finished(self) -> frozenset[TopicPartition]:
        """Return the partitions of which all messages of the interval were read."""
        return frozenset() if self._interval is None else self._interval.finished(self.assignment)

    def commit(self, offsets: Mapping[TopicPartition, int], *, wait: float | None = None) -> None:
        """Commit offsets, waiting up to ``wait`` seconds for Kafka's answer, or not at all if None.

        A failure is logged. ``committed`` holds the offsets Kafka has confirmed. While partitions are being revoked, the wait
        has no limit, because librdkafka answers only on the thread of its callback.
        """
        if not offsets:
            return
        positions = [self._position(partition, offset) for partition, offset in offsets.items()]
        self._commit_began = time.monotonic()
        commit = functools.partial(self._consumer.commit, offsets=positions, asynchronous=wait is None)
        try:
            with mapped_errors("commit offsets"):
                done = commit() if wait is None or self._revoking else call_with_timeout(wait, commit, "The commit of offsets")
        except (ConnectError, TimeoutError) as error:
            log.warning("%s The next commit tries again, if the partitions are still assigned to the task.", error)
            self._report_commit(time.monotonic() - self._commit_began, succeeded=False)
            return
        if wait is not None:
            self._on_commit(None, done)

    def _on_commit(self, error: Any, positions: list[Any] | None) -> None:
        failed = error is not None
        for position in positions or ():
            partition, problem = TopicPartition(position.topic, position.partition), error or position.error
            if problem is not None:
                failed = True
                log.warning("Committing offset %d of %s-%d failed: %s", position.offset, *partition, problem)
                continue
            if partition in self.committed:
                self.committed[partition] = position.offset
            if self._interval is not None:
                self._interval.committed(partition, position.offset)
        self._report_commit(time.monotonic() - self._commit_began, succeeded=not failed)

    def _position(self, partition: TopicPartition, offset: int) -> clients.TopicPartitionOffset:
        """Return what to commit."""
        if self._interval is None:
            return clients.TopicPartitionOffset(*partition, offset)
        return clients.TopicPartitionOffset(*partition, offset, metadata=self._interval.metadata(partition, offset))

    def close(self, seconds: float) -> None:
        """Leave the group without a commit or callbacks. Raises TimeoutError after ``seconds``."""
        self._closing = True
        call_with_timeout(seconds, self._consumer.close, "Leaving the consumer group")

    def _on_assign(self, listener: RebalanceListener, _consumer: Any, positions: list[Any]) -> None:
        if self._closing:
            return
        partitions = _ours(positions)
        self.joined = self._rebalanced = True
        self.assignment = self.assignment | partitions if self._cooperative else partitions
        self._not_at_end(partitions)
        try:
            starts = listener.on_partitions_assigned(partitions)
            self.positions.expect({**self._group_offsets(positions), **starts})
            if self._interval is not None:
                self._begin_interval(self._interval, partitions, starts)
            for position in positions:
                position.offset = starts.get(TopicPartition(position.topic, position.partition), position.offset)
            self._reader.assign(positions, incremental=self._cooperative)
        except (Exception, Interrupted, Abandoned) as error:  # noqa: BLE001 (poll raises it, because librdkafka's callbacks must not raise)
            self._failure = error

    def _on_revoke(self, listener: RebalanceListener, _consumer: Any, positions: list[Any]) -> None:
        self.joined = not self._eager  # an eager member gives up all partitions, and is assigned others next
        self._unassign(listener.on_partitions_revoked, positions)

    def _on_lost(self, listener: RebalanceListener, _consumer: Any, positions: list[Any]) -> None:
        self.joined = False  # until the next assignment: the group has gone on without this member
        self._unassign(listener.on_partitions_lost, positions)

    def _unassign(self, callback: Callable[[frozenset[TopicPartition]], None], positions: list[Any]) -> None:
        if self._closing:
            return
        partitions = _ours(positions)
        self._rebalanced = True
        self._revoking = True
        try:
            callback(partitions)
        except (Exception, Interrupted, Abandoned) as error:  # noqa: BLE001 (raised by poll)
            self._failure = error
        finally:
            self._revoking = False
        self.assignment -= partitions
        self._paused_by_task -= partitions
        self._not_at_end(partitions)
        self.positions.forget(partitions)
        self._reader.forget(partitions)
        for partition in partitions:
            self.committed.pop(partition, None)

    def _begin_interval(
        self, interval: IntervalFilter, partitions: frozenset[TopicPartition], starts: Mapping[TopicPartition, int]
    ) -> None:
        """Continue to count where the group's last commit ended. Raises ConnectError."""
        with mapped_errors("read the group's offsets"):
            known = self._consumer.committed(_kafka(partitions), timeout=_OFFSETS_SECONDS) if partitions else []
        places = {TopicPartition(each.topic, each.partition): each for each in known if each.offset >= 0 and not each.error}
        interval.assigned(starts, {partition: (each.offset, each.metadata or "") for partition, each in places.items()})

    def _not_at_end(self, partitions: frozenset[TopicPartition]) -> None:
        for partition in partitions:
            self.at_end.pop(partition, None)

    def _group_offsets(self, positions: list[Any]) -> dict[TopicPartition, int]:
        """Return the group's committed offsets, or none on an error: they only serve to detect jumps."""
        try:
            return self.group_offsets(_ours(positions))
        except ConnectError as error:
            log.info("Cannot check whether the consumer continues at the group's committed offsets: %s", error)
            return {}

    def _beginning_offset(self, partition: TopicPartition) -> int | None:
        """Return the first offset of a partition, or None on an error."""
        try:
            with mapped_errors(f"read the beginning offset of {partition.topic}-{partition.partition}"):
                low, _ = self._consumer.get_watermark_offsets(clients.TopicPartitionOffset(*partition), timeout=_OFFSETS_SECONDS)
        except ConnectError as error:
            log.info("%s", error)
            return None
        return int(low)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


def _ours(positions: list[Any]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(position.topic, position.partition) for position in positions)


def _kafka(partitions: frozenset[TopicPartition]) -> list[Any]:
    return [clients.TopicPartitionOffset(*partition) for partition in partitions]


def call_with_timeout(seconds: float, call: Callable[[], T], what: str) -> T:
    """Return what ``call`` returns. Raises TimeoutError after ``seconds``; the call then continues in its own thread."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # noqa: BLE001 (raised again by result())
            done.set_exception(error)

    threading.Thread(target=run, name=what, daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        if done.done():  # raised by the call itself
            raise
        raise TimeoutError(f"{what} took longer than {seconds:g} s") from None


class EndOffsets:
    """Reports end offsets to ``report``. Runs on the task's thread. Does nothing if ``report`` is None."""

    def __init__(self, consumer: Consumer, report: Report | None) -> None:
        self._consumer = consumer
        self._report = report
        self._due = 0.0

    def refresh(self, partitions: Collection[TopicPartition]) -> None:
        """Ask the brokers, with one request to the leaders of these partitions, unless that was less than 10 s ago.

        An error is logged only: the lag is that of the last answer then.
        """
        now = time.monotonic()
        if self._report is None or now < self._due or not partitions:
            return
        self._due = now + _INTERVAL_SECONDS
        wanted = [TopicPartitionOffset(*partition, OFFSET_END) for partition in partitions]
        try:
            with mapped_errors("list the end offsets"):
                # A timestamp of -1 stands for the end in Kafka's ListOffsets request.
                found = self._consumer.offsets_for_times(wanted, timeout=_TIMEOUT_SECONDS)
        except ConnectError as error:
            log.debug("%s The lag is computed from the end offsets that are known.", error)
            return
        ends = {TopicPartition(each.topic, each.partition): each.offset for each in found if each.error is None}
        self._report({partition: end for partition, end in ends.items() if end >= 0})
