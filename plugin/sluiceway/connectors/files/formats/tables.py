"""Arrow tables of structs: what the formats with columns have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluiceway.api.columns import NotColumnar
from sluiceway.columns.arrays import to_array
from sluiceway.columns.defaults import with_defaults
from sluiceway.columns.required import without_hidden_nulls
from sluiceway.connectors.files.formats.base import FileWriter
from sluiceway.data import Schema, Type
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

_BUFFER_BYTES = 16 * 1024 * 1024
_BUFFER_ROWS = 131_072


class TableWriter(FileWriter):
    """Collects record batches and passes them on as large tables, because each becomes a row group or stripe."""

    def __init__(self, write_table: Callable[[pa.Table], object], close: Callable[[], object]) -> None:
        self._write_table = write_table
        self._close = close
        self._batches: list[pa.RecordBatch] = []
        self._bytes = self._rows = 0

    def write(self, piece: pa.RecordBatch) -> None:
        self._batches.append(piece)
        self._bytes += piece.nbytes
        self._rows += piece.num_rows
        if self._bytes >= _BUFFER_BYTES or self._rows >= _BUFFER_ROWS:
            self.flush()

    @property
    def pending(self) -> int:
        return self._bytes

    def flush(self) -> None:
        if self._batches:
            table = pa.Table.from_batches(self._batches).combine_chunks()
            self._batches, self._bytes, self._rows = [], 0, 0
            self._write_table(table)

    def close(self) -> None:
        self.flush()
        self._close()


def struct_array(schema: Schema, values: Sequence[Any]) -> AnyArray:
    """Return structs as an array. Raises DataError if they do not fit Arrow's type of the schema."""
    try:
        return to_array(schema, values)
    except NotColumnar as error:
        raise DataError(f"The value does not fit a column: {error}") from error


def check_columnar(schema: Schema) -> None:
    """Raise NotColumnar for values without fields, which the row form refuses."""
    if schema.type is not Type.STRUCT or not schema.fields:
        raise NotColumnar(f"Columns of {schema}")


def record_batch(schema: Schema, array: AnyArray) -> pa.RecordBatch:
    """Return a struct array as columns, with the defaults of ``schema`` where values are missing."""
    filled = with_defaults(schema, array)
    if any(pa.types.is_nested(field.type) for field in filled.type):
        filled = without_hidden_nulls(filled)
    assert isinstance(filled, pa.StructArray)  # noqa: S101 (the array of a struct schema)
    return pa.RecordBatch.from_struct_array(filled)
