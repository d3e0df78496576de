"""Reads one table or query, one look after the other. Executor."""

from __future__ import annotations

import dataclasses
import datetime as dt
import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from sluiceway.api import Partition, SourceRecord
from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.source.config import TIMESTAMP, SourceConfig
from sluiceway.connectors.jdbc.source.horizon import Horizon, SafeNumbers, safe_time
from sluiceway.connectors.jdbc.source.offsets import PLAN_FIELD, Position, timestamp_offset, whole_number
from sluiceway.connectors.jdbc.source.row_streams import Rows, rows_of
from sluiceway.connectors.jdbc.source.rows import hold_back_equal_times
from sluiceway.connectors.jdbc.source.shape import Row, Shape, Snapshot, shape_of
from sluiceway.connectors.jdbc.source.sql import Bounds, KeyRange, Statement
from sluiceway.connectors.jdbc.source.values import UTC, converter, zone_of
from sluiceway.connectors.jdbc.source.wait_log import Wait
from sluiceway.data import Struct
from sluiceway.errors import DataError

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sluiceway.connectors.jdbc.connection import Database
    from sluiceway.connectors.jdbc.source.deletes import SeenKeys

log = logging.getLogger(__name__)

_KEYS_AT_ONCE = 2000


class TableReader:
    """Knows how far a table was read. ``look`` gives the records of one look, batch by batch; a look that is broken off is
    taken up by the next one behind the last batch that was given.
    """

    def __init__(
        self,
        config: SourceConfig,
        database: Database,
        horizon: Horizon,
        partition: Partition,
        *,
        table: TableId | None = None,
        position: Position = Position(),  # noqa: B008 (immutable)
        snapshot: Snapshot | None = None,
        plan: str = "",
        seen: SeenKeys | None = None,
    ) -> None:
        self.config = config
        self.table = table
        self.partition = partition
        self.position = position
        self.snapshot = snapshot
        self.seen = seen
        self.due = 0.0
        self.gone = False
        self.finished = False
        self.misses = 0
        """How many looks in turn met a table that was not as it had been a moment before."""
        self._database = database
        self._horizon = horizon
        self._zone = zone_of(config.connection.timezone)
        self._numbers = SafeNumbers()
        self._wait = Wait()
        self._shape: Shape | None = None
        self._more = {PLAN_FIELD: plan} if plan else {}
        self._safe: dict[str, Any] | None = self._offset()

    @property
    def name(self) -> str:
        return "the query" if self.table is None else f"table {self.table}"

    def _offset(self) -> dict[str, Any] | None:
        found = self.position.offset()
        return {**self._more, **found} if found else None

    @property
    def held_back(self) -> float | None:
        """For how many seconds there has been something that only waits for open transactions; None if there is nothing."""
        oldest = self._numbers.oldest
        if oldest is None:
            return None
        return self._wait.note(
            oldest,
            f"Rows of {self.name} from number {oldest} on wait for transactions that may have written "
            "to it before and are open still",
        )

    def look(self, connection: sa.Connection) -> Iterator[list[SourceRecord]]:
        """Read what is new; ``gone`` says afterwards whether there was no such table."""
        raw: Any = connection.connection.driver_connection
        if self.config.mode == TIMESTAMP and self.snapshot is None:
            self.position = Position.of(self._safe)  # a look that was broken off may have left rows of its last time
        shape = self._look_at_columns(connection)
        self.gone = shape is None
        if shape is None:
            end_transaction(connection)
            return
        bounds = self._bounds(raw, shape)
        end_transaction(connection)
        if bounds is None:
            return
        key_range = None if self.snapshot is None else self._rest_of(self.snapshot)
        statement = shape.select.rows(self.position, bounds, key_range)
        newest: list[SourceRecord] = []
        given = self.position, self._safe
        try:
            with rows_of(self._database.dialect.name, raw, statement) as rows, closing(self._batches(rows)) as batches:
                for batch, following in batches:
                    newest = self._records(shape, batch, following)
                    if following is not None:
                        given = self.position, self._safe
                        yield newest
            end_transaction(connection)  # before the last batch is given, for the next call may be long in coming
        except BaseException:
            self.position, self._safe = given
            raise
        if newest:
            yield newest
        self.finished = self.snapshot is not None

    def _rest_of(self, snapshot: Snapshot) -> KeyRange:
        done = self.position.incrementing
        return snapshot.range if done is None else dataclasses.replace(snapshot.range, low=done)

    def _batches(self, rows: Rows) -> Generator[tuple[Sequence[Row], Row | None]]:
        """Give each batch with the row behind it, None if it is the last one."""
        size = self.config.batch_max_rows
        batch = rows.fetchmany(size)
        while batch:
            following = rows.fetchmany(size) if len(batch) == size else ()
            yield batch, following[0] if following else None
            batch = following

    def _records(self, shape: Shape, rows: Sequence[Row], following: Row | None) -> list[SourceRecord]:
        try:
            records = shape.make(rows)
        except (DataError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"A row of {self.name} behind {self.position.offset()} cannot be taken: {error}") from error
        newest = rows[-1]
        if self.snapshot is not None:
            self.position = Position(int(newest[shape.number])) if shape.number is not None else self.position
        elif shape.number is not None or shape.moment is not None:
            number = None if shape.number is None else int(newest[shape.number])
            self.position = Position(number, None if shape.moment is None else shape.moment(newest))
            if shape.number is None and shape.moment is not None:
                after = None if following is None else {**self._more, **timestamp_offset(shape.moment(following))}
                hold_back_equal_times(records, self._safe, after)
                self._safe = dict(records[-1].source_offset or {}) or None
        if self.seen is not None:
            self.seen.add(tuple(row[place] for place in shape.keys) for row in rows)
        return records

    # --- rows that are gone ---

    def current_keys(self, connection: sa.Connection) -> Iterator[list[tuple[Any, ...]]]:
        """Give the primary keys that the table has now."""
        shape = self._shape
        if shape is None:
            return
        names = [shape.columns[place].name for place in shape.keys]
        raw: Any = connection.connection.driver_connection
        with rows_of(self._database.dialect.name, raw, shape.select.keys(names)) as rows:
            while batch := rows.fetchmany(_KEYS_AT_ONCE):
                yield [tuple(row) for row in batch]
        end_transaction(connection)

    def tombstones(self, keys: Sequence[tuple[Any, ...]]) -> list[SourceRecord]:
        """Return a tombstone for each key, at the place that was read up to."""
        shape = self._shape
        assert shape is not None and shape.key_schema is not None  # noqa: S101, PT018 (the keys came from there)
        key_schema = shape.key_schema
        types = [shape.columns[place].type for place in shape.keys]
        makers = [converter(self._database.dialect.name, each, self.config.mapping, self._zone) for each in types]
        offset = self._offset() if shape.number is not None or shape.moment is None else self._safe

        def key_of(values: Row) -> Struct:
            changed = [value if make is None else make(value) for make, value in zip(makers, values, strict=True)]
            return Struct.of(key_schema, changed)

        return [SourceRecord(self.partition, offset, shape.topic, None, None, key_of(key), key_schema) for key in keys]

    # --- what the table looks like ---

    def _look_at_columns(self, connection: sa.Connection) -> Shape | None:
        """Return the table's shape, made anew where a column has come, gone or changed; None if the table is gone."""
        dialect = self._database.dialect
        if self.table is None:
            if self._shape is None:  # columns of a query are what they were when it began
                self._shape = self._make_shape(dialect.query_columns(connection, self.config.query))
            return self._shape
        columns = tuple(dialect.columns(connection, self.table))
        if not columns:
            return None
        if self._shape is None or self._shape.columns != columns:
            if self._shape is not None:
                log.info("The columns of %s have changed", self.name)
            self._shape = self._make_shape(columns)
        return self._shape

    def _make_shape(self, columns: Sequence[Column]) -> Shape:
        return shape_of(
            self.config,
            self._database.dialect,
            columns,
            self.partition,
            table=self.table,
            place=self.name,
            zone=self._zone,
            snapshot=self.snapshot,
            more=self._more,
        )

    # --- how far to read ---

    def _bounds(self, raw: Any, shape: Shape) -> Bounds | None:
        """Return what to stay below; None if nothing can be new."""
        if self.snapshot is not None:
            return self.snapshot.bounds
        moment = None
        if self.config.uses_timestamp:
            now, since = self._horizon.clock(raw), self._horizon.open_since(raw)
            self._wait.note(since, f"Rows of {self.name} with times after {since} wait for a transaction open since then")
            moment = safe_time(
                now,
                since,
                fraction=shape.fraction,
                coarse=self._horizon.coarse,
                delay=self.config.timestamp_delay,
            )
            if self.position.timestamp is None and self.config.timestamp_initial is not None:
                self._begin_at(self.config.timestamp_initial, now)
            if self.position.timestamp is not None and moment <= self.position.timestamp:
                return None
        if self.config.mode != "incrementing":
            return Bounds(None, moment)
        [(_, highest)] = run(raw, shape.select.highest(shape.incrementing))
        raw.rollback()
        read = self.position.incrementing
        if highest is None or (read is not None and highest <= read):
            self._numbers = SafeNumbers()  # what waited has been deleted, if there was any
            return None
        try:
            number = whole_number(highest)
        except DataError as error:
            raise DataError(f"The highest number of {self.name} cannot be taken: {error}") from error
        safe = self._numbers.add(number, self._horizon.writers(raw, self.table))
        return None if safe is None or (read is not None and safe <= read) else Bounds(safe, None)

    def _begin_at(self, initial: int, now: Any) -> None:
        moment = now if initial == -1 else dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(milliseconds=initial)
        self.position = Position(self.position.incrementing, moment)
        self._safe = self._offset()


def end_transaction(connection: sa.Connection) -> None:
    """Hold nothing any more that somebody who alters a table would have to wait for."""
    connection.rollback()
    raw: Any = connection.connection.driver_connection
    raw.rollback()  # for what was done behind SQLAlchemy's back


def run(raw: Any, statement: Statement) -> list[Any]:
    """Run a statement on a connection of the driver and return its few rows."""
    cursor = raw.cursor()
    try:
        cursor.execute(statement.sql, statement.parameters)
        return list(cursor.fetchall())
    finally:
        cursor.close()
