"""Makes records of the blocks of files, as rows or as columns. Runs on executors.

Columns of one schema share a batch, also if they are of many small files: each batch has a cost of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sluiceway.api import Column, ColumnBatch, Offset, SourceColumns, SourceRecord, SourceTaskContext
from sluiceway.connectors.folder.config import FolderOptions
from sluiceway.connectors.folder.formats import Columns, Row
from sluiceway.connectors.folder.identity import Cursor
from sluiceway.connectors.folder.parts import file_of, source_partition
from sluiceway.connectors.folder.readers import Block
from sluiceway.data import OPTIONAL_BYTES_SCHEMA, STRING_SCHEMA
from sluiceway.errors import DataError

DONE_FIELD = "done"
_FEWEST_RECORDS_FOR_COLUMNS = 100


class Part(NamedTuple):
    """Records of one block, and the same as columns."""

    block: Block
    columns: Columns

    @property
    def offset(self) -> Offset:
        return offset_of(self.block.after, done=self.block.is_last)

    def fits(self, other: Part) -> bool:
        """Return whether both may share a batch."""
        mine, its = self.columns.values, other.columns.values
        if self.block.records.schema != other.block.records.schema or (mine is None) != (its is None):
            return False
        return mine is None or its is None or mine.type == its.type


class Taken:
    """The records of one poll so far: first ``parts`` as long as all of them fit each other, else ``records``."""

    def __init__(self) -> None:
        self.records: list[SourceRecord] = []
        self.parts: list[Part] = []
        self._size = 0  # of the parts

    @property
    def count(self) -> int:
        return len(self.records) + self._size

    @property
    def are_columns(self) -> bool:
        """Whether there are enough records for columns."""
        return bool(self.parts) and self.count >= _FEWEST_RECORDS_FOR_COLUMNS

    def fits(self, part: Part) -> bool:
        return not self.parts or part.fits(self.parts[0])

    def takes(self, part: Part | None) -> bool:
        """Return whether a block may follow, of which a part has a columnar form. Otherwise, a batch ends before it."""
        if self.records:
            return part is None or part.columns.size < _FEWEST_RECORDS_FOR_COLUMNS
        return not self.are_columns or (part is not None and self.fits(part))

    def add(self, part: Part) -> None:
        self.parts.append(part)
        self._size += part.columns.size

    def end_parts(self) -> list[Block]:
        """Return the blocks of the parts, and leave no part."""
        blocks = [part.block for part in self.parts]
        self.parts, self._size = [], 0
        return blocks


class Batches:
    """Makes batches of a task's blocks."""

    def __init__(self, options: FolderOptions, context: SourceTaskContext) -> None:
        self._options = options
        self._context = context

    def part(self, block: Block, most: int) -> Part | None:
        """Return up to ``most`` records of a block; None if they have no columnar form."""
        columns = None if block.unfinished else block.records.columns(block.data, most)
        if columns is None or not columns.size:
            return None
        is_all = columns.length >= len(block.data)
        return Part(block._replace(data=block.data[: columns.length], is_last=block.is_last and is_all), columns)

    def columns(self, parts: Sequence[Part]) -> SourceColumns:
        """Return the records of parts that fit each other."""
        newest = {part.block.path: part.offset for part in parts}
        path = parts[-1].block.path
        offset = newest.pop(path)
        return SourceColumns(
            batch=ColumnBatch(
                topic=self._options.topic,
                partition=None,
                key=self._keys(parts),
                value=_values(parts),
                count=sum(part.columns.size for part in parts),
            ),
            source_partition=source_partition(path),
            source_offset=offset,
            more_offsets=[(source_partition(each), newest[each]) for each in newest],
            records=lambda: [record for part in parts for record in self.records(part.block)],
        )

    def _keys(self, parts: Sequence[Part]) -> Column:
        if not self._options.keys:
            return Column(None, None)
        import pyarrow as pa

        keys = [pa.repeat(pa.scalar(file_of(part.block.path), pa.utf8()), part.columns.size) for part in parts]
        return Column(STRING_SCHEMA, keys[0] if len(keys) == 1 else pa.concat_arrays(keys))

    def records(self, block: Block) -> list[SourceRecord]:
        """Return the records of a block, each with its offset. Raises ConnectError for a bad one if errors are not tolerated."""
        partition, schema, options = source_partition(block.path), block.records.schema, self._options
        key, key_schema = (file_of(block.path), STRING_SCHEMA) if options.keys else (None, None)
        records, start = [], 0
        reason = ""
        for row in block.records.rows(block.data):
            offset = offset_of(block.before.after(block.data, row.end))
            if row.reason:
                self._bad(block, row, start, offset)
            else:
                records.append(SourceRecord(partition, offset, options.topic, row.value, schema, key, key_schema))
            start, reason = row.end, row.reason
        if block.unfinished and not reason:
            self._bad(block, Row(None, len(block.data), block.unfinished), start, offset_of(block.after))
        if records and block.is_last:
            records[-1].source_offset = offset_of(block.after, done=True)
        return records

    def _bad(self, block: Block, row: Row, start: int, offset: Offset) -> None:
        """Report a record that cannot be read."""
        where = f"{block.file} at byte {block.before.position + start}"
        data = block.data[start : row.end]
        raw = data if isinstance(data, bytes) else repr(data).encode()  # a row of a table
        record = SourceRecord(source_partition(block.path), offset, self._options.topic, raw, OPTIONAL_BYTES_SCHEMA)
        self._context.report(record, DataError(f"{where}: {row.reason}"))


def _values(parts: Sequence[Part]) -> Column:
    schema, first = parts[0].block.records.schema, parts[0].columns
    if len(parts) == 1:
        return Column(schema, first.values, first.objects)
    if first.values is None:
        return Column(schema, None, [each for part in parts for each in part.columns.objects or ()])
    import pyarrow as pa

    return Column(schema, pa.concat_arrays([part.columns.values for part in parts if part.columns.values is not None]))


def offset_of(cursor: Cursor, *, done: bool = False) -> dict[str, Any]:
    """Return the source offset of a position; with ``done``, of a file that was read to its end."""
    offset = cursor.identity().offset()
    return {**offset, DONE_FIELD: True} if done else offset
