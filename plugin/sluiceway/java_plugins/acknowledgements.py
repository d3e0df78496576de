"""Collects where in Kafka the records of a Java source task are, for its ``commitRecord``. No I/O."""

from __future__ import annotations

from array import array
from collections import deque


class SentRecords:
    """A range of a batch's records that are on their way to Kafka, with their partitions and offsets as far as known.

    ``places`` has partition and offset of each record, -1 for both if it was left out. ``left`` counts the records whose place is
    still to come.
    """

    __slots__ = ("_start", "confirmed", "left", "places", "range")

    def __init__(self, batch: int, start: int, end: int, left: int) -> None:
        self.range = batch, start, end
        self.places = array("q", [-1]) * (2 * (end - start))
        self.left = left
        self.confirmed = False
        self._start = start

    def add(self, index: int, partition: int, offset: int) -> None:
        """Record the place of the record with this index in the batch."""
        at = 2 * (index - self._start)
        self.places[at] = partition
        self.places[at + 1] = offset
        self.left -= 1

    def confirm(self) -> None:
        """Let the task know the places, with its next call."""
        self.confirmed = True


class Acknowledgements:
    """The places of a task's records, which it gets in the order in which it returned them. Used by the task's thread only."""

    def __init__(self) -> None:
        self._sent: deque[SentRecords] = deque()

    def expect(self, batch: int, start: int, end: int, left: int) -> SentRecords:
        """Expect the places of ``left`` of the records from ``start`` to before ``end``; the others are left out."""
        sent = SentRecords(batch, start, end, left)
        if end > start:
            self._sent.append(sent)
        return sent

    def take(self) -> tuple[list[tuple[int, int, int]], bytes]:
        """Return the confirmed ranges, up to the first that is not, and their places; and remove them."""
        ranges: list[tuple[int, int, int]] = []
        places = bytearray()
        while self._sent and self._sent[0].confirmed:
            sent = self._sent.popleft()
            ranges.append(sent.range)
            places += sent.places.tobytes()
        return ranges, bytes(places)
