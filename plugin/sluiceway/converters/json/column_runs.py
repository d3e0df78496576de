"""Divides JsonConverter's messages into runs of one schema and decodes them to Arrow arrays. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from sluiceway.api.columns import Column, ColumnRun, NotColumnar
from sluiceway.converters.json.column_reader import column_reader
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    FindEnvelope = Callable[[bytes], tuple[bytes, Schema | None] | None]

pc: Any = pyarrow.compute  # its stubs do not know all arguments

SMALLEST_RUN = 16
"""Shorter runs are decoded record by record, which is as fast."""

_MOST_SHORT_RUNS = 16
_MOST_READERS = 1000
_FIRST_WINDOW, _GROWTH = 64, 8
_NULLS = Column(None, None)


class RunDecoder:
    """Decodes messages of payloads between a known prefix and suffix to columns. Not thread-safe.

    ``find_envelope`` returns the prefix of a message with the schema of its payload; None if the row form must decode it.
    """

    def __init__(self, find_envelope: FindEnvelope, *, suffix: bytes, use_defaults: bool) -> None:
        self._find_envelope = find_envelope
        self._suffix = suffix
        self._use_defaults = use_defaults
        self._readers: dict[Schema, RunReader] = {}

    def __call__(self, messages: AnyArray) -> Sequence[ColumnRun]:
        """Return the runs. ``column`` is None for runs that are too short, and for those with an unusual message."""
        runs: list[ColumnRun] = []
        start, count, short = 0, len(messages), 0
        while start < count:
            # Messages of many schemas in turn take less time record by record.
            end, column = self._run(messages, start) if short < _MOST_SHORT_RUNS else (count, None)
            short += end - start < SMALLEST_RUN
            if column is None and runs and runs[-1].column is None:
                start = runs.pop().start
            runs.append(ColumnRun(start, end, column))
            start = end
        return runs

    def _run(self, messages: AnyArray, start: int) -> tuple[int, Column | None]:
        """Return the end and the column of the run that starts there."""
        first: Any = messages[start].as_py()
        if first is None:
            return _end(messages, start, lambda part: part.is_null()), _NULLS
        envelope = self._find_envelope(first)
        prefix, schema = envelope or (b"", None)
        if schema is None or not first.endswith(self._suffix):
            return start + 1, None
        end = _end(messages, start, lambda part: self._belong(part, prefix))
        if end - start < SMALLEST_RUN:
            return end, None
        payloads = messages.slice(start, end - start)
        if prefix or self._suffix:
            payloads = pc.binary_slice(payloads, len(prefix), -len(self._suffix))
        return end, self._reader(schema).read(payloads)

    def _belong(self, part: AnyArray, prefix: bytes) -> AnyArray:
        """Return which messages have this prefix and the suffix."""
        belong: AnyArray = pc.and_(pc.starts_with(part, prefix), pc.ends_with(part, self._suffix))
        return belong.fill_null(False) if belong.null_count else belong

    def _reader(self, schema: Schema) -> RunReader:
        reader = self._readers.get(schema)
        if reader is None:
            if len(self._readers) >= _MOST_READERS:
                self._readers.clear()
            reader = self._readers[schema] = RunReader(schema, use_defaults=self._use_defaults)
        return reader


def _end(messages: AnyArray, start: int, belong: Callable[[AnyArray], AnyArray]) -> int:
    """Return the index of the first message after ``start`` that does not belong to the run.

    Searches in growing windows, so that many short runs do not take quadratic time.
    """
    size = _FIRST_WINDOW
    while start < len(messages):
        part = messages.slice(start, size)
        found: int = pc.index(belong(part), False).as_py()
        if found >= 0:
            return start + found
        start, size = start + len(part), size * _GROWTH
    return len(messages)


class RunReader:
    """Reads payloads of one schema. After failures it tries only some of the runs, because a failure costs time."""

    CHUNK = 1000  # larger documents take more time for each payload, because they leave the processor's cache
    MOST_FAILURES = 3
    MOST_SKIPPED = 100

    def __init__(self, schema: Schema, *, use_defaults: bool) -> None:
        self._schema = schema
        self._failures = self._skipped = 0
        try:
            self._read: Callable[[AnyArray], AnyArray] | None = column_reader(schema, use_defaults=use_defaults)
        except NotColumnar:
            self._read = None

    def read(self, payloads: AnyArray) -> Column | None:
        """Return the column of payloads, None if the row form must decode them."""
        if self._read is None or self._skips():
            return None
        try:
            arrays = [self._read(payloads.slice(start, self.CHUNK)) for start in range(0, len(payloads), self.CHUNK)]
            array = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        except (NotColumnar, pa.ArrowException):
            self._failures += 1
            return None
        self._failures = 0
        return Column(self._schema, array)

    def _skips(self) -> bool:
        """Return True if this run is not tried: after three failures in a row 3 of 4 runs are not, then more and more."""
        if self._failures < self.MOST_FAILURES:
            return False
        self._skipped += 1
        if self._skipped <= min(self._failures, self.MOST_SKIPPED):
            return True
        self._skipped = 0
        return False
