"""Tracks which of a source task's records have been submitted to the producer, and acknowledges them to the task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from sluiceway.api import EncodedRecords, Offset, Partition, SourceColumns, SourceRecord
from sluiceway.java_plugins.acknowledgements import SentRecords
from sluiceway.java_plugins.packed import PackedPart
from sluiceway.kafka.clients import ConsumedMessage

Acknowledge = Callable[[SourceRecord, int, int], None]
"""Called with a record of the task, and its partition and offset in Kafka, or -1 for both if it was skipped."""


class SubmittedRecords(NamedTuple):
    """Records to produce, and the task's records (``sources``) that they were made from.

    ``origins`` has the index in ``sources`` of each record, or is None if there is exactly one record for each source. A
    source may map to zero (filtered) or several records. It is done once all of its records have been produced.
    """

    records: Sequence[SourceRecord]
    sources: Sequence[SourceRecord]
    origins: Sequence[int] | None = None
    ends_batch: bool = True
    """False if more records of the same poll follow."""

    @property
    def empty(self) -> bool:
        """True if there is no record to produce."""
        return not self.records

    @property
    def size(self) -> int:
        """The number of records to produce."""
        return len(self.records)

    @classmethod
    def of(cls, records: Sequence[SourceRecord]) -> SubmittedRecords:
        """Return records that are produced as the task returned them."""
        return cls(records, records)

    def sources_before(self, position: int) -> Sequence[SourceRecord]:
        """Return the sources before the one that the record at index ``position`` was made from."""
        if position >= len(self.records):
            return self.sources
        return self.sources[: position if self.origins is None else self.origins[position]]

    def by_source(self) -> Iterator[tuple[SourceRecord, Sequence[SourceRecord]]]:
        """Yield each source with its records, which may be none."""
        if self.origins is None:
            yield from ((source, (record,)) for source, record in zip(self.sources, self.records, strict=True))
            return
        start = 0
        for index, source in enumerate(self.sources):
            end = start
            while end < len(self.origins) and self.origins[end] == index:
                end += 1
            yield source, self.records[start:end]
            start = end


class SubmittedColumns(NamedTuple):
    """Encoded records to produce to one topic, and the task's columns that they were made from.

    ``keys`` and ``timestamps`` are None if no record has one. ``partition`` is that of all records; None leaves the choice to
    the producer. ``sources_before`` is ``SubmittedRecords.sources_before``.
    """

    source: SourceColumns
    topic: str
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    timestamps: Sequence[int | None] | None
    partition: int | None
    sources_before: Callable[[int], Sequence[SourceRecord]]
    ends_batch: bool = True

    @property
    def empty(self) -> bool:
        """True if there is no record to produce."""
        return not self.values

    @property
    def size(self) -> int:
        """The number of records to produce."""
        return len(self.values)


class SubmittedEncoded(NamedTuple):
    """Records to produce that the task has encoded."""

    source: EncodedRecords
    ends_batch: bool = True

    @property
    def empty(self) -> bool:
        """True if there is no record to produce."""
        return not self.source.values

    @property
    def size(self) -> int:
        """The number of records to produce."""
        return len(self.source.values)


class SubmittedPacked(NamedTuple):
    """Converted records of a Java task to produce. The caller collects their offsets once all have been produced.

    ``sent`` collects the places of the records in Kafka; None if the task does not want them. ``start`` is the index in the batch
    behind the last part's records. ``offsets_before`` returns the newest offsets of the batch's sources before an index, for a
    part that cannot be produced to its end.
    """

    part: PackedPart
    sent: SentRecords | None
    start: int = 0
    offsets_before: Callable[[int], Iterable[tuple[Partition, Offset | None]]] = lambda _index: ()

    @property
    def empty(self) -> bool:
        """True if there is no record to produce."""
        return self.part.empty

    @property
    def size(self) -> int:
        """The number of records to produce."""
        return len(self.part.values)

    @property
    def ends_batch(self) -> bool:
        """False if more records of the same poll follow."""
        return self.part.last

    @property
    def left_out(self) -> Collection[int]:
        """The indexes of the batch's records that no record of this part was made from: they were filtered out or skipped."""
        indexes, origins = range(self.start, self.part.end), self.part.origins
        return () if len(origins) == len(indexes) else sorted({*indexes}.difference(origins))


Submitted = SubmittedRecords | SubmittedColumns | SubmittedEncoded | SubmittedPacked


class SubmittedRecord:
    """Acknowledges one of the task's records once all records made from it are acknowledged."""

    __slots__ = ("_acknowledge", "_left", "_source")

    def __init__(self, source: SourceRecord, records: int, acknowledge: Acknowledge) -> None:
        self._source = source
        self._left = records
        self._acknowledge = acknowledge

    def acknowledged(self, partition: int, offset: int) -> None:
        """Count one record as acknowledged at this partition and offset, or as skipped if both are -1."""
        self._left -= 1
        if not self._left:
            self._acknowledge(self._source, partition, offset)


def skipped(submitted: SubmittedRecord | None) -> None:
    """Acknowledge a record that was skipped, if the task wants acknowledgements."""
    if submitted is not None:
        submitted.acknowledged(-1, -1)


def partition_and_offset(message: ConsumedMessage) -> tuple[int, int]:
    """Return a delivered message's partition and offset, which is -1 as in Java if the broker took it for a duplicate."""
    offset: int | None = message.offset()
    return message.partition(), -1 if offset is None else offset
