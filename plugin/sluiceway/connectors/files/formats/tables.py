"""Arrow tables of structs: what the formats with columns have in common."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluiceway.api.columns import NotColumnar, RowFormReason
from sluiceway.columns.arrays import to_array
from sluiceway.columns.arrow_schema import arrow_fields
from sluiceway.columns.defaults import with_defaults
from sluiceway.columns.required import without_hidden_nulls
from sluiceway.connectors.files.formats.base import FileWriter, Format, struct_schema
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


class ColumnFormat(Format):
    """A format of columns that cannot hold every type. Each schema is tried once, on an empty file in memory."""

    kind = ""
    """The format's name in messages."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._refusals: dict[Schema, str] = {}

    @abc.abstractmethod
    def _try(self, columns: pa.Schema) -> None:
        """Write a file without rows. Raises Arrow's errors."""

    def checked(self, schema: Schema | None) -> Schema:
        """Return a schema with columns. Raises DataError, which names the field, for one that no file can have."""
        struct = struct_schema(schema, self.kind)
        if struct not in self._refusals:
            self._refusals[struct] = self._refusal(struct)
        if self._refusals[struct]:
            raise DataError(self._refusals[struct])
        return struct

    def _refusal(self, schema: Schema) -> str:
        fields = arrow_fields(schema)
        return next((found for field in fields if (found := self._problem(field, ()))), "")

    def _problem(self, field: pa.Field[Any], path: tuple[str, ...]) -> str:
        """Return why a field cannot be written, of its innermost part that cannot; empty if it can."""
        try:
            self._try(pa.schema([field]))
        except pa.ArrowException as error:
            here = (*path, field.name)
            parts = (self._problem(part, here) for part in inner_fields(field.type))
            return next(filter(None, parts), "") or (
                f"{self.kind} files cannot hold the field {'.'.join(here)} of type {field.type} ({error}). Leave it out or "
                "convert it by a transform (ReplaceField, Cast), or write JSON files."
            )
        return ""


def inner_fields(kind: pa.DataType) -> list[pa.Field[Any]]:
    """Return the fields of a struct, the elements of a list, and the values of a map."""
    if isinstance(kind, pa.StructType):
        return list(kind)
    if isinstance(kind, pa.MapType):
        return [kind.item_field]
    return [kind.value_field] if isinstance(kind, pa.ListType) else []


def struct_array(schema: Schema, values: Sequence[Any]) -> AnyArray:
    """Return structs as an array. Raises DataError if they do not fit Arrow's type of the schema."""
    try:
        return to_array(schema, values)
    except NotColumnar as error:
        raise DataError(f"The value does not fit a column: {error}") from error


def check_columnar(schema: Schema) -> None:
    """Raise NotColumnar for values without fields, which the row form refuses."""
    if schema.type is not Type.STRUCT or not schema.fields:
        raise NotColumnar(f"columns of {schema}", RowFormReason.SCHEMA)


def record_batch(schema: Schema, array: AnyArray) -> pa.RecordBatch:
    """Return a struct array as columns, with the defaults of ``schema`` where values are missing."""
    filled = with_defaults(schema, array)
    if any(pa.types.is_nested(field.type) for field in filled.type):
        filled = without_hidden_nulls(filled)
    assert isinstance(filled, pa.StructArray)  # noqa: S101 (the array of a struct schema)
    return pa.RecordBatch.from_struct_array(filled)
