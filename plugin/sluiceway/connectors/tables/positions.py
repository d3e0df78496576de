"""Tracks which records of a topic partition a table sink has taken, and the rewinds it has requested. No I/O.

A rewind takes effect only after the runtime has delivered the records that it had fetched before; those are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluiceway.api import TopicPartition


@dataclass(slots=True)
class _Position:
    durable: int | None = None  # the next offset after what the tables hold
    next: int | None = None  # the next offset after what was taken
    highest: int = -1  # the last offset taken or dropped
    rewind: int | None = None  # where a requested rewind leads to


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

    def accepts(self, partition: TopicPartition, first: int, last: int) -> bool:
        """Return whether to take the records from offset ``first`` to ``last``.

        Records fetched before a rewind follow those delivered earlier; after the rewind the offsets start at or below one
        that was delivered before.
        """
        position = self._of.setdefault(partition, _Position())
        if position.rewind is None or first <= position.highest:
            position.rewind = None
            if position.durable is None or first < position.durable:
                position.durable = first  # also of a topic that was created again
            return True
        position.highest = max(position.highest, last)
        return False

    def took(self, partition: TopicPartition, last: int) -> None:
        """Note that the records up to offset ``last`` were taken."""
        position = self._of[partition]
        position.next, position.highest = last + 1, max(position.highest, last)

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
        """Note a requested rewind: what is delivered is dropped until it takes effect."""
        position = self._of.setdefault(partition, _Position())
        position.rewind = position.durable = position.next = to

    def rewinds(self) -> dict[TopicPartition, int]:
        """Return the rewinds that have not taken effect, as far as is known."""
        return {partition: each.rewind for partition, each in self._of.items() if each.rewind is not None}

    def rewind_pending(self) -> dict[TopicPartition, int]:
        """Rewind the partitions with records that are not durable; return where to."""
        back = {partition: self._of[partition].durable for partition in self.pending()}
        for partition, durable in back.items():
            assert durable is not None  # noqa: S101 (set with the first record)
            self.rewind(partition, durable)
        return {partition: durable for partition, durable in back.items() if durable is not None}
