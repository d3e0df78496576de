"""The ledger of a connector's intervals, and the rule by which Kafka's records belong to them. No I/O.

The rule. A boundary between intervals closes in each partition at one offset, its closing: the first offset whose timestamp is
at or after the boundary plus the lateness, or the partition's end if there is none once that time is over. A closing is decided
once, and kept. A record belongs to the interval of its timestamp if its offset is before the closing of that interval's end.
A later one is late: it belongs to the first interval whose end closes after it. So each record belongs to one interval, in
whatever order intervals are moved.

With ``airflow.interval.late=rerun``, that interval leaves a late record to the one of its time, if the ledger had that one before
and it started within ``airflow.interval.rerun.within``. What an interval leaves is kept in its entry, too, so that a run which
moves the other one again knows of which offsets.

The ledger is in the offsets topic: a record for each interval, and one for each boundary that has closed. Their key has the form
of an offset's. The connector's name in it contains a control character, which no connector can have, so that Kafka Connect's
workers read the records as offsets of a connector that they do not know.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sluiceway.api.records import Offset, Partition, TopicPartition
from sluiceway.config.intervals import Interval
from sluiceway.errors import DataError
from sluiceway.kafka.windows import Span, Window, by_partition, text_of

Positions = Mapping[TopicPartition, int]
Update = tuple[Partition, "Offset | None"]

MOST_INTERVALS = 10_000
"""The intervals that a ledger keeps: those of a year and more, if they are hours. Each run reads all of them."""

_ASKED = -1  # as a partition: the topic was looked for
_SUFFIX = "\x1fintervals"
_START, _CLOSED = "start", "closed"


def ledger_name(connector: str) -> str:
    """Return the name under which the offsets topic has a connector's ledger."""
    return connector + _SUFFIX


class IntervalState(enum.Enum):
    """The states of an interval in the ledger."""

    RUNNING = "running"
    """A run moves it, or died while it did: the next try continues."""
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class IntervalEntry:
    """The ledger's entry of one interval.

    Attributes:
        interval: its times.
        state: how far it has been moved.
        attempt: counts how often it was moved from its start, from 1 on.
        starts: the offsets at which a sink begins to read.
        ends: those before which it ends.
        runs: the DAG runs that have moved it, the newest last.
        records: how many records were moved by the newest attempt; None if unknown.
        late: how many of these were late.
        at_least: whether there may have been more: a task was killed between two commits, or an earlier try of a source has moved
            some.
        error: why it failed.
        updated: when this was written, in milliseconds since the epoch.
        number: counts the ledger's intervals in the order in which they were begun for the first time.
        leaves_from: the first start of earlier intervals that late records are left to; None if they are left to none.
        rerun: how many intervals have left late records to it since its newest attempt began; its run is cleared for them.
        column: the column by which the rows of its newest attempt can be replaced; None if they cannot.
    """

    interval: Interval
    state: IntervalState
    attempt: int = 1
    starts: Positions = field(default_factory=dict)
    ends: Positions = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    records: int | None = None
    late: int | None = None
    at_least: bool = False
    error: str | None = None
    updated: int = 0
    number: int = 0
    leaves_from: int | None = None
    rerun: int = 0
    column: str | None = None

    def leaves_to(self, other: IntervalEntry) -> bool:
        """Return whether late records of another interval are left to it rather than moved with this one."""
        is_before = other.number < self.number and other.interval.end <= self.interval.start
        return is_before and self.leaves_from is not None and self.leaves_from <= other.interval.start

    def update(self) -> Update:
        """Return the entry as a record of the offsets topic."""
        value: dict[str, Any] = {
            "end": self.interval.end,
            "state": self.state.value,
            "attempt": self.attempt,
            "starts": text_of(self.starts),
            "ends": text_of(self.ends),
            "runs": json.dumps(self.runs, separators=(",", ":")),
            "records": self.records,
            "late": self.late,
            "atLeast": self.at_least,
            "error": self.error,
            "updated": self.updated,
            "number": self.number,
            "leavesFrom": self.leaves_from,
            "rerun": self.rerun,
            "column": self.column,
        }
        return {_START: self.interval.start}, value


@dataclass(frozen=True, slots=True)
class Ledger:
    """A connector's intervals by their starts, and the closings of boundaries by their times."""

    entries: Mapping[int, IntervalEntry] = field(default_factory=dict)
    closings: Mapping[int, Positions] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Iterable[tuple[Partition, Offset]]) -> Ledger:
        """Return the ledger that these records of the offsets topic hold. Raises DataError."""
        entries, closings = dict[int, IntervalEntry](), dict[int, Positions]()
        for key, value in stored:
            try:
                if _CLOSED in key:
                    closings[int(key[_CLOSED])] = _positions(value["positions"])
                else:
                    entry = _entry(key, value)
                    entries[entry.interval.start] = entry
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise DataError(f"The ledger's record {dict(key)} cannot be read: {error!r}.") from error
        return cls(entries, closings)

    @staticmethod
    def waiting(stored: Iterable[tuple[Partition, Offset]]) -> list[IntervalEntry]:
        """Return the intervals that late records wait for, without reading all of a ledger. Raises DataError."""
        return list(Ledger.of((key, value) for key, value in stored if value.get("rerun")).entries.values())

    @property
    def last(self) -> IntervalEntry | None:
        """The interval that ends last."""
        return max(self.entries.values(), key=lambda entry: entry.interval.end, default=None)

    def first_left(self, wanted: Interval) -> Interval | None:
        """Return the first part of an interval that no run has moved; None if all of it was moved."""
        start = wanted.start
        done = (entry.interval for entry in self.entries.values() if entry.state is IntervalState.DONE)
        for moved in sorted(done):
            if moved.start <= start < moved.end:
                start = moved.end
        return Interval(start, wanted.end) if start < wanted.end else None

    def moved_behind(self, end: int) -> IntervalEntry | None:
        """Return an interval that was moved and does not end before this time: of a log, everything before was read, too."""
        done = (entry for entry in self.entries.values() if entry.state is IntervalState.DONE and entry.interval.end >= end)
        return next(done, None)

    def left_by(self, entry: IntervalEntry) -> list[Interval]:
        """Return the intervals that an interval leaves late records to, in their order."""
        return sorted(other.interval for other in self.entries.values() if entry.leaves_to(other))

    def left_to(self, entry: IntervalEntry) -> dict[TopicPartition, list[Span]]:
        """Return the spans of offsets in which other intervals leave late records to an interval."""
        found: dict[TopicPartition, list[Span]] = {}
        for other in sorted(self.entries.values(), key=lambda each: each.interval):
            if not other.leaves_to(entry):
                continue
            starts, ends = (self.closings.get(boundary, {}) for boundary in (other.interval.start, other.interval.end))
            for partition, end in ends.items():
                if (start := min(starts.get(partition, end), end)) < end:
                    found.setdefault(partition, []).append((start, end))
        return found

    @property
    def running(self) -> IntervalEntry | None:
        """The interval that a run moves now, or moved when it died: the one that a run began last."""
        running = (entry for entry in self.entries.values() if entry.state is IntervalState.RUNNING)
        return max(running, key=lambda entry: entry.updated, default=None)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a partition's records.

    Attributes:
        records: how many were moved.
        late: how many were late.
        at_least: whether there may be more: a killed task had written records whose offsets were not committed.
        left: the bits of the intervals that late records were left to, by their index among those that may be.
    """

    records: int = 0
    late: int = 0
    at_least: bool = False
    left: int = 0

    def metadata(self) -> str:
        """Return the counts as the metadata of a commit."""
        left = [f"{self.left:x}"] if self.left else []  # Kafka takes 4,096 bytes
        return json.dumps([self.records, self.late, int(self.at_least), *left], separators=(",", ":"))

    @classmethod
    def of(cls, metadata: str | None) -> Counts:
        """Return the counts of a commit; none for one without metadata."""
        if not metadata:
            return cls()
        records, late, at_least, *left = json.loads(metadata)
        return cls(records, late, bool(at_least), int(left[0], 16) if left else 0)

    def plus(self, other: Counts) -> Counts:
        """Return the counts of both."""
        at_least = self.at_least or other.at_least
        return Counts(self.records + other.records, self.late + other.late, at_least, self.left | other.left)


def closing_update(boundary: int, positions: Positions) -> Update:
    """Return the closing of a boundary as a record of the offsets topic."""
    return {_CLOSED: boundary}, {"positions": text_of(positions)}


def closings(after: Positions, ends: Positions, *, is_over: bool) -> dict[TopicPartition, int] | None:
    """Return the closing of a boundary in each partition; None if it cannot be closed yet.

    Args:
        after: the first offset at or after the boundary plus the lateness; -1 where there is no such record.
        ends: the partitions' ends.
        is_over: whether that time is over.
    """
    if not is_over and (not ends or any(after[partition] < 0 for partition in ends)):
        return None
    return {partition: after[partition] if after[partition] >= 0 else end for partition, end in ends.items()}


def asked_for(topics: Iterable[str], *, is_pattern: bool) -> dict[TopicPartition, int]:
    """Return what the closings of a boundary hold of the topics that were looked for, whether they were there or not."""
    return {TopicPartition(topic, _ASKED): 0 for topic in ([""] if is_pattern else topics)}


def with_new_partitions(known: Positions, found: Positions) -> dict[TopicPartition, int]:
    """Return the closings of a boundary with those of partitions that were not there, or not read, when it closed.

    All records of a new partition came after it if its topic was looked for then. A topic that is read since then has its own
    closing, as it is found now, so that its past is not late.
    """
    topics = {partition.topic for partition in known}
    looked = topics.__contains__ if "" not in topics else lambda _topic: True
    new = {each: 0 if looked(each.topic) else offset for each, offset in found.items() if each not in known}
    return {**known, **new}


def of_same_topics(known: Positions, ends: Positions) -> dict[TopicPartition, int]:
    """Return the closings without those of topics that were created again: their partitions are shorter now."""
    again = {each.topic for each, offset in known.items() if offset > ends.get(each, offset)}
    return {each: offset for each, offset in known.items() if each.topic not in again}


def in_order(boundary: int, found: Positions, known: Mapping[int, Positions]) -> dict[TopicPartition, int]:
    """Return the closings of a boundary, not before those of earlier boundaries and not after those of later ones.

    Boundaries may close in another order than that of their times, and with another lateness.
    """
    limited = dict(found)
    for other in sorted(known):
        for partition, offset in known[other].items():
            if partition in limited:
                pick = max if other < boundary else min
                limited[partition] = pick(limited[partition], offset)
    return limited


def windows(
    first: Positions,
    starts: Positions,
    ends: Positions,
    before: Positions | None = None,
    left: Mapping[TopicPartition, Sequence[Span]] | None = None,
) -> dict[TopicPartition, Window]:
    """Return what a run reads.

    Args:
        first: the first offset whose timestamp is in the interval or after it; -1 where there is none.
        starts: the closings of the interval's start.
        ends: the closings of its end.
        before: the offsets at which an earlier attempt began: what has been deleted since then does not count for nothing.
        left: the spans in which other intervals have left records of this one.
    """
    found = {}
    for partition, end in ends.items():
        earliest = first.get(partition, -1)
        closed = min(starts.get(partition, end), end)
        start = min(each for each in (earliest, closed, (before or {}).get(partition, closed)) if each >= 0)
        spans = (left or {}).get(partition, ())
        found[partition] = Window(start, closed, end, tuple((max(first, end), last) for first, last in spans if last > end))
    return found


def forgotten(known: Ledger, most: int = MOST_INTERVALS) -> list[Update]:
    """Return the removal of what is older than the newest ``most`` intervals."""
    starts = sorted(known.entries)
    if len(starts) <= most:
        return []
    first = starts[-most]
    old: list[Update] = [({_START: start}, None) for start in starts[:-most]]
    return old + [({_CLOSED: boundary}, None) for boundary in known.closings if boundary < first]


def introduced(known: Ledger, interval: Interval, rerun_within: int | None, column: str | None = None) -> IntervalEntry:
    """Return the ledger's entry of an interval, or one with which it is in the ledger for the first time.

    Args:
        known: the ledger.
        interval: the interval.
        rerun_within: how long before it the intervals start that it leaves late records to; None if it leaves none.
        column: the column by which rows are replaced: intervals without it, and those before them, cannot be moved again.
    """
    if (entry := known.entries.get(interval.start)) is not None:
        return entry
    number = 1 + max((each.number for each in known.entries.values()), default=0)
    leaves_from = None
    if rerun_within is not None:
        earlier = (each for each in known.entries.values() if each.interval.end <= interval.start)
        leaves_from = max((each.interval.end for each in earlier if each.column != column), default=interval.start - rerun_within)
        leaves_from = max(leaves_from, interval.start - rerun_within)
    return IntervalEntry(interval, IntervalState.RUNNING, 0, number=number, leaves_from=leaves_from)


def begun(
    known: IntervalEntry,
    interval: Interval,
    run: str,
    now: int,
    read: Mapping[TopicPartition, Window] | None,
    column: str | None = None,
) -> IntervalEntry:
    """Return the entry with which a run begins to move an interval: it continues what was not finished, or begins it again.

    Args:
        known: the ledger's entry, or a new one (``introduced``).
        interval: the interval.
        run: the DAG run's id.
        now: the time in milliseconds since the epoch.
        read: what a sink reads; None for a source. A sink's counts are committed, so that those of earlier tries are known.
        column: the column by which the rows can be replaced later.
    """
    starts = {partition: window.start for partition, window in (read or {}).items()}
    ends = {partition: window.end for partition, window in (read or {}).items()}
    if known.interval != interval:
        raise DataError(
            f"Interval {interval} cannot be moved: the ledger has {known.interval}, which starts at the same time. Runs of an "
            "earlier schedule have moved it."
        )
    runs = (*(each for each in known.runs if each != run), run)
    if known.attempt and known.state is not IntervalState.DONE:
        return replace(known, state=IntervalState.RUNNING, runs=runs, error=None, at_least=read is None, updated=now)
    again = IntervalEntry(interval, IntervalState.RUNNING, known.attempt + 1, starts, ends, runs, updated=now)
    return replace(again, number=known.number, leaves_from=known.leaves_from, column=column)


def _positions(text: str) -> dict[TopicPartition, int]:
    return {partition: int(offset) for partition, offset in by_partition(text)}


def _entry(key: Partition, value: Offset) -> IntervalEntry:
    return IntervalEntry(
        Interval(int(key[_START]), int(value["end"])),
        IntervalState(value["state"]),
        int(value["attempt"]),
        _positions(value["starts"]),
        _positions(value["ends"]),
        tuple(json.loads(value["runs"])),
        value["records"],
        value["late"],
        bool(value["atLeast"]),
        value["error"],
        int(value["updated"]),
        int(value.get("number") or 0),
        value.get("leavesFrom"),
        int(value.get("rerun") or 0),
        value.get("column"),
    )
