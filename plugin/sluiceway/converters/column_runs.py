"""Divides messages that name their schemas into runs of one schema and decodes them to Arrow arrays. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from sluiceway.api.columns import Column, ColumnRun, NotColumnar, Refusal, RowFormReason
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    FindEnvelope = Callable[[bytes], tuple[bytes, Schema | None] | None]
    Read = Callable[[AnyArray], AnyArray]

pc: Any = pyarrow.compute  # its stubs do not know all arguments

SMALLEST_RUN = 16
"""Shorter runs are decoded record by record, which is as fast."""

_MOST_SHORT_RUNS = 16
_MOST_READERS = 1000
_FIRST_WINDOW, _GROWTH = 64, 8
_NULLS = Column(None, None)
_MANY_RUNS = Refusal(RowFormReason.PARTS, "messages of several schemas in turn")
_UNKNOWN = Refusal(RowFormReason.CONVERTER, "messages in an unusual form, or that cannot be read")
_UNTRIED = Refusal(RowFormReason.VALUE, "batches like those before, which had unusual values")
_NO_END = 2**31 - 1  # Arrow's binary_slice fails for several values without an end


class RunDecoder:
    """Decodes messages of payloads between a known prefix and suffix to columns. Not thread-safe.

    ``find_envelope`` returns the prefix of a message with the schema of its payload; None if the row form must decode it.
    ``open_reader`` returns the function from such payloads, none of them null, to an array; it and the function raise
    NotColumnar. Runs shorter than ``smallest_run`` messages are left to the row form. A payload that the function refuses
    leaves those around it, ``chunk`` at most, to the row form, too.
    """

    def __init__(
        self,
        find_envelope: FindEnvelope,
        open_reader: Callable[[bytes, Schema], Read],
        *,
        suffix: bytes = b"",
        smallest_run: int | None = None,
        chunk: int | None = None,
    ) -> None:
        self._find_envelope = find_envelope
        self._open_reader = open_reader
        self._suffix = suffix
        self._smallest_run = SMALLEST_RUN if smallest_run is None else smallest_run
        self._chunk = chunk
        self._readers: dict[tuple[bytes, Schema], RunReader] = {}

    def __call__(self, messages: AnyArray) -> Sequence[ColumnRun]:
        """Return the runs. ``column`` is None for short runs, and for the messages around an unusual one."""
        runs: list[ColumnRun] = []
        start, count, short = 0, len(messages), 0
        while start < count:
            # Messages of many schemas in turn take less time record by record.
            parts = self._run(messages, start) if short < _MOST_SHORT_RUNS else [ColumnRun(start, count, None, _MANY_RUNS)]
            short += parts[-1].end - start < self._smallest_run
            start = parts[-1].end
            if parts[0].column is None and runs and runs[-1].column is None:
                parts[0] = parts[0]._replace(start=runs.pop().start)
            runs += parts
        return runs

    def _run(self, messages: AnyArray, start: int) -> list[ColumnRun]:
        """Return the run that starts there, in parts if some of its messages are unusual."""
        first: Any = messages[start].as_py()
        if first is None:
            return [ColumnRun(start, _end(messages, start, lambda part: part.is_null()), _NULLS)]
        envelope = self._find_envelope(first)
        prefix, schema = envelope or (b"", None)
        if schema is None or not first.endswith(self._suffix):
            return [ColumnRun(start, start + 1, None, _UNKNOWN)]
        end = _end(messages, start, lambda part: self._belong(part, prefix))
        if end - start < self._smallest_run:
            return [ColumnRun(start, end, None, _MANY_RUNS)]
        payloads = messages.slice(start, end - start)
        if prefix or self._suffix:
            payloads = pc.binary_slice(payloads, len(prefix), -len(self._suffix) or _NO_END)
        return self._reader(prefix, schema).read(payloads, start)

    def _belong(self, part: AnyArray, prefix: bytes) -> AnyArray:
        """Return which messages have this prefix and the suffix."""
        belong: AnyArray = pc.and_(pc.starts_with(part, prefix), pc.ends_with(part, self._suffix))
        return belong.fill_null(False) if belong.null_count else belong

    def _reader(self, prefix: bytes, schema: Schema) -> RunReader:
        reader = self._readers.get((prefix, schema))
        if reader is None:
            if len(self._readers) >= _MOST_READERS:
                self._readers.clear()
            read: Read | Refusal
            try:
                read = self._open_reader(prefix, schema)
            except NotColumnar as error:
                read = error.refusal._replace(schema=schema)
            reader = self._readers[prefix, schema] = RunReader(schema, read, self._chunk)
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
    """Reads payloads of one schema. After failures it tries only some chunks, because a failure costs time."""

    CHUNK = 1000
    MOST_FAILURES = 3
    MOST_SKIPPED = 100

    def __init__(self, schema: Schema, read: Read | Refusal, chunk: int | None) -> None:
        self._schema = schema
        self._read = read
        self._chunk_size = chunk or self.CHUNK
        self._failures = self._skipped = 0

    def read(self, payloads: AnyArray, offset: int) -> list[ColumnRun]:
        """Return the runs of payloads, of which the first has the index ``offset``; adjacent chunks are one run."""
        size = self._chunk_size
        chunks = [payloads.slice(start, size) for start in range(0, len(payloads), size)]
        runs = []
        read = ((self._chunk(chunk), len(chunk)) for chunk in chunks)
        for _, group in groupby(read, lambda part: isinstance(part[0], Refusal)):
            parts = list(group)
            end = offset + sum(size for _, size in parts)
            first = parts[0][0]
            if isinstance(first, Refusal):
                runs.append(ColumnRun(offset, end, None, first))
            else:
                arrays: Any = [array for array, _ in parts]
                runs.append(ColumnRun(offset, end, Column(self._schema, pa.concat_arrays(arrays))))
            offset = end
        return runs

    def _chunk(self, payloads: AnyArray) -> AnyArray | Refusal:
        """Return the array of payloads, or why the row form must decode them."""
        if isinstance(self._read, Refusal):
            return self._read
        if self._skips():
            return _UNTRIED
        try:
            array = self._read(payloads)
        except NotColumnar as error:
            self._failures += 1
            return error.refusal._replace(schema=self._schema)
        self._failures = 0
        return array

    def _skips(self) -> bool:
        """Return True if this chunk is not tried: after three failures in a row 3 of 4 chunks are not, then more and more."""
        if self._failures < self.MOST_FAILURES:
            return False
        self._skipped += 1
        if self._skipped <= min(self._failures, self.MOST_SKIPPED):
            return True
        self._skipped = 0
        return False
