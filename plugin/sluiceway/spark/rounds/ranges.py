"""Plans which offsets of each partition a round of a sink reads. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.api import TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets of a partition from ``start`` to ``end`` (exclusive)."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"


class RoundPlanner:
    """Decides when a round starts and which offsets it reads.

    A round starts once a partition has ``flush_size`` records, or records have waited for ``interval`` seconds. It reads at
    most ``flush_size`` offsets of each partition. After a round that ended before the end of a range, the next one starts at
    once.
    """

    def __init__(self, flush_size: int, interval: float) -> None:
        self._flush_size = flush_size
        self._interval = interval
        self._waiting_since: float | None = None
        self._goes_on = False

    def ended_early(self) -> None:
        """Record that a round left records of its ranges for the next one."""
        self._goes_on = True

    def plan(
        self, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], now: float, *, at_once: bool = False
    ) -> list[OffsetRange]:
        """Return the ranges of the next round, none while it must wait for more records.

        ``now`` is in monotonic seconds. ``at_once`` reads what is available without waiting for more.
        """
        available = {each: ends.get(each, 0) - start for each, start in positions.items() if ends.get(each, 0) > start}
        if not available:
            self._waiting_since = None
            return []
        if self._waiting_since is None:
            self._waiting_since = now
        full = max(available.values()) >= self._flush_size
        if not (full or at_once or self._goes_on or now - self._waiting_since >= self._interval):
            return []
        self._waiting_since = None
        self._goes_on = False
        return [
            OffsetRange(*each, positions[each], positions[each] + min(count, self._flush_size))
            for each, count in sorted(available.items())
        ]
