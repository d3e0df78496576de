"""Keeps the next offset to read of each partition that is assigned to a sink task. Runs on the driver."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from sluiceway.api import TopicPartition
from sluiceway.config.connector import overrides
from sluiceway.errors import ConnectError
from sluiceway.kafka.admin import beginning_offsets, end_offsets
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.committed_offsets import CommittedOffsets
from sluiceway.runtime.task import TaskSpec

log = logging.getLogger(__name__)


class NextOffsets:
    """The next offsets to read, by partition.

    Args:
        spec: the task.
        settings: the config of the task's consumer, with its group and its ``auto.offset.reset``.
    """

    def __init__(self, spec: TaskSpec, settings: Mapping[str, str]) -> None:
        self.offsets: dict[TopicPartition, int] = {}
        self._admin = admin_client(spec.worker, overrides(spec.config, "admin"))
        self._committed = CommittedOffsets(spec.worker, overrides(spec.config, "admin"))
        self._group = settings["group.id"]
        self._reset = settings["auto.offset.reset"]
        self._read_committed = settings["isolation.level"] == "read_committed"

    def assign(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Add partitions; return where each starts: at the group's offset, or where ``auto.offset.reset`` says.

        Raises ConnectError if a partition has no offset and ``auto.offset.reset`` is ``none``.
        """
        if not partitions:
            return {}
        committed = self._committed.read(self._group, partitions)
        begins, ends = beginning_offsets(self._admin, partitions), self._ends(partitions)
        starts = {each: self._start(each, committed.get(each, (None,))[0], begins[each], ends[each]) for each in partitions}
        self.offsets.update(starts)
        return starts

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Drop partitions that are no longer assigned."""
        for partition in partitions:
            self.offsets.pop(partition, None)

    def moved(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the next offsets of partitions that are still assigned."""
        self.offsets.update({each: offset for each, offset in offsets.items() if each in self.offsets})

    def ends(self) -> dict[TopicPartition, int]:
        """Return the current end offset of each partition, up to which a consumer with the task's settings can read."""
        return self._ends(self.offsets)

    def _ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return end_offsets(self._admin, partitions, read_committed=self._read_committed)

    def _start(self, partition: TopicPartition, committed: int | None, begin: int, end: int) -> int:
        if committed is not None and begin <= committed <= end:
            return committed
        if self._reset == "error":
            raise ConnectError(
                f"The consumer group {self._group} has no valid offset for {partition.topic}-{partition.partition}, and "
                "auto.offset.reset is none. Set the connector's offsets, or another auto.offset.reset."
            )
        start = end if self._reset in ("latest", "largest", "end") else begin
        if committed is not None:
            log.warning(
                "Offset %d of %s-%d, the next to read, does not exist: the partition has %d to %d. Continuing at %d as "
                "auto.offset.reset says.",
                committed,
                *partition,
                begin,
                end,
                start,
            )
        return start
