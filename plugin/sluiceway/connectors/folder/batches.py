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


class Piece(NamedTuple):
    """Records of one block, and the same as columns."""

    block: Block
    columns: Columns

    @property
    def offset(self) -> Offset:
        return offset_of(self.block.after, done=self.block.is_last)

    def fits(self, other: Piece) -> bool:
        """Return whether both may share a batch."""
        mine, its = self.columns.values, other.columns.values
        if self.block.records.schema != other.block.records.schema or (mine is None) != (its is None):
            return False
        return mine is None or its is None or mine.type == its.type


class Taken:
    """The records of one poll so far: first ``pieces`` as long as all of them fit each other, else ``records``."""

    def __init__(self) -> None:
        self.records: list[SourceRecord] = []
        self.pieces: list[Piece] = []
        self._size = 0  # of the pieces

    @property
    def count(self) -> int:
        return len(self.records) + self._size

    @property
    def are_columns(self) -> bool:
        """Whether there are enough records for columns."""
        return bool(self.pieces) and self.count >= _FEWEST_RECORDS_FOR_COLUMNS

    def fits(self, piece: Piece) -> bool:
        return not self.pieces or piece.fits(self.pieces[0])

    def takes(self, piece: Piece | None) -> bool:
        """Return whether a block may follow, of which a piece has a columnar form. Otherwise, a batch ends before it."""
        if self.records:
            return piece is None or piece.columns.size < _FEWEST_RECORDS_FOR_COLUMNS
        return not self.are_columns or (piece is not None and self.fits(piece))

    def add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self._size += piece.columns.size

    def end_pieces(self) -> list[Block]:
        """Return the blocks of the pieces, and leave no piece."""
        blocks = [piece.block for piece in self.pieces]
        self.pieces, self._size = [], 0
        return blocks


class Batches:
    """Makes batches of a task's blocks."""

    def __init__(self, options: FolderOptions, context: SourceTaskContext) -> None:
        self._options = options
        self._context = context

    def piece(self, block: Block, most: int) -> Piece | None:
        """Return up to ``most`` records of a block; None if they have no columnar form."""
        columns = None if block.unfinished else block.records.columns(block.data, most)
        if columns is None or not columns.size:
            return None
        is_all = columns.length >= len(block.data)
        return Piece(block._replace(data=block.data[: columns.length], is_last=block.is_last and is_all), columns)

    def columns(self, pieces: Sequence[Piece]) -> SourceColumns:
        """Return the records of pieces that fit each other."""
        newest = {piece.block.path: piece.offset for piece in pieces}
        path = pieces[-1].block.path
        offset = newest.pop(path)
        return SourceColumns(
            batch=ColumnBatch(
                topic=self._options.topic,
                partition=None,
                key=self._keys(pieces),
                value=_values(pieces),
                count=sum(piece.columns.size for piece in pieces),
            ),
            source_partition=source_partition(path),
            source_offset=offset,
            more_offsets=[(source_partition(each), newest[each]) for each in newest],
            records=lambda: [record for piece in pieces for record in self.records(piece.block)],
        )

    def _keys(self, pieces: Sequence[Piece]) -> Column:
        if not self._options.keys:
            return Column(None, None)
        import pyarrow as pa

        keys = [pa.repeat(pa.scalar(file_of(piece.block.path), pa.utf8()), piece.columns.size) for piece in pieces]
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


def _values(pieces: Sequence[Piece]) -> Column:
    schema, first = pieces[0].block.records.schema, pieces[0].columns
    if len(pieces) == 1:
        return Column(schema, first.values, first.objects)
    if first.values is None:
        return Column(schema, None, [each for piece in pieces for each in piece.columns.objects or ()])
    import pyarrow as pa

    return Column(schema, pa.concat_arrays([piece.columns.values for piece in pieces if piece.columns.values is not None]))


def offset_of(cursor: Cursor, *, done: bool = False) -> dict[str, Any]:
    """Return the source offset of a position; with ``done``, of a file that was read to its end."""
    offset = cursor.identity().offset()
    return {**offset, DONE_FIELD: True} if done else offset
