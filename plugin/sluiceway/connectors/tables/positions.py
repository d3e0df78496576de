"""Tracks which records of a topic partition a table sink has taken, and the rewinds it has requested. No I/O.

The runtime seeks when a call of ``put`` has ended. So a partition's records are dropped in a call if, and only if, a rewind of
the partition is requested in that call or before it: what was dropped is read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluiceway.api import TopicPartition


@dataclass(slots=True)
class _Position:
    durable: int | None = None  # the next offset after what the tables hold
    next: int | None = None  # the next offset after what was taken
    rewind: int | None = None  # where a requested rewind leads to, until the end of the next put


class Positions:
    """The positions of the partitions that a task owns."""

    def __init__(self) -> None:
        self._of: dict[TopicPartition, _Position] = {}

    def open(self, partition: TopicPartition, durable: int | None) -> None:
        """Start to track a partition whose records are durable up to ``durable``; None if nothing is known."""
        self._of.setdefault(partition, _Position(durable, durable))

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._of.pop(partition, None)

    def accepts(self, partition: TopicPartition, first: int) -> bool:
        """Return whether to take records from offset ``first`` on: not in a call that requests a rewind."""
        position = self._of.setdefault(partition, _Position())
        if position.rewind is not None:
            return False
        if position.durable is None or first < position.durable:
            position.durable = first  # also of a topic that was created again
        return True

    def took(self, partition: TopicPartition, last: int) -> None:
        """Note that the records up to offset ``last`` were taken."""
        self._of[partition].next = last + 1

    def taken(self, partition: TopicPartition) -> int | None:
        """Return the next offset after what was taken of a partition; None if nothing was."""
        position = self._of.get(partition)
        return None if position is None else position.next

    def pending(self) -> dict[TopicPartition, int]:
        """Return the next offsets of the partitions with records that are taken but not durable."""
        return {
            partition: each.next
            for partition, each in self._of.items()
            if each.next is not None and (each.durable is None or each.next > each.durable)
        }

    def durable(self, partition: TopicPartition, consumed: int) -> int | None:
        """Return the offset to commit for a partition whose records were delivered up to ``consumed``; None for none."""
        position = self._of.get(partition)
        if position is None:
            return None
        if position.rewind is not None or partition in self.pending():
            return position.durable
        return consumed

    def committed(self) -> None:
        """Note that all records taken are durable."""
        for position in self._of.values():
            position.durable = position.next if position.next is not None else position.durable

    def rewind(self, partition: TopicPartition, to: int) -> None:
        """Note that the runtime must seek: what it has fetched is dropped."""
        position = self._of.setdefault(partition, _Position())
        position.rewind = position.durable = position.next = to

    def rewinds(self) -> dict[TopicPartition, int]:
        """Return the rewinds that each call of ``put`` requests until one has ended."""
        return {partition: each.rewind for partition, each in self._of.items() if each.rewind is not None}

    def rewound(self) -> None:
        """Note the end of a call of ``put`` that requested all rewinds."""
        for position in self._of.values():
            position.rewind = None

    def rewind_pending(self) -> dict[TopicPartition, int]:
        """Rewind the partitions with records that are not durable; return where to."""
        back = {partition: self._of[partition].durable for partition in self.pending()}
        for partition, durable in back.items():
            assert durable is not None  # noqa: S101 (set with the first record)
            self.rewind(partition, durable)
        return {partition: durable for partition, durable in back.items() if durable is not None}
