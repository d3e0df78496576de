"""Compiles how the rows of a table or query become records, from its columns. No I/O."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import Partition
from sluiceway.connectors.jdbc.columns import Column, row_schema
from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.dialects.values import UTC, Convert, moment_of
from sluiceway.connectors.jdbc.dialects.writer import Row
from sluiceway.connectors.jdbc.source.columns import check_not_null, check_types, find_column, incrementing_column
from sluiceway.connectors.jdbc.source.config import SourceConfig
from sluiceway.connectors.jdbc.source.rows import MakeRecords, records_function
from sluiceway.connectors.jdbc.source.sql import Bounds, KeyRange, SelectBuilder
from sluiceway.connectors.jdbc.source.values import converter
from sluiceway.data import Schema
from sluiceway.errors import ConnectError


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A range of a table's first snapshot; ``plan`` is the text of the plan that it belongs to."""

    range: KeyRange
    bounds: Bounds
    plan: str


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a table, and what is compiled from them."""

    columns: tuple[Column, ...]
    schema: Schema
    converters: Sequence[Convert | None]
    select: SelectBuilder
    make: MakeRecords
    incrementing: str
    number: int | None
    """The index of the number in a row, None without one."""
    moment: Callable[[Row], dt.datetime] | None
    """Returns a row's timestamp in UTC; None without a timestamp column."""
    fraction: int
    key_schema: Schema | None
    keys: tuple[int, ...]
    topic: str

    @property
    def by_moment_only(self) -> bool:
        """Whether records have offsets by timestamp alone. Snapshots and incrementing modes have a number."""
        return self.number is None and self.moment is not None


def shape_of(
    config: SourceConfig,
    dialect: Dialect,
    columns: Sequence[Column],
    partition: Partition,
    *,
    table: TableId | None,
    name: str,
    zone: dt.tzinfo,
    snapshot: Snapshot | None = None,
    offset_fields: Mapping[str, Any] | None = None,
) -> Shape:
    """Return the shape of a table with these columns; ``name`` is for messages, ``offset_fields`` are added to each offset.

    Raises ConnectError if columns that the config names are missing or unusable.
    """
    names = [column.name for column in columns]
    incrementing = incrementing_column(config, columns, name) if config.uses_incrementing else ""
    stamps = [find_column(names, stamp, name) for stamp in config.timestamp_columns] if config.uses_timestamp else []
    check_not_null(config, columns, incrementing, stamps, name)
    by_name = {column.name: column for column in columns}
    check_types(by_name, incrementing, stamps, name)
    select = SelectBuilder(
        dialect, columns, table, config.query, suffix=config.query_suffix, incrementing=incrementing, timestamps=stamps, zone=zone
    )
    schema = row_schema(None if table is None else table.table, columns, config.mapping)
    converters = [converter(dialect, column.type, config.mapping, zone) for column in columns]
    number_column = incrementing if snapshot is None else snapshot.range.column
    number = names.index(number_column) if number_column else None
    time = len(columns) if stamps else None
    keys = _key_indexes(columns, name) if config.deletes_interval else ()
    key_schema = row_schema(None, [columns[index] for index in keys], config.mapping) if keys else None
    instant = moment_of(UTC if not stamps or by_name[stamps[0]].type.zoned else zone)
    topic = config.topic_prefix + ("" if table is None else table.table)
    make = records_function(
        schema,
        converters,
        partition,
        topic,
        key=None if key_schema is None else (key_schema, keys),
        incrementing=number,
        timestamp=(time, lambda value: instant(_datetime(value))) if time is not None and snapshot is None else None,
        width=len(columns) + bool(stamps),
        offset_fields=offset_fields,
    )
    fraction = min((by_name[stamp].type.fraction for stamp in stamps), default=6)
    moment = None if time is None else lambda row: instant(_datetime(row[time]))
    return Shape(
        tuple(columns), schema, converters, select, make, incrementing, number, moment, fraction, key_schema, keys, topic
    )


def _key_indexes(columns: Sequence[Column], name: str) -> tuple[int, ...]:
    """Return the indexes of the primary key's columns. Raises ConnectError if there are none."""
    keys = tuple(index for index, column in enumerate(columns) if column.primary_key)
    if not keys:
        raise ConnectError(f"{name} has no primary key to find deleted rows by. Add one, or set sluiceway.deletes.interval.ms=0.")
    return keys


def _datetime(value: Any) -> Any:
    """Return an effective timestamp as a datetime; dialects may select it as an ISO text."""
    return dt.datetime.fromisoformat(value) if isinstance(value, str) else value
