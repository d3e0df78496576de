"""Which offsets of a sink task are committed, and when."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from sluiceway.api import SinkTask, TopicPartition
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.sink.sink_records import SinkBatch
from sluiceway.runtime.sink.sink_task_context import WorkerSinkTaskContext
from sluiceway.runtime.sink.task_consumer import TaskConsumer

log = logging.getLogger(__name__)


class SinkOffsetCommitter:
    """Keeps what ``put`` has taken and commits what ``pre_commit`` returns, each ``interval`` seconds. For one thread.

    ``settled`` says whether the dead letters of everything taken are in Kafka, waiting so many seconds for that at most, and
    raises if one was lost; nothing is committed unless they are. ``patience`` is that wait, ``last_patience`` the one for
    a commit that must not be put off, which Kafka has as long to confirm. In seconds.
    """

    def __init__(
        self,
        task: SinkTask,
        consumer: TaskConsumer,
        context: WorkerSinkTaskContext,
        interval: float,
        *,
        settled: Callable[[float], bool] = lambda _seconds: True,
        patience: float = 5.0,
        last_patience: float = 5.0,
    ) -> None:
        self._task = task
        self._consumer = consumer
        self._context = context
        self._interval = interval
        self._settled = settled
        self._patience = patience
        self._last_patience = last_patience
        self._due = time.monotonic() + interval
        self.taken: dict[TopicPartition, int] = {}
        """The next offset to read of each partition that the task has taken records of."""

    def took(self, batch: SinkBatch) -> None:
        """Note that ``put`` has returned for a batch."""
        for partition, start in batch.starts.items():
            self._consumer.committed.setdefault(partition, start)
        self.taken.update(batch.ends)

    def rewound(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that the task wants to read on from other offsets."""
        for partition, offset in offsets.items():
            self.taken[partition] = offset

    def forget(self, partitions: frozenset[TopicPartition]) -> None:
        """Partitions are another member's now."""
        for partition in partitions:
            self.taken.pop(partition, None)

    def commit_if_due(self) -> None:
        """Commit at the interval's end, or because the task has asked for it."""
        if self._context.commit_requested or time.monotonic() >= self._due:
            self.commit()

    def commit(self) -> None:
        """Commit without waiting for Kafka. A task that fails to flush reads again from what was committed last.

        So does one that is interrupted while it reports a record: a later commit must not skip that record. Raises Interrupted.
        """
        self._due = time.monotonic() + self._interval
        self._context.commit_requested = False
        try:
            try:
                safe = self._task.pre_commit(dict(self.taken)) if self.taken else {}
            except Exception as error:  # the task may do better with the same records
                committed = self._committed()
                log.error("Offset commit failed, rewinding to the last committed offsets %s", _text(committed), exc_info=error)
                self._rewind(committed)
                return
            settled = self._settled(self._patience)
        except Interrupted:
            self._rewind(self._committed())
            raise
        if settled:
            self._consumer.commit(self._new(safe))

    def _committed(self) -> dict[TopicPartition, int]:
        known = self._consumer.committed
        return {partition: known[partition] for partition in self.taken if partition in known}

    def _rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._consumer.seek(offsets)
        self.taken.update(offsets)

    def commit_finally(self, partitions: frozenset[TopicPartition] | None = None) -> bool:
        """Commit and wait, before partitions (all if None) are given up or the task pauses. False if it cannot be."""
        current = {key: offset for key, offset in self.taken.items() if partitions is None or key in partitions}
        self._due = time.monotonic() + self._interval
        try:
            try:
                safe = self._task.pre_commit(dict(current)) if current else {}
            except Exception:  # the records will be read again by whoever has the partitions next
                log.exception("The task could not flush; offsets stay as they were committed last")
                return False
            settled = self._settled(self._last_patience)
        except Interrupted:
            log.warning("Offsets stay as they were committed last: the task was stopped while it reported a record")
            return False
        if not settled:
            log.error("Offsets stay as they were committed last: dead letters are not in Kafka yet")
            return False
        self._consumer.commit(self._new(safe), wait=self._last_patience)
        return True

    def _new(self, safe: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return what is worth committing of a task's answer: never more than it has taken."""
        new: dict[TopicPartition, int] = {}
        for key, offset in safe.items():
            partition = TopicPartition(*key)
            taken = self.taken.get(partition)
            if taken is None or offset > taken:
                log.warning("Ignoring the task's offset %d of %s-%d: it has taken records up to %s", offset, *partition, taken)
            elif self._consumer.committed.get(partition) != offset:
                new[partition] = offset
        return new


def _text(offsets: Mapping[TopicPartition, int]) -> str:
    return ", ".join(f"{topic}-{partition}: {offset}" for (topic, partition), offset in sorted(offsets.items()))
