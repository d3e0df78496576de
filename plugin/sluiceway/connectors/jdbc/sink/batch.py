"""Makes the records of a batch into rows of tables that are fit to take them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.sink.columns import BinderOf, Layout, layout_of
from sluiceway.connectors.jdbc.sink.config import DELETE_ENABLED, SinkOptions
from sluiceway.connectors.jdbc.sink.statements import Statements, table_of
from sluiceway.connectors.jdbc.sink.steps import Item, Target
from sluiceway.connectors.jdbc.sink.tables import Table, Tables
from sluiceway.connectors.jdbc.sink.types import binder_of, into_bits
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, DataError


@dataclass(slots=True)
class BatchPlan:
    """Rows to write, and records of which none can be made."""

    items: list[Item] = field(default_factory=list)
    refused: list[tuple[SinkRecord, Exception]] = field(default_factory=list)


class _Kind(NamedTuple):
    """What records have to have in common to be written alike."""

    topic: str
    key_schema: Schema | None
    value_schema: Schema | None
    tombstone: bool


class Planner:
    """For one connection: after another one, tables may be others."""

    def __init__(self, options: SinkOptions, statements: Statements, tables: Tables) -> None:
        self._options = options
        self._statements = statements
        self._tables = tables
        self._binder_of = functools.partial(binder_of, statements.dialect.name, options.zone)
        self._targets: dict[_Kind, Target | DataError] = {}

    def plan(self, records: Sequence[SinkRecord]) -> BatchPlan:
        """Return what is to be written for records; creates and evolves tables, in transactions of their own.

        Raises ConnectError for what concerns all records of a table, and what the database raises.
        """
        plan = BatchPlan()
        append = plan.items.append
        topic, key_schema, value_schema, tombstone = "", None, None, None
        target: Target | DataError | None = None
        extract = None
        for record in records:
            # Schemas mostly are the same objects from record to record, which is far quicker to see than that they are equal.
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
                target = self._target(_Kind(topic, key_schema, None if tombstone else value_schema, tombstone))
                if isinstance(target, Target):
                    extract = target.layout.key if target.delete else target.layout.row
            try:
                if isinstance(target, DataError):
                    raise DataError(str(target))
                if target is None:  # a deletion from a table that is not there
                    continue
                append(Item(target, extract(record), record))  # type: ignore[misc]
            except Exception as error:  # noqa: BLE001 (values that fit no column, keys that are null)
                plan.refused.append((record, _placed(record, error)))
        return plan

    def _target(self, kind: _Kind) -> Target | DataError | None:
        target = self._targets.get(kind)
        if target is None:
            try:
                target = self._new_target(kind)
            except DataError as error:
                target = error
            if target is not None:
                self._targets[kind] = target
        return target

    def _new_target(self, kind: _Kind) -> Target | None:
        options = self._options
        if kind.tombstone and not options.delete_enabled:
            raise DataError(
                f"The record has no value. Set {DELETE_ENABLED}=true to have it delete its row, or drop such records with a "
                "transform (Filter with the predicate RecordIsTombstone)."
            )
        layout = self._layout(kind, self._binder_of)
        name = table_of(self._statements.dialect, options.table_format, kind.topic)
        table = self._tables.fit(name, layout, create=not (kind.tombstone and options.auto_create))
        if table is None:
            return None
        if table.bits:
            layout = self._layout(kind, into_bits(self._binder_of, lambda field: table.column(field) in table.bits))
        return self._as_target(name, table, layout, kind.tombstone)

    def _layout(self, kind: _Kind, binder_of: BinderOf) -> Layout:
        return layout_of(self._options, binder_of, kind.key_schema, kind.value_schema, tombstone=kind.tombstone)

    def _as_target(self, name: TableId, table: Table, layout: Layout, tombstone: bool) -> Target:
        columns = tuple(table.column(column) or column for column in layout.names)
        if len(set(columns)) < len(columns):
            raise ConnectError(f"Two fields of {layout.names} belong to one column of table {name}, which has {table.columns}.")
        return Target(name, self._statements.dialect.qualified(name), columns, layout.keys, layout, tombstone, table.view)


def _placed(record: SinkRecord, error: Exception) -> DataError:
    place = f"{record.original_topic}-{record.original_kafka_partition}@{record.original_kafka_offset}"
    made = DataError(f"{place} cannot be written: {error}")
    made.__cause__ = error
    return made
