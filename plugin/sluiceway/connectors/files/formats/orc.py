"""ORC files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyarrow import orc

from sluiceway.connectors.files.formats.base import FileWriter
from sluiceway.connectors.files.formats.tables import ColumnFormat, TableWriter, check_columnar, record_batch, struct_array
from sluiceway.connectors.files.keys import ORC_CODEC
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.connectors.files.filesystem import Output


class OrcFormat(ColumnFormat):
    """Columns of a struct's fields. A Time, which ORC does not have, is an integer of milliseconds.

    A Timestamp is ORC's ``timestamp`` with the time in UTC: Spark 4.0 and Hive 3 cannot read ``timestamp with local time zone``.
    """

    kind = "ORC"

    @property
    def extension(self) -> str:
        return ".orc"

    def rows(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> pa.RecordBatch:
        struct = self.checked(schema)
        return _orc_batch(record_batch(self.readable(struct), struct_array(struct, values)))

    def columns(self, topic: str, schema: Schema, array: AnyArray) -> pa.RecordBatch:
        check_columnar(schema)
        self.checked(schema)
        return _orc_batch(record_batch(self.readable(schema), array))

    def _try(self, columns: pa.Schema) -> None:
        fields = [field.with_type(_orc_type(field.type)) for field in columns]
        orc.write_table(pa.schema(fields).empty_table(), pa.BufferOutputStream())

    def open(self, output: Output, topic: str, schema: Schema | None) -> FileWriter:
        writer = orc.ORCWriter(cast("IO[bytes]", output), compression=cast("Any", self.options[ORC_CODEC].upper()))
        return TableWriter(writer.write, writer.close)


def _orc_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    kinds = [_orc_type(field.type) for field in batch.schema]
    columns = [column if kind == column.type else column.cast(kind) for column, kind in zip(batch.columns, kinds, strict=True)]
    fields = [field.with_type(kind) for field, kind in zip(batch.schema, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _orc_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_orc_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_orc_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_orc_type(kind.key_type), _orc_type(kind.item_type))
    return kind
