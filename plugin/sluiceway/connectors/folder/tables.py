"""Parquet, ORC and Avro files, read by rows instead of bytes. Runs on executors.

Their position is the number of rows that were read. A file of tables has its directory at its end, so that it is read when it is
complete, and it is the same file only if nothing of its status has changed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from sluiceway.connectors.folder.content import File
from sluiceway.connectors.folder.formats import Columns, Records, Row
from sluiceway.connectors.folder.identity import Cursor, FileStatus
from sluiceway.connectors.folder.parts import Part, part_of
from sluiceway.connectors.folder.readers import BadFileError, Block, FileReader, ReplacedError
from sluiceway.discovery import converter_class
from sluiceway.errors import DataError, MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    import pyarrow as pa

    from sluiceway.api.columns import AnyArray
    from sluiceway.data import Schema


PARQUET, ORC, AVRO = "parquet", "orc", "avro"
_BATCH_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class RowCursor(Cursor):
    """A number of rows in a file."""

    def after(self, data: Any, end: int) -> RowCursor:
        return replace(self, position=self.position + end)


class TableRecords(Records):
    """The rows of a table, which are structs but for some of Avro. ``data`` is an array of them."""

    has_lines = False

    def __init__(self, schema: Schema) -> None:
        self._row_schema = self.schema = schema

    def complete(self, data: Any, *, final: bool) -> int:
        return len(data)

    def rows(self, data: Any) -> Iterator[Row]:
        from sluiceway.columns.arrays import to_values

        try:
            values = to_values(self._row_schema, data)
        except UnicodeDecodeError as error:
            if len(data) == 1:
                yield Row(None, 1, f"a text is not UTF-8: {error}")
                return
            for number in range(len(data)):
                yield from (row._replace(end=number + 1) for row in self.rows(data[number : number + 1]))
            return
        for number, value in enumerate(values):
            yield Row(value, number + 1)

    def columns(self, data: Any, most: int) -> Columns | None:
        import pyarrow as pa

        values = data[:most]
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:  # a text is not UTF-8
            return None
        return Columns(len(values), len(values), values)


class TableFormat:
    """The format of Parquet, ORC or Avro files, of which ``TableReader`` makes records."""

    def __init__(self, name: str, batch_rows: int = _BATCH_ROWS) -> None:
        self.name = name
        self._batch_rows = min(batch_rows, _BATCH_ROWS)

    def begin(self, data: bytes, *, final: bool) -> None:
        """Return None: no bytes begin a record."""

    def open(self, raw: BinaryIO, part: Part | None, size: int) -> tuple[Schema, Iterator[AnyArray]]:
        """Return the schema of a file's rows, and its rows in order, or those of a part. Raises DataError for a type that
        Connect lacks. ``size`` is the file's.

        A part has the row groups of Parquet and the blocks of Avro that begin in its bytes, and of ORC as many stripes as others.
        """
        if self.name == AVRO:
            return open_avro(raw, self._batch_rows, part)
        from sluiceway.columns.connect_schemas import connect_array, row_schema

        columns, batches = self._columns(raw, part, size)
        schema = row_schema(columns)
        return schema, (connect_array(schema, batch.to_struct_array()) for batch in batches)

    def _columns(self, raw: BinaryIO, part: Part | None, size: int) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        if self.name == PARQUET:
            import pyarrow.parquet as pq

            parquet = pq.ParquetFile(raw)
            count = parquet.metadata.num_row_groups
            groups = [each for each in range(count) if part is None or part.has(_begin_of(parquet.metadata.row_group(each)))]
            return parquet.schema_arrow, parquet.iter_batches(self._batch_rows, row_groups=groups, use_threads=False)
        from pyarrow import orc

        file: Any = orc.ORCFile(raw)
        numbers = [each for each in range(file.nstripes) if part is None or each * part.of(size) // file.nstripes == part.number]
        stripes = (file.read_stripe(number) for number in numbers)
        return file.schema, (
            stripe.slice(start, self._batch_rows) for stripe in stripes for start in range(0, stripe.num_rows, self._batch_rows)
        )


def _begin_of(group: Any) -> int:
    """Return the position of a row group's first byte."""
    column = group.column(0)
    begins = [each for each in (column.dictionary_page_offset, column.data_page_offset) if each]
    return min(begins, default=0)


class TableReader(FileReader):
    """Reads a file of rows when it is complete."""

    _batches: Iterator[Any] | None = None
    _next: Any = None

    def close(self) -> None:
        self._batches = self._next = None
        super().close()

    def _use(self, file: File, cursor: Cursor) -> None:
        status, known = file.status(), self._identity
        rows = known.position if known is not None and cursor.position and known.is_of(status) else 0
        super()._use(file, RowCursor(rows))

    def _take(self, file: File, status: FileStatus, *, final: bool) -> Block | None:
        if not final:
            self._seen = status
            return None
        import pyarrow as pa

        before = self._cursor
        try:
            block = self._next_rows(file)
        except DataError as error:
            raise BadFileError(f"{file.path}: {error}") from error
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the storage; Arrow has no number for a file that it cannot read
            raise BadFileError(f"{file.path} cannot be read: {error}") from error
        if not file.is_live and file.may_change and not file.has(before):
            self._cursor = before
            raise ReplacedError
        part = part_of(self.path)
        self.lag_bytes = 0 if block is None or block.is_last else status.size if part is None else part.size
        return block

    def _next_rows(self, file: File) -> Block | None:
        if self._batches is None:
            assert isinstance(self._format, TableFormat)  # noqa: S101 (for mypy)
            schema, arrays = self._format.open(file.raw(), part_of(self.path), file.status().size)
            self._table = TableRecords(schema)
            self._batches = _after(arrays, self._cursor.position)
            self._next = next(self._batches, None)
        rows = self._next
        if rows is None:
            return None
        self._next = next(self._batches, None)
        block = Block(rows, self._cursor, self._table, self.path, file.path, is_last=self._next is None)
        self._cursor = block.after.of(file.status())
        return block


def _after(arrays: Iterator[AnyArray], rows: int) -> Iterator[AnyArray]:
    """Yield the rows after a number of rows, without arrays that have none."""
    for array in arrays:
        skipped = min(rows, len(array))
        rows -= skipped
        if skipped < len(array):
            yield array.slice(skipped)


def open_avro(raw: BinaryIO, batch_rows: int, part: Part | None = None) -> tuple[Schema, Iterator[AnyArray]]:
    """Return the schema of a file's values, and its values in order, or those of the blocks that begin in a part's bytes.

    Raises DataError for a file that is none of Avro's, or whose schema Connect lacks.
    """
    try:
        import fastavro
    except ImportError as error:
        raise MissingToolError(
            f"Avro files need a Python package that is not installed ({error}). Run: {install_command('files')} in the Python "
            "environment of the tasks."
        ) from error
    try:
        blocks = fastavro.block_reader(raw)
    except (ValueError, EOFError, KeyError) as error:
        raise DataError(f"is no Avro file: {error}") from error
    converter: Any = converter_class("AvroConverter")
    schema, read = converter.datum_reader(blocks.metadata["avro.schema"])
    if schema is None:
        raise DataError("has values of Confluent's type Anything, which have no schema")
    return schema, _arrays(schema, _values(blocks, read, part), batch_rows)


def _values(blocks: Any, read: Callable[[io.BytesIO], Any], part: Part | None) -> Iterator[Any]:
    try:
        for block in blocks:
            if part is not None and not part.has(block.offset):
                if block.offset < part.end:
                    continue
                return
            for _ in range(block.num_records):
                yield read(block.bytes_)
    except (ValueError, EOFError, IndexError, KeyError, TypeError) as error:
        raise DataError(f"is damaged: {error}") from error


def _arrays(schema: Schema, values: Iterator[Any], batch_rows: int) -> Iterator[AnyArray]:
    from sluiceway.columns.arrays import to_array

    while batch := list(islice(values, batch_rows)):
        yield to_array(schema, batch)
