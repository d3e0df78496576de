"""Decides when a connector has moved all records of a partition of time. No I/O.

The rule is that of exact intervals (``sluiceway.storage.intervals``): a time has passed in a partition of a topic at the first
record whose timestamp is at or after that time plus the lateness. Where there is no such record, it has passed once the clock
says so and nothing is left to move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sluiceway.api.task import TopicPartition
from sluiceway.kafka.lag import Offsets, PartitionBounds

Bounds = Mapping[TopicPartition, PartitionBounds]
"""The bounds of partitions, with the first offset at or after a boundary plus the lateness."""


def sink_has_passed(
    bounds: Bounds, committed: Offsets, *, is_over: bool, has_records: Callable[[TopicPartition, int], bool]
) -> bool:
    """Return whether a sink has committed all records before a boundary.

    Args:
        committed: the committed offsets, read before ``bounds``.
        is_over: whether the boundary plus the lateness is over.
        has_records: tells whether a partition has records from an offset on. Behind the last one may be transaction markers.
    """
    if not bounds:
        return False
    behind = {partition: committed.get(partition, each.begin) for partition, each in bounds.items()}
    left = {partition: offset for partition, offset in behind.items() if offset < _closing(bounds[partition])}
    if any(bounds[partition].at >= 0 for partition in left):
        return False
    if any(each.at < 0 for each in bounds.values()) and not is_over:
        return False
    return not any(has_records(partition, offset) for partition, offset in left.items())


def source_has_passed(bounds: Bounds, *, is_over: bool, is_running: bool) -> bool:
    """Return whether a source whose records have the time of their production has written all before a boundary.

    ``is_running``: whether its tasks run. Those of one that is paused may come later.
    """
    return bool(bounds) and (all(each.at >= 0 for each in bounds.values()) or (is_over and is_running))


def log_has_passed(times: Iterable[int], boundary: int) -> bool:
    """Return whether a database log was read up to a boundary, given the commit times of its stored offsets."""
    read = list(times)
    return bool(read) and min(read) >= boundary


def records_between(before: Bounds, after: Bounds) -> int:
    """Return the number of offsets from the first record of a partition of time to the first one behind it.

    If records are out of order, some of another one may be among them.
    """
    starts = {partition: _closing(each) for partition, each in before.items()}
    return sum(max(0, _closing(each) - starts.get(partition, each.begin)) for partition, each in after.items())


def _closing(bounds: PartitionBounds) -> int:
    return bounds.at if bounds.at >= 0 else bounds.end
