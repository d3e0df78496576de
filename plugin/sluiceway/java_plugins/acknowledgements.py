"""Collects where in Kafka the records of a Java source task are, for its ``commitRecord``. No I/O."""

from __future__ import annotations

from array import array
from collections.abc import Collection

LEFT_OUT = -1
"""The partition and offset of a record that was filtered out or skipped."""


class SentRecords:
    """The records of a batch, or of a part of it, that were submitted to the producer.

    The task must not learn of them before ``release``: until then their transaction may be aborted.
    """

    __slots__ = ("_batch", "_places", "_released")

    def __init__(self, batch: int, released: array[int]) -> None:
        self._batch = batch
        self._places = array("q")
        self._released = released

    def add(self, index: int, partition: int, offset: int) -> None:
        """Record the place of the record with this index in the batch."""
        self._places.extend((self._batch, index, partition, offset))

    def leave_out(self, indexes: Collection[int]) -> None:
        """Record that records have no place in Kafka."""
        for index in indexes:
            self.add(index, LEFT_OUT, LEFT_OUT)

    def release(self) -> None:
        """Let the task know the places so far, and each further one as it is added."""
        self._released.extend(self._places)
        self._places = self._released


class Acknowledgements:
    """The places of a task's records, in the order in which it may learn of them. Used by the task's thread only."""

    def __init__(self) -> None:
        self._released = array("q")

    def of(self, batch: int) -> SentRecords:
        """Return what collects the places of a batch's records."""
        return SentRecords(batch, self._released)

    def take(self) -> bytes:
        """Return and forget the places: batch, index, partition and offset of each record, as longs."""
        places = self._released.tobytes()
        del self._released[:]
        return places
