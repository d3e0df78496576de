"""Passes partitions on to a sink task as its consumer group rebalances."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sluiceway.api import SinkTask, TopicPartition
from sluiceway.runtime.sink.offset_commits import SinkOffsetCommitter
from sluiceway.runtime.sink.sink_task_context import WorkerSinkTaskContext
from sluiceway.runtime.sink.task_wait import SinkTaskWait

log = logging.getLogger(__name__)


class SinkRebalanceListener:
    """Implements ``RebalanceListener``: opens and closes partitions of the task, and commits those that are revoked."""

    def __init__(self, task: SinkTask, context: WorkerSinkTaskContext, offsets: SinkOffsetCommitter, wait: SinkTaskWait) -> None:
        self._task = task
        self._context = context
        self._offsets = offsets
        self._wait = wait
        self._lost: frozenset[TopicPartition] = frozenset()

    def take_lost(self) -> frozenset[TopicPartition]:
        """Return and clear the partitions lost since the last call."""
        lost, self._lost = self._lost, frozenset()
        return lost

    def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]:
        if not partitions:
            return {}
        log.info("Assigned %s", _names(partitions))
        with self._wait.task_call():
            self._task.open(partitions)
        rewinds = self._context.take_rewinds()
        self._offsets.rewound({partition: offset for partition, offset in rewinds.items() if partition in partitions})
        return rewinds

    def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        if partitions:
            with self._wait.task_call():
                self._offsets.commit_and_wait(partitions)
            self.on_partitions_lost(partitions)

    def on_partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        if not partitions:
            return
        log.info("Closing %s", _names(partitions))
        self._lost |= partitions
        self._offsets.forget(partitions)
        with self._wait.task_call():
            self._task.close(partitions)


def _names(partitions: frozenset[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))
