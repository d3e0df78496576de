"""Turns the records of a batch into rows of tables that can take them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sluiceway.api import ColumnBatch, NotColumnar, RowFormReason, SinkRecord
from sluiceway.config.intervals import COLUMN
from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.dialects.writer import Row, TargetTable
from sluiceway.connectors.jdbc.sink.columns import BinderOf, Layout, layout_of
from sluiceway.connectors.jdbc.sink.config import DELETE_ENABLED, SinkOptions
from sluiceway.connectors.jdbc.sink.steps import Item, Target
from sluiceway.connectors.jdbc.sink.tables import Table, Tables, table_of
from sluiceway.connectors.jdbc.sink.types import binder_of, with_bits
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, DataError


@dataclass(slots=True)
class BatchPlan:
    """The rows to write, and the records that cannot become rows."""

    items: list[Item] = field(default_factory=list)
    refused: list[tuple[SinkRecord, Exception]] = field(default_factory=list)


class _RecordKind(NamedTuple):
    """The properties of a record that decide its table and columns."""

    topic: str
    key_schema: Schema | None
    value_schema: Schema | None
    tombstone: bool


class Planner:
    """Plans batches for one connection; a new connection needs a new planner, because tables may have changed."""

    def __init__(self, options: SinkOptions, dialect: Dialect, tables: Tables) -> None:
        self._options = options
        self._dialect = dialect
        self._tables = tables
        self._binder_of = functools.partial(binder_of, dialect, options.zone)
        self._targets: dict[_RecordKind, Target | DataError] = {}

    def plan(self, records: Sequence[SinkRecord]) -> BatchPlan:
        """Return the writes for records; creates and extends tables in transactions of their own.

        Raises ConnectError for a problem of all records of a table, and the database's errors.
        """
        plan = BatchPlan()
        append = plan.items.append
        topic, key_schema, value_schema, tombstone = "", None, None, None
        target: Target | DataError | None = None
        extract = None
        for record in records:
            # Consecutive records mostly share their schema objects, and identity is much cheaper to check than equality.
            if (
                record.value_schema is not value_schema
                or record.key_schema is not key_schema
                or record.topic != topic
                or (record.value is None) is not tombstone
            ):
                topic, key_schema, value_schema, tombstone = (
                    record.topic,
                    record.key_schema,
                    record.value_schema,
                    record.value is None,
                )
                target = self._target(_RecordKind(topic, key_schema, None if tombstone else value_schema, tombstone))
                if isinstance(target, Target):
                    extract = target.layout.key if target.delete else target.layout.row
            try:
                if isinstance(target, DataError):
                    raise DataError(str(target))
                if target is None:  # a deletion from a table that does not exist
                    continue
                append(Item(target, extract(record), record))  # type: ignore[misc]  # set with the target
            except Exception as error:  # noqa: BLE001 (values that fit no column, keys that are null)
                plan.refused.append((record, not_writable(record, error, str(error))))
        return plan

    def plan_columns(self, batch: ColumnBatch) -> tuple[Target, list[Row]]:
        """Return the rows of a batch without tombstones, all for one table. Raises NotColumnar, and what ``plan`` raises."""
        from sluiceway.connectors.jdbc.sink.column_rows import rows_of  # loads Arrow

        if batch.value.values is None or batch.value.values.null_count:
            raise NotColumnar("records without a value")
        target = self._target(_RecordKind(batch.topic, batch.key.schema, batch.value.schema, tombstone=False))
        if not isinstance(target, Target):
            raise NotColumnar("records that cannot be written, or of a table that does not exist", RowFormReason.ERROR)
        return target, rows_of(target.layout, batch)

    def by_column(self, name: TableId, column: str) -> TargetTable | None:
        """Return a table with one of its columns as the key; None if it, or the column, does not exist."""
        table = self._tables.find(name)
        found = None if table is None else table.column(column)
        return None if found is None else TargetTable(name, self._dialect.qualified(name), (found,), 1)

    def table_of(self, topic: str) -> TableId:
        """Return the table for a topic's records."""
        return table_of(self._dialect, self._options.table_format, topic)

    def _target(self, kind: _RecordKind) -> Target | DataError | None:
        target = self._targets.get(kind)
        if target is None:
            try:
                target = self._new_target(kind)
            except DataError as error:
                target = error
            if target is not None:
                self._targets[kind] = target
        return target

    def _new_target(self, kind: _RecordKind) -> Target | None:
        options = self._options
        if kind.tombstone and not options.delete_enabled:
            raise DataError(
                f"The record has no value. Set {DELETE_ENABLED}=true to have it delete its row, or drop such records with a "
                "transform (Filter with the predicate RecordIsTombstone)."
            )
        layout = self._layout(kind, self._binder_of)
        name = table_of(self._dialect, options.table_format, kind.topic)
        table = self._tables.prepare(name, layout, create=not (kind.tombstone and options.auto_create))
        if table is None:
            return None
        if table.bits:
            layout = self._layout(kind, with_bits(self._binder_of, lambda field: table.column(field) in table.bits))
        return self._as_target(name, table, layout, kind.tombstone)

    def _layout(self, kind: _RecordKind, binder_of: BinderOf) -> Layout:
        return layout_of(self._options, binder_of, kind.key_schema, kind.value_schema, tombstone=kind.tombstone)

    def _as_target(self, name: TableId, table: Table, layout: Layout, tombstone: bool) -> Target:
        columns = tuple(table.column(column) or column for column in layout.names)
        if len(set(columns)) < len(columns):
            raise ConnectError(
                f"Two of the fields {', '.join(layout.names)} belong to the same column of table {name}, which has "
                f"{', '.join(table.columns)}. Rename one with ReplaceField, or leave it out with fields.whitelist."
            )
        column = self._options.interval_column
        if column is not None and not tombstone and column.casefold() not in {each.casefold() for each in columns}:
            raise ConnectError(
                f"Rows for table {name} have no column {column} ({COLUMN}), by which those of an interval are replaced. A "
                "transform or fields.whitelist may leave it out."
            )
        keys = frozenset(columns[: layout.keys])
        return Target(
            name,
            self._dialect.qualified(name),
            columns,
            layout.keys,
            layout,
            tombstone,
            view=table.view,
            other_keys=any(key != keys for key in table.unique),
        )


def not_writable(record: SinkRecord, error: Exception, reason: str, table: TableId | None = None) -> DataError:
    """Return the error of a record that cannot be written, with its topic, partition and offset."""
    position = f"{record.original_topic}-{record.original_kafka_partition}@{record.original_kafka_offset}"
    made = DataError(f"{position} cannot be written{'' if table is None else f' to table {table}'}: {reason}")
    made.__cause__ = error
    return made
