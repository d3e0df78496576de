"""What a table or query looks like now, and how its rows become records. Executor."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import Partition
from sluiceway.connectors.jdbc.columns import Column, row_schema
from sluiceway.connectors.jdbc.dialects.base import Dialect, TableId
from sluiceway.connectors.jdbc.source.columns import check_not_null, check_types, found_column, incrementing_column
from sluiceway.connectors.jdbc.source.config import SourceConfig
from sluiceway.connectors.jdbc.source.rows import MakeRecords, records_function
from sluiceway.connectors.jdbc.source.sql import Bounds, KeyRange, SelectBuilder
from sluiceway.connectors.jdbc.source.values import UTC, converter, moment_of
from sluiceway.data import Schema
from sluiceway.errors import ConnectError

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One range of a table's first reading. ``plan`` is the text of the plan that it belongs to."""

    range: KeyRange
    bounds: Bounds
    plan: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A table as it is now, and what follows from that."""

    columns: tuple[Column, ...]
    select: SelectBuilder
    make: MakeRecords
    incrementing: str
    number: int | None
    """Where in a row the number is."""
    moment: Callable[[Row], dt.datetime] | None
    """A row's time, where times count."""
    fraction: int
    key_schema: Schema | None
    keys: tuple[int, ...]
    topic: str


def shape_of(
    config: SourceConfig,
    dialect: Dialect,
    columns: Sequence[Column],
    partition: Partition,
    *,
    table: TableId | None,
    place: str,
    zone: dt.tzinfo,
    snapshot: Snapshot | None = None,
    more: Mapping[str, Any] | None = None,
) -> Shape:
    """Return the shape of a table with these columns; ``place`` is what messages call it, ``more`` goes into each offset.

    Raises ConnectError where the columns that the config names are missing or of no use.
    """
    names = [column.name for column in columns]
    incrementing = incrementing_column(config, columns, place) if config.uses_incrementing else ""
    stamps = [found_column(names, name, place) for name in config.timestamp_columns] if config.uses_timestamp else []
    check_not_null(config, columns, incrementing, stamps, place)
    by_name = {column.name: column for column in columns}
    check_types(by_name, incrementing, stamps, place)
    select = SelectBuilder(
        dialect,
        columns,
        table=table,
        query=config.query,
        suffix=config.query_suffix,
        incrementing=incrementing,
        timestamps=stamps,
        zone=zone,
    )
    schema = row_schema(None if table is None else table.table, columns, config.mapping)
    converters = [converter(dialect.name, column.type, config.mapping, zone) for column in columns]
    number_column = incrementing if snapshot is None else snapshot.range.column
    number = names.index(number_column) if number_column else None
    time = len(columns) if stamps else None
    keys = tuple(place for place, column in enumerate(columns) if column.primary_key) if config.deletes_interval else ()
    if config.deletes_interval and not keys:
        raise ConnectError(f"{place} has no primary key to look for deleted rows by; set sluiceway.deletes.interval.ms=0.")
    key_schema = row_schema(None, [columns[place] for place in keys], config.mapping) if keys else None
    instant = moment_of(UTC if not stamps or by_name[stamps[0]].type.zoned else zone)
    topic = config.topic_prefix + ("" if table is None else table.table)
    make = records_function(
        schema,
        converters,
        partition,
        topic,
        key=None if key_schema is None else (key_schema, keys),
        incrementing=number,
        timestamp=(time, lambda value: instant(_time(value))) if time is not None and snapshot is None else None,
        width=len(columns) + bool(stamps),
        more=more,
    )
    fraction = min((by_name[name].type.fraction for name in stamps), default=6)
    moment = None if time is None else lambda row: instant(_time(row[time]))
    return Shape(tuple(columns), select, make, incrementing, number, moment, fraction, key_schema, keys, topic)


def _time(value: Any) -> Any:
    """Return a time that counts as a datetime: SQLite's come as texts."""
    return dt.datetime.fromisoformat(value) if isinstance(value, str) else value
