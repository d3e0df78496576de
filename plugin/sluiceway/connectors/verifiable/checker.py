"""Says what was lost, repeated or reordered on the way, from the numbers of the records that arrived. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sluiceway.connectors.verifiable.numbering import Seen
from sluiceway.errors import DataError

_CHUNK_BITS = 16
_CHUNK = 1 << _CHUNK_BITS
_GAPS_KEPT = 10

Place = tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """What became of one task's records.

    ``total`` records arrived, numbered up to ``last`` (None: none). ``lost`` are the numbers between ``first`` and the end
    that never did; ``gaps`` are the first few runs of them, both ends included. ``duplicated`` counts further arrivals of a
    number, ``largest_repeat`` the most of those in a row. ``reordered`` are first arrivals behind a higher number.
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
    """What became of all tasks' records; the counts are sums, ``largest_repeat`` is the largest. ``str()`` tells it."""

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
        """Whether something arrived, and nothing is lost, duplicated or reordered."""
        return self.total > 0 and not (self.lost or self.duplicated or self.reordered)

    def __str__(self) -> str:
        lines = [str(task) for task in self.tasks]
        lines.append(
            f"all: {self.total} records of {len(self.tasks)} task(s): {self.lost} lost, {self.duplicated} duplicated, "
            f"{self.reordered} reordered"
        )
        return "\n".join(lines)


def check(records: Iterable[tuple[int, int] | Seen], *, sent: Mapping[int, int] | None = None, first: int = 0) -> Verdict:
    """Judge records given as (task, sequence number) or ``Seen``, in the order in which they arrived.

    ``sent`` is the last number that each task is known to have sent (its stored offset, say): what is missing up to there is
    lost, too, and a task of which nothing arrived is judged. ``first`` is the number that all begin with. Order is judged
    within each ``Seen.place``, since nothing promises it between partitions. Takes about one byte of memory a record.

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
    """What was seen of one task. The numbers are marked in chunks, so that one that is far off costs one chunk only."""

    first: int
    total: int = 0
    distinct: int = 0
    last: int = -1
    largest_repeat: int = 0
    reordered: int = 0
    chunks: dict[int, bytearray] = field(default_factory=dict)
    highest: dict[Place, int] = field(default_factory=dict)
    repeats: dict[Place, int] = field(default_factory=dict)

    def add(self, seqno: int, place: Place) -> None:
        if seqno < self.first:
            raise DataError(f"A record is numbered {seqno}, but the first number is {self.first}.")
        self.total += 1
        chunk = self.chunks.get(seqno >> _CHUNK_BITS)
        if chunk is None:
            chunk = self.chunks[seqno >> _CHUNK_BITS] = bytearray(_CHUNK)
        index = seqno & (_CHUNK - 1)
        if chunk[index]:
            self.repeats[place] = run = self.repeats.get(place, 0) + 1
            self.largest_repeat = max(self.largest_repeat, run)
            return
        chunk[index] = 1
        self.distinct += 1
        self.repeats[place] = 0
        self.last = max(self.last, seqno)
        if seqno < self.highest.get(place, -1):
            self.reordered += 1
        else:
            self.highest[place] = seqno

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
        """Yield the first few runs of numbers up to ``end`` that were not seen."""
        at = self.first
        for _ in range(_GAPS_KEPT):
            start = self._next(at, marked=False)
            if start > end:
                return
            at = min(self._next(start, marked=True), end + 1)
            yield start, at - 1

    def _next(self, at: int, *, marked: bool) -> int:
        """Return the first number from ``at`` on that was seen (or was not); behind ``last`` if there is none."""
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
