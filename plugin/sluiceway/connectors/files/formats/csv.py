"""CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from sluiceway.api.columns import NotColumnar, RowFormReason
from sluiceway.connectors.files.formats.base import FileWriter, Format, struct_schema
from sluiceway.connectors.files.formats.tables import TableWriter, check_columnar, record_batch, struct_array
from sluiceway.connectors.files.keys import CSV_DELIMITER, CSV_HEADER
from sluiceway.data import Schema, Type
from sluiceway.data.logical import DECIMAL
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.connectors.files.filesystem import Output

_NESTED = (Type.ARRAY, Type.MAP, Type.STRUCT)


class CsvFormat(Format):
    """A line for each record (RFC 4180): text in quotes, null as nothing, timestamps in ISO 8601 and UTC."""

    @property
    def extension(self) -> str:
        return ".csv"

    def rows(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> pa.RecordBatch:
        struct = struct_schema(schema, "CSV")
        if reason := _refusal(struct):
            raise DataError(reason)
        return _texts(record_batch(self.readable(struct), struct_array(struct, values)))

    def columns(self, topic: str, schema: Schema, array: AnyArray) -> pa.RecordBatch:
        check_columnar(schema)
        if reason := _refusal(schema):
            raise NotColumnar(reason, RowFormReason.SCHEMA)
        return _texts(record_batch(self.readable(schema), array))

    def open(self, output: Output, topic: str, schema: Schema | None) -> FileWriter:
        struct = struct_schema(schema, "CSV")
        options = csv.WriteOptions(
            include_header=self.options[CSV_HEADER] == "true", delimiter=self.options[CSV_DELIMITER], quoting_style="needed"
        )
        empty = _texts(record_batch(struct, struct_array(struct, [])))
        writer = csv.CSVWriter(cast("IO[bytes]", output), empty.schema, write_options=options)
        return TableWriter(writer.write_table, writer.close)


def _refusal(schema: Schema) -> str:
    """Return why values of a schema have no line, or an empty text."""
    for field in schema.fields:
        if field.schema.type in _NESTED or (field.schema.type is Type.BYTES and field.schema.name != DECIMAL):
            return (
                f"CSV files cannot hold the field {field.name} of type {field.schema.type.name}. Flatten it or drop it by a "
                "transform (Flatten, ReplaceField), or write JSON files."
            )
    return ""


def _texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [_text(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _text(column: AnyArray) -> AnyArray:
    if pa.types.is_timestamp(column.type):
        return pc.strftime(column, format="%Y-%m-%dT%H:%M:%SZ")
    if pa.types.is_decimal(column.type) or pa.types.is_time(column.type):
        return column.cast(pa.string())
    return column
