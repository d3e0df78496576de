"""Commits a sink task's offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from sluiceway.api import SinkTask, TopicPartition
from sluiceway.errors import ConnectError
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.sink.sink_records import SinkBatch
from sluiceway.runtime.sink.sink_task_context import WorkerSinkTaskContext
from sluiceway.runtime.sink.task_consumer import TaskConsumer

log = logging.getLogger(__name__)


class SinkOffsetCommitter:
    """Tracks the records passed to ``put`` and, every ``interval`` seconds, commits what ``pre_commit`` returns.

    ``flush_reports`` waits, for the given seconds, until the dead letter queue records of all records passed to ``put`` are
    in Kafka, and raises if one was lost. Nothing is committed unless it returns True. ``flush_seconds`` is that wait.
    ``last_commit_seconds`` is the wait for a commit that cannot be repeated later, and the wait for Kafka's answer to it.
    Not thread-safe.
    """

    def __init__(
        self,
        task: SinkTask,
        consumer: TaskConsumer,
        context: WorkerSinkTaskContext,
        interval: float,
        *,
        flush_reports: Callable[[float], bool] = lambda _seconds: True,
        flush_seconds: float = 5.0,
        last_commit_seconds: float = 5.0,
    ) -> None:
        self._task = task
        self._consumer = consumer
        self._context = context
        self._interval = interval
        self._flush_reports = flush_reports
        self._flush_seconds = flush_seconds
        self._last_commit_seconds = last_commit_seconds
        self._due = time.monotonic() + interval
        self.current_offsets: dict[TopicPartition, int] = {}
        """The offset after the last record passed to ``put``, or after those that are not passed, for each partition."""
        self._put: dict[TopicPartition, int] = {}
        self._passed: dict[TopicPartition, int] = {}

    def delivered(self, batch: SinkBatch) -> None:
        """Record that ``put`` has returned for a batch."""
        for partition, start in batch.starts.items():
            self._consumer.committed.setdefault(partition, start)
        self.current_offsets.update(batch.ends)
        self._put.update(batch.ends)

    def rewound(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Record that partitions are read from other offsets."""
        self.current_offsets.update(offsets)
        self._put.update(offsets)
        for partition, offset in offsets.items():
            if partition in self._passed:
                self._passed[partition] = min(self._passed[partition], offset)

    def passed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Record that there is nothing more to pass to ``put`` before these offsets."""
        self.current_offsets.update(offsets)
        self._passed.update(offsets)

    def forget(self, partitions: frozenset[TopicPartition]) -> None:
        """Drop the offsets of partitions that are no longer assigned."""
        for partition in partitions:
            self.current_offsets.pop(partition, None)
            self._put.pop(partition, None)
            self._passed.pop(partition, None)

    def commit_if_due(self) -> None:
        """Commit if the interval is over or the task requested it."""
        if self._context.commit_requested or time.monotonic() >= self._due:
            self.commit()

    def commit(self) -> None:
        """Commit without waiting for Kafka's answer. Raises Interrupted.

        If ``pre_commit`` fails, rewinds to the last committed offsets. The same if the task is interrupted, for example while
        it reports a record: a later commit must not skip that record.
        """
        self._due = time.monotonic() + self._interval
        self._context.commit_requested = False
        try:
            try:
                safe = self._task.pre_commit(dict(self.current_offsets)) if self.current_offsets else {}
            except Exception as error:  # reading the same records again may succeed
                committed = self._committed()
                log.error("Offset commit failed, rewinding to the last committed offsets %s", _text(committed), exc_info=error)
                self._rewind(committed)
                return
            flushed = self._flush_reports(self._flush_seconds)
        except Interrupted:
            self._rewind(self._committed())
            raise
        if flushed:
            self._consumer.commit(self._changed(safe))

    def _committed(self) -> dict[TopicPartition, int]:
        known = self._consumer.committed
        return {partition: known[partition] for partition in self.current_offsets if partition in known}

    def _rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._consumer.seek(offsets)
        self.rewound(offsets)

    def commit_and_wait(self, partitions: frozenset[TopicPartition] | None = None) -> bool:
        """Commit and wait for Kafka's answer, before ``partitions`` (None: all) are revoked or the task pauses.

        Return False if nothing could be committed.
        """
        current = {key: offset for key, offset in self.current_offsets.items() if partitions is None or key in partitions}
        self._due = time.monotonic() + self._interval
        self._context.delivery_ends = True
        try:
            try:
                safe = self._task.pre_commit(dict(current)) if current else {}
            except Exception:  # the partitions' next owner reads the records again
                log.exception("Offsets were not committed: the task's pre_commit() failed")
                return False
            flushed = self._flush_reports(self._last_commit_seconds)
        except Interrupted:
            log.warning("Offsets were not committed: the task was interrupted because it must stop")
            return False
        finally:
            self._context.delivery_ends = False
        if not flushed:
            log.error("Offsets were not committed: dead letter queue records are not in Kafka yet")
            return False
        self._consumer.commit(self._changed(safe), wait=self._last_commit_seconds)
        return True

    def commit_all(self) -> bool:
        """Commit at the end of a bounded run, and wait for Kafka's answer. Return whether all records passed to ``put`` are safe.

        Raises what ``pre_commit`` raises, and ConnectError if dead letter queue records do not get into Kafka.
        """
        current = dict(self.current_offsets)
        self._due = time.monotonic() + self._interval
        self._context.delivery_ends = True
        try:
            safe = self._task.pre_commit(dict(current)) if current else {}
            if not self._flush_reports(self._last_commit_seconds):
                raise ConnectError(
                    f"No offsets were committed: dead letter queue records are not in Kafka after {self._last_commit_seconds:g} s"
                )
        finally:
            self._context.delivery_ends = False
        self._consumer.commit(self._changed(safe), wait=self._last_commit_seconds)
        known = self._with_passed(safe)
        return all(known.get(partition, -1) >= offset for partition, offset in current.items())

    def _with_passed(self, safe: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = {TopicPartition(*key): offset for key, offset in safe.items()}
        for partition, passed in self._passed.items():
            put = self._put.get(partition)
            if put is None or found.get(partition, -1) >= put:
                found[partition] = max(passed, found.get(partition, -1))
        return found

    def _changed(self, safe: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offsets of ``pre_commit`` that are not committed yet, without those beyond the records it was given.

        If all records of a partition are safe, its offset is the one after those too that were not passed to ``put``.
        """
        changed: dict[TopicPartition, int] = {}
        for partition, offset in self._with_passed(safe).items():
            current = self.current_offsets.get(partition)
            if current is None or offset > current:
                log.warning(
                    "Ignoring offset %d of %s-%d that pre_commit() returned: the task was given records up to %s",
                    offset,
                    *partition,
                    current,
                )
            elif self._consumer.committed.get(partition) != offset:
                changed[partition] = offset
        return changed


def _text(offsets: Mapping[TopicPartition, int]) -> str:
    return ", ".join(f"{topic}-{partition}: {offset}" for (topic, partition), offset in sorted(offsets.items()))
