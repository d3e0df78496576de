"""Turns batches of columns into rows without making records. Loads Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluiceway.api import ColumnBatch, NotColumnar, row_form
from sluiceway.columns.arrays import to_values
from sluiceway.columns.rows import column_values
from sluiceway.connectors.jdbc.dialects.writer import Row
from sluiceway.connectors.jdbc.sink.columns import Column, Layout

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of(layout: Layout, batch: ColumnBatch) -> list[Row]:
    """Return what ``layout.row`` returns for each record. Raises NotColumnar if it would raise for one of them."""
    columns = []
    for column, bind in zip(layout.columns, layout.binders, strict=True):
        values = _values(column, batch)
        if column.null is not None:
            values = [column.null if value is None else value for value in values]
        if bind is not None:
            with row_form():
                values = [None if value is None else bind(value) for value in values]
        columns.append(values)
    return list(zip(*columns, strict=True))


def _values(column: Column, batch: ColumnBatch) -> list[Any]:
    part, _, index = column.expression.partition("[")
    if part in ("key", "value"):
        structs: pa.StructArray | None = getattr(batch, part).values
        if structs is None or structs.null_count:
            raise NotColumnar(f"records without a {part}")
        return to_values(column.schema, structs.field(int(index[:-1])))
    if part == "record.key":
        return column_values(batch.key, batch.count)
    if part == "record.original_kafka_offset":
        assert batch.offsets is not None  # noqa: S101 (a sink's batch has offsets)
        return batch.offsets.to_pylist()
    return [batch.original_topic if part == "record.original_topic" else batch.partition] * batch.count
