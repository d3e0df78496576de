"""Holds back the records of later intervals, by their times (``airflow.interval.time=record``). Runs on executors.

``IntervalBound.java`` applies the same rule to the batches of Java tasks, whose records cross as bytes, and tells the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import orjson

from sluiceway.api import Connector, EncodedRecords, Offset, OffsetStorageReader, Partition, SourceColumns, SourceRecord
from sluiceway.config.connector import NAME
from sluiceway.config.intervals import EXACT, FIELD, INTERVAL, RECORD, TIME, interval_of
from sluiceway.data.field_time import millis_at
from sluiceway.errors import ConnectError, DataError
from sluiceway.runtime.source.record_times import by_record_time

MOST_SKEW_MS = 60_000
"""The most that a source's clock may be ahead of this machine's. A timestamp beyond that is from the future: it ends nothing."""

_Polled = Sequence[SourceRecord] | SourceColumns | EncodedRecords | None
_Report = Callable[[SourceRecord, ConnectError], None]


class IntervalBound:
    """The end of a run's interval in what one task polls. Not thread-safe.

    A source partition has passed the end with its first record whose time is at or after it. This record and those behind it
    are held back: they are not sent, and their offsets are not stored, so that the next run reads them again. Records that are
    older than the interval, and those from the future, are sent.

    A task that asks for the offsets of its source partitions before the first poll has no others, so the run ends once all have
    passed. Others may find more later: their run ends when the source has no records that are older than the run itself.

    Args:
        connector: the connector's name, for errors.
        end: the end of the interval, in milliseconds since the epoch.
        field: the field of the records' values that has their times; None if these are their timestamps.
        clock: the time in seconds since the epoch.
    """

    def __init__(self, connector: str, end: int, field: str | None = None, clock: Callable[[], float] = time.time) -> None:
        self._connector = connector
        self.end = end
        self._field = field
        self._clock = clock
        self._begun = clock() * 1000
        self._open: set[bytes] = set()  # source partitions that the task knows and that have not passed the end
        self._passed: set[bytes] = set()
        self._knows_all: bool | None = None  # decided by the first poll: whether the task has asked for its offsets
        self._refused = False
        self.held_back = 0
        """The number of records of the last poll that were held back."""
        self.is_behind = False
        """Whether the last poll had records that were held back, and of which some are older than this run.

        More records of other source partitions may then come before the source has nothing new.
        """

    @classmethod
    def of(cls, connector: type[Connector], config: Mapping[str, str]) -> IntervalBound | None:
        """Return the bound of a task, given its connector's class and its config; None if it has none or finds it itself."""
        interval = interval_of(config)
        is_bound = interval is not None and by_record_time(connector, config)
        return cls(config[NAME], interval.end, config.get(FIELD)) if interval is not None and is_bound else None

    @property
    def holds(self) -> bool:
        """Whether the task has returned a record that is not sent, so that ``commit`` must not be called any more."""
        return self._refused or bool(self._passed)

    @property
    def reached(self) -> bool:
        """Whether each source partition of the task has passed the end."""
        return bool(self._knows_all and self._passed) and not self._open

    def kept(self, records: _Polled) -> Sequence[SourceRecord]:
        """Return the records of a poll that belong to this run. Raises ConnectError if one lacks what that needs."""
        self._begin_poll()
        if isinstance(records, SourceColumns):
            records = records.records()
        elif isinstance(records, EncodedRecords):
            self._refuse("encoded records, which have no timestamps", records.topic, records.source_partition, None)
        kept: list[SourceRecord] = []
        last, key, latest = None, b"", self._clock() * 1000 + MOST_SKEW_MS
        for record in records or ():
            partition, time_ = record.source_partition, self._time(record)
            if partition is None or record.source_offset is None or time_ is None:
                self._refuse(self._lacks(record), record.topic, partition, record.source_offset)
            if partition is not last:
                last, key = partition, _key(partition)
                self._see(key)
            if key not in self._passed and self.end <= time_ <= latest:
                self._pass(key)
            if key in self._passed:
                self._hold(1, time_)
            else:
                kept.append(record)
        return kept

    def told(self, found: Mapping[str, Any] | None) -> None:
        """Note what was held back of a poll of a Java task; None if it returned nothing. Raises ConnectError like ``kept``."""
        self._begin_poll()
        if found is None:
            return
        if (lacking := found["lacking"]) is not None:
            self._refuse(f"a record without a {lacking['what']}", lacking["topic"], lacking["partition"], lacking["offset"])
        for text in found["seen"]:
            self._see(_key(orjson.loads(text)))
        for text in found["passed"]:
            self._pass(_key(orjson.loads(text)))
        if found["held"]:
            self._hold(found["held"], found["oldest"])

    def of_open_partitions(self, offsets: Iterable[tuple[Partition, Offset | None]]) -> list[tuple[Partition, Offset | None]]:
        """Return the offsets without records that may be stored: those of partitions with held-back records would skip these."""
        return [(partition, offset) for partition, offset in offsets if _key(partition) not in self._passed]

    def reader(self, reader: OffsetStorageReader) -> OffsetStorageReader:
        """Return a reader that notes which source partitions the task asks for: the run lasts until they have passed the end."""
        return _NotingReader(reader, self)

    def asked(self, partitions: Iterable[Partition]) -> None:
        """Note that the task reads source partitions."""
        for partition in partitions:
            self._see(_key(partition))

    def reporter(self, report: _Report) -> _Report:
        """Return what handles a record that cannot be read, unless the next run reads it again."""

        def of_this_run(record: SourceRecord, error: ConnectError) -> None:
            if record.source_partition is None or _key(record.source_partition) not in self._passed:
                report(record, error)

        return of_this_run

    def _begin_poll(self) -> None:
        self.held_back, self.is_behind = 0, False
        if self._knows_all is None:
            self._knows_all = bool(self._open)

    def _see(self, key: bytes) -> None:
        if key not in self._passed:
            self._open.add(key)

    def _pass(self, key: bytes) -> None:
        self._passed.add(key)
        self._open.discard(key)

    def _hold(self, records: int, oldest: int) -> None:
        self.held_back += records
        self.is_behind = self.is_behind or oldest < self._begun

    def _time(self, record: SourceRecord) -> int | None:
        if self._field is None:
            return record.timestamp
        try:
            return millis_at(record.value, self._field)
        except DataError:
            return None

    @property
    def _needed(self) -> str:
        return "a timestamp" if self._field is None else f"a time in its field {self._field}"

    def _lacks(self, record: SourceRecord) -> str:
        is_whole = record.source_partition is not None and record.source_offset is not None
        missing = "a source partition" if record.source_partition is None else "a source offset"
        return f"a record without {self._needed if is_whole else missing}"

    def _refuse(self, what: str, topic: str | None, partition: Partition | None, offset: Offset | None) -> NoReturn:
        self._refused = True
        raise ConnectError(
            f"Connector {self._connector}: poll() returned {what} (topic {topic}, source partition {_text(partition)}, "
            f"source offset {_text(offset)}). With {INTERVAL}={EXACT} and {TIME}={RECORD}, each record needs {self._needed}, "
            "a source partition, and a source offset. Nothing of this poll was sent. "
            f"Set {INTERVAL}=available without {TIME}, or change the connector."
        )


class _NotingReader:
    """An ``OffsetStorageReader`` that notes the source partitions."""

    def __init__(self, reader: OffsetStorageReader, bound: IntervalBound) -> None:
        self._reader = reader
        self._bound = bound

    def offset(self, partition: Partition) -> Offset | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        self._bound.asked(partitions)
        return self._reader.offsets(partitions)


def _key(partition: Partition) -> bytes:
    return orjson.dumps(dict(partition), option=orjson.OPT_SORT_KEYS)


def _text(values: Mapping[str, Any] | str | None) -> str:
    """Return a partition or offset as JSON; a Java task tells it as such."""
    return values if isinstance(values, str) else orjson.dumps(None if values is None else dict(values)).decode()
