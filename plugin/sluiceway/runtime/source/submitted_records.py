"""What a source task's batch has become, and which of the task's own records that lets be counted as done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sluiceway.api import SourceRecord


class SubmittedRecords(NamedTuple):
    """The records to produce, and those of the task (``sources``) that they were made of.

    ``origins`` has each record's index in ``sources``; None where there is one for each, in order. A source may be in there
    never (it was dropped) or several times; it is done once all of its records are on their way.
    """

    records: Sequence[SourceRecord]
    sources: Sequence[SourceRecord]
    origins: Sequence[int] | None = None

    @classmethod
    def of(cls, records: Sequence[SourceRecord]) -> SubmittedRecords:
        """Return records that go out as the task made them."""
        return cls(records, records)

    def sources_before(self, position: int) -> Sequence[SourceRecord]:
        """Return the sources that come before the one of the record at ``position``."""
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
