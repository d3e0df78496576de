"""Finds lost, duplicated and reordered records among the numbered records that arrived. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sluiceway.connectors.verifiable.numbering import NumberedRecord
from sluiceway.errors import DataError

_CHUNK_BITS = 16
_CHUNK = 1 << _CHUNK_BITS
_GAPS_KEPT = 10

_TopicPartition = tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """The counts for the records of one task.

    ``total`` records arrived, with sequence numbers up to ``last`` (None: no record arrived). ``lost`` counts the numbers
    from ``first`` on that did not arrive; ``gaps`` has the first few ranges of them, both ends included. ``duplicated``
    counts repeated arrivals of a number, ``largest_repeat`` the most of them in a row. ``reordered`` counts first arrivals
    after a higher number.
    """

    task: int
    total: int
    first: int
    last: int | None
    lost: int
    gaps: tuple[tuple[int, int], ...]
    duplicated: int
    largest_repeat: int
    reordered: int

    def __str__(self) -> str:
        lost = f" ({_ranges(self.gaps, self.lost)})" if self.lost else ""
        repeat = f" (at most {self.largest_repeat} in a row)" if self.duplicated else ""
        upto = "none" if self.last is None else f"{self.first} to {self.last}"
        return (
            f"task {self.task}: {self.total} records, numbers {upto}: "
            f"{self.lost} lost{lost}, {self.duplicated} duplicated{repeat}, {self.reordered} reordered"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The counts for all tasks: sums, and the maximum of ``largest_repeat``. ``str()`` is a report with a line per task."""

    tasks: tuple[TaskVerdict, ...]

    @property
    def total(self) -> int:
        return sum(task.total for task in self.tasks)

    @property
    def lost(self) -> int:
        return sum(task.lost for task in self.tasks)

    @property
    def duplicated(self) -> int:
        return sum(task.duplicated for task in self.tasks)

    @property
    def largest_repeat(self) -> int:
        return max((task.largest_repeat for task in self.tasks), default=0)

    @property
    def reordered(self) -> int:
        return sum(task.reordered for task in self.tasks)

    @property
    def exactly_once(self) -> bool:
        """True if records arrived and none is lost, duplicated or reordered."""
        return self.total > 0 and not (self.lost or self.duplicated or self.reordered)

    def __str__(self) -> str:
        lines = [str(task) for task in self.tasks]
        lines.append(
            f"all: {self.total} records of {len(self.tasks)} task(s): {self.lost} lost, {self.duplicated} duplicated, "
            f"{self.reordered} reordered"
        )
        return "\n".join(lines)


def check(
    records: Iterable[tuple[int, int] | NumberedRecord], *, sent: Mapping[int, int] | None = None, first: int = 0
) -> Verdict:
    """Check records, given as (task, sequence number) or ``NumberedRecord``, in the order in which they arrived.

    ``sent`` has the last number that each task sent, for example its stored offset: missing numbers up to it are lost, also
    those of a task of which no record arrived. All tasks start with the number ``first``. Order is checked only within a
    ``NumberedRecord.topic_partition``, since Kafka keeps no order between partitions. Needs about one byte per record.

    Raises DataError for a number below ``first``.
    """
    tallies: dict[int, _Tally] = {}
    for record in records:
        tally = tallies.get(record[0])
        if tally is None:
            tally = tallies[record[0]] = _Tally(first)
        tally.add(record[1], record[2] if len(record) > 2 else None)
    for task in sent or {}:
        tallies.setdefault(task, _Tally(first))
    ends = sent or {}
    return Verdict(tuple(tallies[task].verdict(task, ends.get(task, -1)) for task in sorted(tallies)))


@dataclass(slots=True)
class _Tally:
    """The numbers that arrived from one task, as bitmap chunks: an outlier allocates a single chunk."""

    first: int
    total: int = 0
    distinct: int = 0
    last: int = -1
    largest_repeat: int = 0
    reordered: int = 0
    chunks: dict[int, bytearray] = field(default_factory=dict)
    highest: dict[_TopicPartition, int] = field(default_factory=dict)
    repeats: dict[_TopicPartition, int] = field(default_factory=dict)

    def add(self, seqno: int, topic_partition: _TopicPartition) -> None:
        if seqno < self.first:
            raise DataError(f"A record has sequence number {seqno}, which is below the first number, {self.first}.")
        self.total += 1
        chunk = self.chunks.get(seqno >> _CHUNK_BITS)
        if chunk is None:
            chunk = self.chunks[seqno >> _CHUNK_BITS] = bytearray(_CHUNK)
        index = seqno & (_CHUNK - 1)
        if chunk[index]:
            self.repeats[topic_partition] = run = self.repeats.get(topic_partition, 0) + 1
            self.largest_repeat = max(self.largest_repeat, run)
            return
        chunk[index] = 1
        self.distinct += 1
        self.repeats[topic_partition] = 0
        self.last = max(self.last, seqno)
        if seqno < self.highest.get(topic_partition, -1):
            self.reordered += 1
        else:
            self.highest[topic_partition] = seqno

    def verdict(self, task: int, sent: int) -> TaskVerdict:
        end = max(self.last, sent)
        lost = max(0, end - self.first + 1 - self.distinct)
        return TaskVerdict(
            task=task,
            total=self.total,
            first=self.first,
            last=self.last if self.total else None,
            lost=lost,
            gaps=tuple(self._gaps(end)) if lost else (),
            duplicated=self.total - self.distinct,
            largest_repeat=self.largest_repeat,
            reordered=self.reordered,
        )

    def _gaps(self, end: int) -> Iterator[tuple[int, int]]:
        """Yield the first few ranges of numbers up to ``end`` that did not arrive."""
        at = self.first
        for _ in range(_GAPS_KEPT):
            start = self._next(at, marked=False)
            if start > end:
                return
            at = min(self._next(start, marked=True), end + 1)
            yield start, at - 1

    def _next(self, at: int, *, marked: bool) -> int:
        """Return the first number from ``at`` on that arrived (``marked``) or did not; after ``last`` if there is none."""
        while at <= self.last:
            chunk = self.chunks.get(at >> _CHUNK_BITS)
            base = at & ~(_CHUNK - 1)
            if chunk is None:
                if not marked:
                    return at
                following = [number for number in self.chunks if number > at >> _CHUNK_BITS]
                at = min(following) << _CHUNK_BITS
                continue
            found = chunk.find(int(marked), at - base)
            if found >= 0:
                return base + found
            at = base + _CHUNK
        return at if not marked else max(at, 1 << 63)


def _ranges(gaps: tuple[tuple[int, int], ...], lost: int) -> str:
    shown = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in gaps)
    return shown if sum(high - low + 1 for low, high in gaps) == lost else f"{shown}, ..."
