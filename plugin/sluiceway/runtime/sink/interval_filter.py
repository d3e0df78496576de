"""Picks the messages that belong to a run's interval, and counts them. Runs on an executor.

The counts are exact after a restart too: each commit of offsets carries, as its metadata, what was counted before the committed
offset. ``storage.intervals`` has the rule by which messages belong to intervals.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sluiceway.api import TopicPartition
from sluiceway.config.intervals import DLQ, LATE, POSITIONS, interval_of, reruns_of
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.kafka.windows import Window, decode_windows
from sluiceway.runtime.sink.polled import partition_of
from sluiceway.runtime.sink.record_time import TimeOf, kafka_time
from sluiceway.storage.intervals import Counts


@dataclass(slots=True)
class _Read:
    """A partition's records so far: ``before`` are the counts before offset ``base``, the arrays hold offsets from there on.

    ``left`` has the bits of the intervals that late records were left to; also of records that were not committed yet.
    """

    window: Window
    before: Counts = field(default_factory=Counts)
    base: int = -1
    next: int = -1
    taken: array[int] = field(default_factory=lambda: array("q"))
    late: array[int] = field(default_factory=lambda: array("q"))
    left: int = 0

    def back_to(self, offset: int) -> None:
        """Forget what is read again."""
        for offsets in (self.taken, self.late):
            del offsets[bisect_left(offsets, offset) :]

    def until(self, offset: int) -> Counts:
        """Return the counts of the records before an offset."""
        since = Counts(bisect_left(self.taken, offset), bisect_left(self.late, offset), left=self.left)
        return self.before.plus(since)

    def committed(self, offset: int) -> None:
        """Forget the offsets before one that was committed: only their counts are needed."""
        self.before, self.base = self.until(offset), offset
        for offsets in (self.taken, self.late):
            del offsets[: bisect_left(offsets, offset)]


class IntervalFilter:
    """Picks and counts the messages of an interval. Not thread-safe.

    Args:
        config: the connector's config, with an interval's keys.
        time_of: returns a message's time.
    """

    def __init__(self, config: Mapping[str, str], time_of: TimeOf = kafka_time) -> None:
        interval = interval_of(config)
        assert interval is not None  # noqa: S101 (made for such a config)
        self._start, self._end = interval.start, interval.end
        self._windows = decode_windows(config[POSITIONS])
        self._time_of = time_of
        self._refuses_late = config.get(LATE) == DLQ
        self._reruns = reruns_of(config)
        self._read: dict[tuple[str, int], _Read] = {}
        self._late: list[ConsumedMessage] = []

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """The offsets before which the interval's records are."""
        return {partition: window.last for partition, window in self._windows.items()}

    def end(self, partition: TopicPartition) -> int:
        """Return the offset before which a partition's records of the interval are; 0 for a partition that has none."""
        window = self._windows.get(partition)
        return 0 if window is None else window.last

    def assigned(self, starts: Mapping[TopicPartition, int], committed: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Begin to read partitions.

        Args:
            starts: the offsets that the task's target has; the others begin at the committed ones.
            committed: the committed offsets, and their metadata.
        """
        for partition, (offset, metadata) in committed.items():
            if partition not in self._windows:
                continue
            before = Counts.of(metadata)
            if starts.get(partition, offset) > offset:
                # What a killed task has left to other intervals there is not known.
                before = before.plus(Counts(at_least=True, left=(1 << len(self._reruns)) - 1))
            self._read[partition] = _Read(self._windows[partition], before, offset)

    def take(self, messages: Sequence[ConsumedMessage]) -> Sequence[ConsumedMessage]:
        """Return the messages that belong to the interval."""
        kept = []
        start, end, time_of = self._start, self._end, self._time_of
        for message in messages:
            place = (message.topic(), message.partition())
            read = self._read.get(place)
            if read is None:
                window = self._windows.get(TopicPartition._make(place))
                if window is None:
                    continue  # a partition that is newer than the interval
                read = self._read[place] = _Read(window)
            offset, window = message.offset(), read.window
            if offset >= window.last:
                read.next = window.last
                continue
            read.next = offset + 1
            time = time_of(message)
            if time >= end or (offset >= window.end and (time < start or not window.has_left(offset))):
                continue
            if time < start:
                if offset < window.closed:
                    continue
                read.late.append(offset)
                if (left := self._left_to(time)) is not None:
                    read.left |= 1 << left
                    continue
                if self._refuses_late:
                    self._late.append(message)
                    continue
            read.taken.append(offset)
            kept.append(message)
        return kept

    def reached(self, at_end: Mapping[TopicPartition, int]) -> None:
        """Note the ends of partitions that were reached, after ``take``: the offset of the next record, by partition.

        What is left before the end of the interval then are gaps, such as the marks of transactions.
        """
        for partition, offset in at_end.items():
            window = self._windows.get(partition)
            if window is not None and offset >= window.last:
                self._read.setdefault(partition, _Read(window)).next = window.last

    def sought(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that these partitions are read again from these offsets on."""
        for partition, offset in offsets.items():
            read = self._read.get(partition)
            if read is not None:
                read.back_to(offset)
                read.next = min(read.next, offset)
        self._late = [each for each in self._late if each.offset() < offsets.get(partition_of(each), each.offset() + 1)]

    def take_late(self) -> Sequence[ConsumedMessage]:
        """Return and forget the late messages that are refused."""
        late, self._late = self._late, []
        return late

    def passed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets after what was read of these partitions, also of messages that do not belong to the interval."""
        found = {partition: self._read[partition].next for partition in partitions if partition in self._read}
        return {partition: offset for partition, offset in found.items() if offset >= 0}

    def finished(self, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Return those of which the last message of the interval was read."""
        reads = ((partition, self._read.get(partition)) for partition in partitions)
        return frozenset(partition for partition, read in reads if read is not None and read.next >= read.window.last)

    def metadata(self, partition: TopicPartition, offset: int) -> str:
        """Return the metadata of a commit."""
        read = self._read.get(partition)
        return "" if read is None else read.until(offset).metadata()

    def committed(self, partition: TopicPartition, offset: int) -> None:
        """Note that an offset was committed."""
        read = self._read.get(partition)
        if read is not None and offset > read.base:
            read.committed(offset)

    def _left_to(self, time: int) -> int | None:
        """Return the index of the interval whose run is cleared for a late record; None if this one moves it."""
        number = bisect_right(self._reruns, time, key=lambda interval: interval.start) - 1
        return number if number >= 0 and time < self._reruns[number].end else None
