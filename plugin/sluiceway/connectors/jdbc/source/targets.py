"""Finds the offsets of tables for users who set them: the newest row, a time, or a number of rows further on or back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api import Offset, OffsetTarget, OffsetTargetKind, Partition
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.dialects.values import zone_of
from sluiceway.connectors.jdbc.source.config import SourceConfig
from sluiceway.connectors.jdbc.source.errors import as_connect_error
from sluiceway.connectors.jdbc.source.keys import BULK, INCREMENTING
from sluiceway.connectors.jdbc.source.offsets import (
    QUERY_PARTITION,
    RANGE_FIELD,
    Position,
    old_table_partition,
    table_partition,
    whole_number,
)
from sluiceway.connectors.jdbc.source.shape import Shape, shape_of
from sluiceway.connectors.jdbc.source.table_reader import end_transaction, run
from sluiceway.connectors.jdbc.tables import find_tables
from sluiceway.data.instant import EPOCH
from sluiceway.errors import BadRequestError

if TYPE_CHECKING:
    import sqlalchemy as sa

_ONE = dt.timedelta(microseconds=1)

Stored = Sequence[tuple[Partition, Offset]]
Found = list[tuple[Partition, Offset | None]]


def find_offsets(config: SourceConfig, database: Database, target: OffsetTarget, stored: Stored) -> Found:
    """Return the offsets of a target for each table, or for the query. Raises BadRequestError, ConnectError.

    A table without a row at a target gets no offset, so that it is read from its beginning.
    """
    _refuse(config, target)
    if target.kind is OffsetTargetKind.EARLIEST and config.timestamp_initial is None:
        return [(partition, None) for partition, _ in stored]
    with database.connect() as connection:
        try:
            raw: Any = connection.connection.driver_connection
            database.dialect.prepare_for_reading(raw, zone_of(config.connection.timezone))
            tables = [None] if config.query else find_tables(connection, database.dialect, config.selection)
            return [each for table in tables for each in _of_table(config, database, connection, table, target, stored)]
        except Exception as error:
            converted = as_connect_error(error, database, "the database")
            if converted is error:
                raise
            raise converted from error
        finally:
            end_transaction(connection)


def _refuse(config: SourceConfig, target: OffsetTarget) -> None:
    """Raise BadRequestError if the mode has no such targets."""
    if config.mode == BULK:
        raise BadRequestError("With mode=bulk all rows are read at each poll, so there are no offsets to set.")
    if target.kind is OffsetTargetKind.TIMESTAMP and not config.uses_timestamp:
        raise BadRequestError(
            f"With mode={config.mode} rows have no timestamps. Choose the beginning, the end, or a number to shift by."
        )
    if target.kind is OffsetTargetKind.SHIFT and config.mode != INCREMENTING:
        raise BadRequestError(
            f"With mode={config.mode} offsets are timestamps, which cannot be shifted by a number. Choose a time."
        )


def _of_table(
    config: SourceConfig,
    database: Database,
    connection: sa.Connection,
    table: TableId | None,
    target: OffsetTarget,
    stored: Stored,
) -> Found:
    partition: Partition = QUERY_PARTITION if table is None else table_partition(table)
    known = {frozenset(each.items()): offset for each, offset in stored}
    own = known.get(frozenset(partition.items()))
    # Positions in ranges of the first snapshot, and those of older connectors, would be continued otherwise.
    old = None if table is None else old_table_partition(table)
    outdated = [each for each, _ in stored if each == old or (RANGE_FIELD in each and partition.items() <= each.items())]
    before = Position.of(own if own or old is None else known.get(frozenset(old.items())))
    if target.kind is OffsetTargetKind.SHIFT and before.incrementing is None:
        return []
    columns = (
        database.dialect.query_columns(connection, config.query) if table is None else database.dialect.columns(connection, table)
    )
    name = "the query" if table is None else f"table {table}"
    zone = zone_of(config.connection.timezone)
    shape = shape_of(config, database.dialect, columns, partition, table=table, name=name, zone=zone)
    position = _position(config, connection.connection.driver_connection, shape, target, before)
    return [(partition, position.offset() or None), *((each, None) for each in outdated)]


def _position(config: SourceConfig, raw: Any, shape: Shape, target: OffsetTarget, before: Position) -> Position:
    if not config.uses_timestamp:
        [(lowest, highest)] = run(raw, shape.select.highest(shape.incrementing))
        if highest is None:
            return Position()
        low, high = whole_number(lowest) - 1, whole_number(highest)
        if target.kind is OffsetTargetKind.LATEST or before.incrementing is None:
            return Position(high)
        return Position(min(max(before.incrementing + target.number, low), high))
    assert shape.moment is not None  # noqa: S101 (the mode uses timestamps)
    nothing = (None,) * len(shape.columns)
    [(oldest, newest)] = run(raw, shape.select.times())
    if newest is None:
        return Position()
    first, last = shape.moment((*nothing, oldest)), shape.moment((*nothing, newest))
    moment = first if target.kind is OffsetTargetKind.EARLIEST else EPOCH + dt.timedelta(milliseconds=target.number)
    if target.kind is OffsetTargetKind.LATEST or moment > last:
        return Position(_highest_at(raw, shape, last), last)
    # With numbers, rows at the timestamp itself are read again; without, only later ones.
    return Position(None, moment) if config.uses_incrementing else Position(None, moment - _ONE)


def _highest_at(raw: Any, shape: Shape, moment: dt.datetime) -> int | None:
    if not shape.incrementing:
        return None
    [(number,)] = run(raw, shape.select.highest_since(moment))
    return None if number is None else whole_number(number)
