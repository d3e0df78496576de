"""Arrow tables of structs: what the formats with columns have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluiceway.api.columns import NotColumnar
from sluiceway.columns.arrays import to_array
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.columns.required import without_hidden_nulls
from sluiceway.connectors.files.formats.base import FileWriter
from sluiceway.data import Schema, Type
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

_BUFFER_BYTES = 16 * 1024 * 1024
_BUFFER_ROWS = 131_072
_LOGICAL = (DECIMAL, DATE, TIME, TIMESTAMP)


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
    """Return a struct array as columns, with the defaults of fields where values are missing."""
    filled = with_defaults(schema, array)
    if any(pa.types.is_nested(field.type) for field in filled.type):
        filled = without_hidden_nulls(filled)
    assert isinstance(filled, pa.StructArray)  # noqa: S101 (the array of a struct schema)
    return pa.RecordBatch.from_struct_array(filled)


def with_defaults(schema: Schema, array: AnyArray) -> AnyArray:
    """Replace missing fields of structs by their defaults, as a Struct does for its readers. Nested structs included."""
    if schema.type is not Type.STRUCT or not _has_default(schema):
        return array
    assert isinstance(array, pa.StructArray)  # noqa: S101
    children = []
    for field in schema.fields:
        child = array.field(field.index)
        default = field.schema.default
        if default is not None and child.null_count:
            if field.schema.type.primitive or field.schema.name in _LOGICAL:
                child = child.fill_null(pa.scalar(default, arrow_type(field.schema)))
            else:
                raise NotColumnar(f"The default of {field.name}, which is of type {field.schema.type.name}")
        children.append(with_defaults(field.schema, child))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(array.type), mask=mask)


def _has_default(schema: Schema) -> bool:
    return any(
        field.schema.default is not None or (field.schema.type is Type.STRUCT and _has_default(field.schema))
        for field in schema.fields
    )
