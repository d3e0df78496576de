"""Transforms a batch segment by segment, for chains with segments that take whole batches. Errors are handled by record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.transforms.java_segment import JavaSegment
from sluiceway.runtime.transforms.transformed_batch import TransformationError, TransformedBatch

R = TypeVar("R", SourceRecord, SinkRecord)


class SegmentRun(Generic[R]):
    """One batch while it passes the segments.

    ``apply(first, end, record)`` applies the segments from ``first`` to ``end``, none of which takes batches, to one record.
    """

    def __init__(self, segments: Sequence[Any], apply: Callable[[int, int, R], Sequence[R]], records: Sequence[R]) -> None:
        self._segments = segments
        self._apply: Callable[[int, int, R], Sequence[R]] = apply
        self._records: Sequence[R] = records
        self._failures: dict[int, TransformationError] = {}
        self._done: list[tuple[int, R]] = list(enumerate(records))

    def run(self, on_failure: Callable[[R, TransformationError], None]) -> TransformedBatch[R]:
        """Return the transformed batch. ``on_failure`` is called in the order of the records, as without batches."""
        position = 0
        while position < len(self._segments):
            end = position + 1
            segment = self._segments[position]
            if isinstance(segment, JavaSegment):
                outcomes = segment.batch([record for _, record in self._done])
            else:
                while end < len(self._segments) and not isinstance(self._segments[end], JavaSegment):
                    end += 1
                outcomes = [self._attempt(position, end, record) for _, record in self._done]
            self._take(outcomes)
            position = end
        return self._result(on_failure)

    def _attempt(self, first: int, end: int, record: R) -> Sequence[R] | TransformationError:
        try:
            return self._apply(first, end, record)
        except TransformationError as error:
            return error

    def _take(self, outcomes: Sequence[Sequence[R] | TransformationError]) -> None:
        done: list[tuple[int, R]] = []
        for (origin, _), outcome in zip(self._done, outcomes, strict=True):
            if isinstance(outcome, TransformationError):
                self._failures.setdefault(origin, outcome)
            else:
                done += [(origin, record) for record in outcome]
        self._done = [(origin, record) for origin, record in done if origin not in self._failures]

    def _result(self, on_failure: Callable[[R, TransformationError], None]) -> TransformedBatch[R]:
        done, taken, failure = self._done, len(self._records), None
        for origin in sorted(self._failures):
            try:
                on_failure(self._records[origin], self._failures[origin])
            except (Exception, Interrupted) as raised:  # noqa: BLE001 (what the callback raised is returned)
                done, taken, failure = [each for each in done if each[0] < origin], origin, raised
                break
        origins = [origin for origin, _ in done]
        same = origins == list(range(len(self._records)))
        return TransformedBatch([record for _, record in done], taken, None if same else origins, failure)
