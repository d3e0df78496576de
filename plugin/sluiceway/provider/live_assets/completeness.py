"""Decides when a connector has moved all records of a partition of time. No I/O.

The rule is that of exact intervals (``sluiceway.storage.intervals``): once a time plus the lateness is over, what came before the
first record whose timestamp is at or after it has passed. Where there is no such record, all there is has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sluiceway.api.task import TopicPartition
from sluiceway.kafka.lag import Offsets


class PartitionPast(NamedTuple):
    """The offsets of a partition that say what came before a moment that is over.

    Attributes:
        begin: that of the first available record.
        end: that after the last record.
        stable: that of the first record of an open transaction, else ``end``.
        at: that of the first committed record at or after the moment; -1 if there is none. Records from the future do not count.
    """

    begin: int
    end: int
    stable: int
    at: int

    @property
    def closing(self) -> int:
        """The offset behind all records of before."""
        return self.at if self.at >= 0 else self.end

    @property
    def is_open(self) -> bool:
        """Whether a transaction may still commit records of before."""
        return self.at < 0 and self.stable < self.end


Past = Mapping[TopicPartition, PartitionPast]


def sink_has_passed(past: Past, committed: Offsets, has_records: Callable[[TopicPartition, int], bool]) -> bool:
    """Return whether a sink has committed all records of before a moment.

    Args:
        committed: the committed offsets, read before ``past``.
        has_records: tells whether a partition has committed records from an offset on. Behind the last one may be markers of
            transactions.
    """
    if not past or any(each.is_open for each in past.values()):
        return False
    positions = {partition: max(committed.get(partition, 0), each.begin) for partition, each in past.items()}
    left = {partition: offset for partition, offset in positions.items() if offset < past[partition].closing}
    return not any(past[partition].at >= 0 or has_records(partition, offset) for partition, offset in left.items())


def source_has_passed(past: Past, *, is_running: bool) -> bool:
    """Return whether a source whose records have the time of their production has written all of before a moment.

    ``is_running``: whether its tasks run. Those of one that is paused may come later.
    """
    has_later = all(each.at >= 0 for each in past.values())
    return bool(past) and not any(each.is_open for each in past.values()) and (is_running or has_later)


def log_has_passed(times: Iterable[int], moment: int) -> bool:
    """Return whether a database log was read up to a moment, given the commit times of its stored offsets."""
    read = list(times)
    return bool(read) and min(read) >= moment


def records_between(before: Past, after: Past) -> int:
    """Return the number of offsets from the first record of a partition of time to the first one behind it.

    If records are out of order, some of another one may be among them.
    """
    starts = {partition: each.closing for partition, each in before.items()}
    return sum(max(0, each.closing - starts.get(partition, each.begin)) for partition, each in after.items())
