"""Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from sluiceway.columns.arrow_schema import arrow_field
from sluiceway.connectors.files.formats.base import FileWriter
from sluiceway.connectors.files.formats.tables import ColumnFormat, TableWriter, check_columnar, record_batch, struct_array
from sluiceway.connectors.files.keys import CODEC_IN_NAME, PARQUET_CODEC
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.connectors.files.filesystem import Output


_CODEC_EXTENSIONS = {"gzip": "gz", "brotli": "br", "zstd": "zst"}


class ParquetFormat(ColumnFormat):
    """Columns of a struct's fields. Timestamps are in milliseconds and UTC."""

    kind = "Parquet"

    @property
    def extension(self) -> str:
        codec = self.options[PARQUET_CODEC]
        in_name = self.options[CODEC_IN_NAME] == "true" and codec != "none"
        return f".{_CODEC_EXTENSIONS.get(codec, codec)}.parquet" if in_name else ".parquet"

    def rows(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> pa.RecordBatch:
        struct = self.checked(schema)
        return record_batch(self.readable(struct), struct_array(struct, values))

    def columns(self, topic: str, schema: Schema, array: AnyArray) -> pa.RecordBatch:
        check_columnar(schema)
        self.checked(schema)
        return record_batch(self.readable(schema), array)

    def _try(self, columns: pa.Schema) -> None:
        pq.write_table(columns.empty_table(), pa.BufferOutputStream())

    def open(self, output: Output, topic: str, schema: Schema | None) -> FileWriter:
        columns = pa.schema([arrow_field(field) for field in self.checked(schema).fields])
        writer = pq.ParquetWriter(cast("IO[bytes]", output), columns, compression=cast("Any", self.options[PARQUET_CODEC]))
        return TableWriter(writer.write_table, writer.close)
