"""Turns the rows of several events of the binary log into encoded records at once. No I/O.

The rows of one table are collected, also over several transactions. What has no columnar form becomes records one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api import EncodedRecords, SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.mysql.binlog.rows import DELETE, INSERT, UPDATE, RowReaders, RowsEvent
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.data import Struct

if TYPE_CHECKING:
    from sluiceway.connectors.cdc.column_rows import RawColumn
    from sluiceway.connectors.cdc.column_serializers import ColumnSerializer

_MOST_BYTES = 4 << 20
_ROW = "row"  # the number of a row in its event, in offsets and source blocks
FEWEST_ROWS = 32  # fewer become records one by one, because each batch of columns has a fixed cost


class CollectedEvent(NamedTuple):
    """A row event, where the images of its rows begin, and the number of its rows.

    ``offset`` is that of the last row, ``block`` the first one's.
    """

    event: RowsEvent
    starts: Sequence[int]
    row_count: int
    block: Struct
    offset: dict[str, Any]


class CollectedRows:
    """Collects rows of one table, which ``readers`` decode."""

    def __init__(self, schema: TableSchema, readers: RowReaders) -> None:
        self.schema = schema
        self.readers = readers
        self.size = 0
        self.count = 0
        self.offset: dict[str, Any] | None = None
        """The position between transactions after the rows, if their transaction has ended."""
        self._events: list[CollectedEvent] = []

    def add(self, event: CollectedEvent, size: int) -> None:
        self._events.append(event)
        self.count += event.row_count
        self.size += size
        self.offset = None

    def is_full(self, most_rows: int) -> bool:
        return self.count >= most_rows or self.size >= _MOST_BYTES

    def records(self, emitter: Emitter, *, tombstones: bool) -> EncodedRecords | list[SourceRecord]:
        """Return the records of all rows."""
        serializer = emitter.encoded(self.schema, snapshot=False) if self.count >= FEWEST_ROWS else None
        if serializer is None:
            return self._single(emitter)
        encoded = emitter.attempt(self.schema, lambda: self._encoded(emitter, serializer, tombstones=tombstones))
        return self._single(emitter) if encoded is None else encoded

    def _single(self, emitter: Emitter) -> list[SourceRecord]:
        records: list[SourceRecord] = []
        for event, _, _, block, last in self._events:
            operation = event.operation
            for number, (before, after) in enumerate(self.readers.read(event)):
                source, offset = _at_row(block, number), {**last, _ROW: number + 1}
                made: list[SourceRecord] = []
                if operation == INSERT and after is not None:
                    made = emitter.create(self.schema, after, source, None, offset)
                elif operation == DELETE and before is not None:
                    made = emitter.delete(self.schema, before, source, None, offset)
                elif after is not None:
                    made = emitter.update(self.schema, before, after, source, None, offset)
                for record in made[:-1]:
                    record.source_offset = {**last, _ROW: number}  # a restart must not lose the last one
                records += made
        return records

    def _encoded(self, emitter: Emitter, serializer: ColumnSerializer, *, tombstones: bool) -> EncodedRecords:
        from sluiceway.connectors.cdc.column_serializers import change_records

        operations = [each.event.operation for each in self._events for _ in range(each.row_count)]
        decode = self._decoded if all(self.readers.has_all_columns(each.event) for each in self._events) else self._read
        columns, old_columns = decode()
        source = self._source(serializer)
        keys, values = change_records(self.schema, serializer, operations, columns, old_columns, source, tombstones=tombstones)
        return emitter.batch(self.schema, keys, values, self._events[-1].offset)

    def _decoded(self) -> tuple[list[RawColumn], list[RawColumn]]:
        """Return the columns of the rows after changes, or before deletes, and those of the rows before updates."""
        import numpy as np

        images, old = [], []
        begin = 0
        for event, starts, _, _, _ in self._events:
            at = np.array(starts, np.int64) + begin
            if event.operation == UPDATE:
                old.append(at[::2])
                at = at[1::2]
            images.append(at)
            begin += len(event.data)
        data = b"".join(each.event.data for each in self._events)
        decode = self.readers.columns.decode
        return decode(data, np.concatenate(images)), decode(data, np.concatenate(old)) if old else []

    def _read(self) -> tuple[list[RawColumn], list[RawColumn]]:
        """Return the same columns of images of which some have values of those before."""
        from sluiceway.connectors.cdc.column_rows import raw_columns

        images: list[Any] = []
        old: list[Any] = []
        for event, _, _, _, _ in self._events:
            for before, after in self.readers.read(event):
                images.append(before if event.operation == DELETE else after)
                if event.operation == UPDATE:
                    old.append(before)
        return raw_columns(images), raw_columns(old) if old else []

    def _source(self, serializer: ColumnSerializer) -> list[Any]:
        """Return the values of the source blocks: those that all rows share, and arrays with the text of each row."""
        import numpy as np
        import pyarrow as pa

        counts = [each.row_count for each in self._events]
        numbers: Any = pa.array(np.repeat(np.arange(len(counts)), counts))
        found: list[Any] = []
        for index, name in enumerate(serializer.source_names):
            if name == _ROW:
                found.append(pa.array(np.concatenate([np.arange(count) for count in counts])).cast(pa.utf8()))
                continue
            values = [event.block.values_[index] for event in self._events]
            if all(value == values[0] for value in values):
                found.append(values[0])
            else:
                found.append(pa.array([serializer.source_text(index, value) for value in values]).take(numbers))
        return found


def _at_row(block: Struct, number: int) -> Struct:
    values = [number if field.name == _ROW else value for field, value in zip(block.schema.fields, block.values_, strict=True)]
    return Struct.of(block.schema, values)
