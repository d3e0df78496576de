"""Computes the lag of a consumer group. No I/O.

REST clients, sensors and the UI read the offsets in different ways; all of them compute the lag here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sluiceway.api.task import TopicPartition

Offsets = Mapping[TopicPartition, int]


class PartitionBounds(NamedTuple):
    """The first offset of a partition, the one after the last, and that of a time; -1 if no record is as late."""

    begin: int
    end: int
    at: int = -1


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The lag of one partition. ``offset`` is None if the group has committed none."""

    partition: TopicPartition
    offset: int | None
    end: int
    lag: int


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a consumer group, with its partitions sorted."""

    partitions: tuple[PartitionLag, ...] = ()

    @property
    def total(self) -> int | None:
        """The number of records left in all partitions, None if no partition is known."""
        return sum(each.lag for each in self.partitions) if self.partitions else None


def group_lag(topics: Collection[str], committed: Offsets, begins: Offsets, ends: Offsets) -> Lag:
    """Return the lag of a group that reads ``topics``.

    All partitions of ``topics`` count, and others that the group has committed. A partition without a committed offset counts
    from its first available record (``begins``). A partition that ``ends`` does not name does not exist and does not count.
    A committed offset beyond the end, of a topic that was deleted and created again, is a lag of 0.
    """
    counted = sorted(partition for partition in ends if partition.topic in topics or partition in committed)
    return Lag(tuple(_partition_lag(each, committed.get(each), begins, ends[each]) for each in counted))


def _partition_lag(partition: TopicPartition, offset: int | None, begins: Offsets, end: int) -> PartitionLag:
    start = begins.get(partition, 0) if offset is None else offset
    return PartitionLag(partition, offset, end, max(0, end - start))


def partitions_of(topics: Iterable[str], counts: Mapping[str, int]) -> list[TopicPartition]:
    """Return the partitions of those topics that exist, given the number of partitions by topic."""
    return [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]


def existing(partitions: Iterable[TopicPartition], counts: Mapping[str, int]) -> set[TopicPartition]:
    """Return those partitions that exist, given the number of partitions by topic."""
    return {each for each in partitions if each.partition < counts.get(each.topic, 0)}
