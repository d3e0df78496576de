"""Turns the rows of several events of the binary log into encoded records at once. No I/O.

The rows of one table are collected, also over several transactions. What has no columnar form becomes records one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api import EncodedRecords, SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.mysql.binlog.rows import DELETE, INSERT, UPDATE, Row
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.data import Struct

if TYPE_CHECKING:
    from sluiceway.connectors.cdc.column_serializers import ColumnSerializer

_MOST_BYTES = 4 << 20
_ROW = "row"  # the number of a row in its event, in offsets and source blocks
FEWEST_ROWS = 32  # fewer become records one by one, because each batch of columns has a fixed cost


class RowsOfEvent(NamedTuple):
    """The rows of one event as pairs before and after. ``offset`` is that of the last row, ``block`` the first one's."""

    operation: str
    pairs: Sequence[tuple[Row | None, Row | None]]
    block: Struct
    offset: dict[str, Any]


class CollectedRows:
    """Collects rows of one table."""

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        self.size = 0
        self.count = 0
        self.offset: dict[str, Any] | None = None
        """The position between transactions after the rows, if their transaction has ended."""
        self._events: list[RowsOfEvent] = []

    def add(self, event: RowsOfEvent, size: int) -> None:
        self._events.append(event)
        self.count += len(event.pairs)
        self.size += size
        self.offset = None

    def is_full(self, most_rows: int) -> bool:
        return self.count >= most_rows or self.size >= _MOST_BYTES

    def records(self, emitter: Emitter, *, tombstones: bool) -> EncodedRecords | list[SourceRecord]:
        """Return the records of all rows."""
        if self.count >= FEWEST_ROWS:
            from sluiceway.connectors.cdc.column_forms import UNUSUAL

            serializer = emitter.encoded(self.schema, snapshot=False)
            try:
                if serializer is not None:
                    return self._encoded(emitter, serializer, tombstones=tombstones)
            except UNUSUAL:  # the records one by one have the reference's value, or the error
                pass
        return self._single(emitter)

    def _single(self, emitter: Emitter) -> list[SourceRecord]:
        records: list[SourceRecord] = []
        for operation, pairs, block, last in self._events:
            for number, (before, after) in enumerate(pairs):
                source, offset = _at_row(block, number), {**last, _ROW: number + 1}
                if operation == INSERT and after is not None:
                    records += emitter.create(self.schema, after, source, None, offset)
                elif operation == DELETE and before is not None:
                    records += emitter.delete(self.schema, before, source, None, offset)
                elif after is not None:
                    records += emitter.update(self.schema, before, after, source, None, offset)
        return records

    def _encoded(self, emitter: Emitter, serializer: ColumnSerializer, *, tombstones: bool) -> EncodedRecords:
        from sluiceway.connectors.cdc.column_serializers import change_records, raw_columns

        images: list[Any] = []
        old: list[Any] = []
        operations: list[str] = []
        for operation, pairs, _, _ in self._events:
            operations += [operation] * len(pairs)
            if operation == DELETE:
                images += [before for before, _ in pairs]
            else:
                images += [after for _, after in pairs]
            if operation == UPDATE:
                old += [before for before, _ in pairs]
        columns, old_columns = raw_columns(images), raw_columns(old) if old else []
        source = self._source(serializer)
        keys, values = change_records(self.schema, serializer, operations, columns, old_columns, source, tombstones=tombstones)
        return emitter.batch(self.schema, keys, values, self._events[-1].offset)

    def _source(self, serializer: ColumnSerializer) -> list[Any]:
        """Return the values of the source blocks: those that all rows share, and arrays with the text of each row."""
        import numpy as np
        import pyarrow as pa

        counts = [len(event.pairs) for event in self._events]
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
