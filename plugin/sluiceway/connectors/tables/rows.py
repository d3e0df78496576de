"""Makes table rows of the records of a batch: values, changes and routes as Arrow columns. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.api.columns import Column, ColumnBatch, NotColumnar
from sluiceway.data import Schema, Struct
from sluiceway.data.null_values import null_value_schema
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.connectors.tables.config import TableOptions

_DELETES = pa.array(["D", "d"])


@dataclass(frozen=True, slots=True)
class Rows:
    """Successive records of one topic partition as the rows of a table.

    Attributes:
        partition: the topic partition that they were read from.
        offsets: the records' offsets.
        values: a row for each record; of a deletion, at least the id columns if the value holds them.
        keys: the records' keys with a column for each field; None if they are no structs.
        key: the records' keys if they are not structs.
        deleted: for each record whether it deletes; None if none does.
    """

    partition: TopicPartition
    offsets: pa.Array[Any]
    values: pa.Table
    keys: pa.Table | None = None
    key: pa.Array[Any] | None = None
    deleted: pa.Array[Any] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def filter(self, mask: pa.Array[Any]) -> Rows:
        """Return the rows for which ``mask`` is true."""
        return Rows(
            self.partition,
            self.offsets.filter(mask),
            self.values.filter(mask),
            None if self.keys is None else self.keys.filter(mask),
            None if self.key is None else self.key.filter(mask),
            None if self.deleted is None else self.deleted.filter(mask),
        )


def source_of(batch: ColumnBatch) -> tuple[TopicPartition, pa.Array[Any]]:
    """Return the topic partition that a sink's batch was read from, and its offsets."""
    if batch.partition is None or batch.offsets is None:
        raise DataError("A sink's batch has a partition and offsets.")
    return TopicPartition(batch.original_topic or batch.topic, batch.partition), batch.offsets


def rows_of(batch: ColumnBatch, options: TableOptions) -> Rows | None:
    """Return the rows of a batch; None if it has none to write. Raises DataError for values that are not structs."""
    partition, offsets = source_of(batch)
    keys, key = _keys(batch.key)
    if batch.value.values is None:  # tombstones
        if not options.upsert:
            return None
        deleted = pa.repeat(pa.scalar(value=True), batch.count)
        return Rows(partition, offsets, _no_columns(batch.count), keys, key, deleted)
    value = batch.value.values
    if not pa.types.is_struct(value.type):
        raise DataError(
            f"Topic {batch.topic}: a table row needs a struct or a map with field names, but the value is {value.type}."
        )
    if value.null_count:  # tombstones of an optional struct
        return _with_nulls(batch, options, value)
    if batch.value.schema is not None:
        value = _with_defaults(batch.value.schema, value, replace=options.replace_nulls)
    rows = Rows(partition, offsets, _table(value), keys, key)
    return _changes(rows, options)


def _with_nulls(batch: ColumnBatch, options: TableOptions, value: pa.Array[Any]) -> Rows | None:
    """Return the rows of a batch with tombstones among its values."""
    present = value.is_valid()
    if not options.upsert and not options.debezium:
        kept = ColumnBatch(
            topic=batch.topic, partition=batch.partition, original_topic=batch.original_topic,
            key=Column(batch.key.schema, None if batch.key.values is None else batch.key.values.filter(present)),
            value=Column(batch.value.schema, value.filter(present)),
            count=batch.count - value.null_count, offsets=batch.offsets and batch.offsets.filter(present),
        )  # fmt: skip
        return rows_of(kept, options) if kept.count else None
    raise DataError(f"Topic {batch.topic}: tombstones and rows in one batch.")  # the row form separates them


def _changes(rows: Rows, options: TableOptions) -> Rows | None:
    """Apply Debezium's envelope or the field of the change."""
    if options.debezium:
        return _of_events(rows)
    if options.cdc_field is None:
        return rows
    if options.cdc_field not in rows.values.column_names:
        raise DataError(f"The value has no field {options.cdc_field}, which {options.prefix}tables.cdc-field names.")
    change = rows.values.column(options.cdc_field).combine_chunks()
    return _replace(rows, rows.values.drop_columns([options.cdc_field]), _is_delete(change))


def _of_events(rows: Rows) -> Rows | None:
    if not {"op", "after"} <= set(rows.values.column_names):
        return rows  # already flattened, such as by ExtractNewRecordState
    before = rows.values.column("before").combine_chunks() if "before" in rows.values.column_names else None
    after = rows.values.column("after").combine_chunks()
    deleted = _is_delete(rows.values.column("op").combine_chunks())
    image = after if before is None else pc.if_else(deleted, before, after)
    present = image.is_valid()  # truncations and messages have no row
    if pc.any(pc.invert(present)).as_py():
        rows, image, deleted = rows.filter(present), image.filter(present), deleted.filter(present)
    return _replace(rows, _table(image), deleted) if len(rows) else None


def _is_delete(change: pa.Array[Any]) -> pa.Array[Any]:
    return pc.is_in(change, value_set=_DELETES)


def _replace(rows: Rows, values: pa.Table, deleted: pa.Array[Any]) -> Rows:
    return Rows(rows.partition, rows.offsets, values, rows.keys, rows.key, deleted if pc.any(deleted).as_py() else None)


def _keys(key: Column) -> tuple[pa.Table | None, pa.Array[Any] | None]:
    if key.values is None:
        return None, None
    return (_table(key.values), None) if pa.types.is_struct(key.values.type) else (None, key.values)


def _table(structs: pa.Array[Any]) -> pa.Table:
    """Return a table with a column for each field of an array of structs without nulls."""
    fields = list(structs.type)
    columns = [structs.field(number) for number in range(len(fields))]  # type: ignore[attr-defined]
    if not fields:
        return _no_columns(len(structs))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _with_defaults(schema: Schema, values: pa.Array[Any], *, replace: bool) -> pa.Array[Any]:
    from sluiceway.columns.defaults import with_defaults

    return with_defaults(null_value_schema(schema, replace=replace), values)


def _no_columns(count: int) -> pa.Table:
    return pa.table({"__rows": pa.nulls(count)})  # Arrow's tables without columns have no length


def batch_of(run: Sequence[SinkRecord], schemaless: Callable[[list[Any]], pa.Array[Any]] = pa.array) -> ColumnBatch:
    """Return records of the same ``kind`` as a batch. Raises DataError if values do not fit into Arrow arrays.

    ``schemaless`` makes the array of values without a schema.
    """
    first = run[0]
    return ColumnBatch(
        topic=first.topic,
        partition=first.original_kafka_partition,
        original_topic=first.original_topic,
        key=_column([record.key for record in run], first.key_schema, pa.array),
        value=_column([record.value for record in run], first.value_schema, schemaless),
        count=len(run),
        offsets=pa.array([record.original_kafka_offset for record in run], pa.int64()),
    )


def kind(record: SinkRecord) -> tuple[object, ...]:
    """Return what records of one batch have in common."""
    return (
        record.topic,
        record.original_topic,
        record.original_kafka_partition,
        record.key_schema,
        record.value_schema,
        record.value is None,
    )


def _column(values: list[Any], schema: Any, schemaless: Callable[[list[Any]], pa.Array[Any]]) -> Column:
    if all(value is None for value in values):
        return Column(schema, None)
    if schema is not None:
        from sluiceway.columns.arrays import to_array

        try:
            return Column(schema, to_array(schema, values))
        except NotColumnar as error:
            raise DataError(f"A value does not fit into a column: {error}") from error
    if any(isinstance(value, Struct) for value in values):
        raise DataError("A struct has no schema.")
    try:
        return Column(None, schemaless(values))
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"Schemaless values do not fit into columns: {error}") from error
