"""Reads one table or query in passes: each pass reads what is new since the last. Runs on the executors."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from sluiceway.api import NotColumnar, Partition, Refusal, RowRecords, SourceColumns, SourceRecord
from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.dialects.base import Rows
from sluiceway.connectors.jdbc.dialects.horizon import Horizon
from sluiceway.connectors.jdbc.dialects.sql import Statement, TableId
from sluiceway.connectors.jdbc.dialects.values import zone_of
from sluiceway.connectors.jdbc.dialects.writer import Row
from sluiceway.connectors.jdbc.source.config import SourceConfig
from sluiceway.connectors.jdbc.source.horizon import SafeNumbers, WaitLog, safe_time
from sluiceway.connectors.jdbc.source.keys import INCREMENTING, TIMESTAMP
from sluiceway.connectors.jdbc.source.offsets import PLAN_FIELD, Position, timestamp_offset, whole_number
from sluiceway.connectors.jdbc.source.rows import hold_back_equal_times
from sluiceway.connectors.jdbc.source.shape import Shape, Snapshot, shape_of
from sluiceway.connectors.jdbc.source.sql import Bounds, KeyRange
from sluiceway.connectors.jdbc.source.values import converter
from sluiceway.data import Struct
from sluiceway.data.instant import EPOCH
from sluiceway.errors import DataError

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sluiceway.connectors.jdbc.connection import Database
    from sluiceway.connectors.jdbc.source.seen_keys import SeenKeys

log = logging.getLogger(__name__)

_KEYS_AT_ONCE = 2000
FEWEST_ROWS_FOR_COLUMNS = 2000
"""Smaller batches are records: rows are read as Python values, so that columns save little and have a cost for each batch."""

Batch = list[SourceRecord] | SourceColumns


class TableReader:
    """Tracks how far a table has been read. After a pass that was abandoned, the next one continues after its last batch."""

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
        """The begin of the next pass, by the monotonic clock."""
        self.read_up_to: float | None = None
        """The moment up to which all rows are read, by the monotonic clock; None before the end of the first pass."""
        self.reached_end = False
        """Whether all rows of the interval were read, if a run is for one."""
        self.gone = False
        """Whether the last pass found no such table."""
        self.finished = False
        self.as_columns = False
        """Whether the next batch may be columns."""
        self.changes = 0
        """The number of passes in a row that failed because the table changed after its columns were read."""
        self._database = database
        self._horizon = horizon
        self._zone = zone_of(config.connection.timezone)
        self._numbers = SafeNumbers()
        self._now: tuple[dt.datetime, float] | None = None  # the database's time at a moment of the monotonic clock
        self._last_pass = False  # whether the pass reads the interval to its end
        self._margin = 0.0  # seconds that the pass leaves out, because open transactions may add rows there
        self._interval = None if config.interval is None else (_moment(config.interval.start), _moment(config.interval.end))
        self._waits = WaitLog()
        self._shape: Shape | None = None
        self._refusal: Refusal | None = None  # why rows of this pass did not fit into columns
        self._offset_fields = {PLAN_FIELD: plan} if plan else {}
        self._safe: dict[str, Any] | None = self._offset()

    @property
    def name(self) -> str:
        return "the query" if self.table is None else f"table {self.table}"

    def _offset(self) -> dict[str, Any] | None:
        found = self.position.offset()
        return {**self._offset_fields, **found} if found else None

    @property
    def held_back(self) -> float | None:
        """The seconds for which rows have waited for open transactions; None if no row waits."""
        oldest = self._numbers.oldest
        if oldest is None:
            return None
        return self._waits.note(
            oldest, f"Rows of {self.name} from number {oldest} on wait for open transactions that may have written to it"
        )

    def lag(self, now: float) -> float | None:
        """Return the seconds by which the rows that were read are behind the database at most. Any thread may ask.

        Args:
            now: by the monotonic clock.
        """
        clock, newest, read = self._now, self.position.timestamp, self.read_up_to
        ages = [] if read is None else [now - read]
        if clock is not None and newest is not None:  # within a long pass
            ages.append((clock[0] - newest).total_seconds() + now - clock[1])
        return max(0.0, min(ages)) if ages else None

    def passed(self, began: float) -> None:
        """Note the end of a pass over all rows that there were when it began, but those that wait for open transactions."""
        self.read_up_to = began - max(self._margin, self.held_back or 0.0)
        self.reached_end = self._last_pass

    def read(self, connection: sa.Connection) -> Generator[Batch]:
        """Run a pass: yield the batches of new records, and end the transaction."""
        raw: Any = connection.connection.driver_connection
        if self.config.mode == TIMESTAMP and self.snapshot is None:
            self.position = Position.of(self._safe)  # an abandoned pass may not have reached all rows of its last timestamp
        shape, bounds = self._shape_and_bounds(connection)
        self.gone = shape is None
        end_transaction(connection)
        if shape is None or bounds is None:
            return
        key_range = None if self.snapshot is None else self._rest_of(self.snapshot)
        statement = shape.select.rows(self.position, bounds, key_range)
        newest: Batch = []
        self._refusal = None
        delivered = self.position, self._safe
        try:
            with self._database.dialect.rows(raw, statement) as rows, closing(self._batches(rows)) as batches:
                for batch, following in batches:
                    newest = self._batch(shape, batch, following)
                    if following is not None:
                        delivered = self.position, self._safe
                        yield newest
            end_transaction(connection)  # before the last batch, because the next poll may be long in coming
        except BaseException:
            self.position, self._safe = delivered
            raise
        if newest:
            yield newest
        self.finished = self.snapshot is not None

    def _shape_and_bounds(self, connection: sa.Connection) -> tuple[Shape | None, Bounds | None]:
        """Return the table's shape, None if it does not exist, and which rows to read, None if there are none.

        The shape is at least as new as the rows within the bounds. Otherwise a row that was added right after a column would be
        read without that column.
        """
        raw: Any = connection.connection.driver_connection
        shape = self._current_shape(connection)
        while shape is not None:
            bounds = self._bounds(raw, shape)
            after = shape if bounds is None else self._current_shape(connection)
            if after is shape:
                return shape, bounds
            shape = after
        return None, None

    def _rest_of(self, snapshot: Snapshot) -> KeyRange:
        done = self.position.incrementing
        return snapshot.range if done is None else dataclasses.replace(snapshot.range, low=done)

    def _batches(self, rows: Rows) -> Generator[tuple[Sequence[Row], Row | None]]:
        """Yield each batch with the row after it, None if it is the last one."""
        size = self.config.batch_max_rows
        batch = rows.fetchmany(size)
        while batch:
            following = rows.fetchmany(size) if len(batch) == size else ()
            yield batch, following[0] if following else None
            batch = following

    def _batch(self, shape: Shape, rows: Sequence[Row], following: Row | None) -> Batch:
        """Return the records of rows, and advance the position to the last one. Raises DataError."""
        records = functools.partial(self._records, shape, rows, following, self.position, self._safe)
        made: Batch = self._columns(shape, rows, following, records) or records()
        if self._refusal is not None and not isinstance(made, SourceColumns):
            made = RowRecords(made, self._refusal)
        offset = made.source_offset if isinstance(made, SourceColumns) else made[-1].source_offset
        newest = rows[-1]
        if self.snapshot is not None:
            self.position = Position(int(newest[shape.number])) if shape.number is not None else self.position
        elif shape.number is not None or shape.moment is not None:
            number = None if shape.number is None else int(newest[shape.number])
            self.position = Position(number, None if shape.moment is None else shape.moment(newest))
            if shape.by_moment_only:
                self._safe = dict(offset or {}) or None
        if self.seen is not None:
            self.seen.add(tuple(row[index] for index in shape.keys) for row in rows)
        return made

    def _records(
        self, shape: Shape, rows: Sequence[Row], following: Row | None, before: Position, safe: dict[str, Any] | None
    ) -> list[SourceRecord]:
        """Return the records of the rows after the position ``before``, whose safe offset is ``safe``."""
        try:
            records = shape.make(rows)
        except (DataError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"A row of {self.name} after {before.offset()} cannot be converted: {error}") from error
        if shape.by_moment_only and shape.moment is not None:
            after = None if following is None else {**self._offset_fields, **timestamp_offset(shape.moment(following))}
            hold_back_equal_times(records, safe, after)
        return records

    def _columns(
        self, shape: Shape, rows: Sequence[Row], following: Row | None, records: Callable[[], list[SourceRecord]]
    ) -> SourceColumns | None:
        """Return the rows as columns, None if they must be records. After such a failure, the rest of the pass is records."""
        if not self.as_columns or self._refusal is not None or len(rows) < FEWEST_ROWS_FOR_COLUMNS:
            return None
        from sluiceway.connectors.jdbc.source.column_rows import column_batch  # loads Arrow

        try:
            batch = column_batch(shape, rows)
        except NotColumnar as error:
            self._refusal = error.refusal._replace(schema=shape.schema)
            return None
        offset = (
            self._held_back_offset(shape, rows, following) if shape.by_moment_only else shape.make(rows[-1:])[0].source_offset
        )
        return SourceColumns(batch=batch, source_partition=self.partition, source_offset=offset, records=records)

    def _held_back_offset(self, shape: Shape, rows: Sequence[Row], following: Row | None) -> dict[str, Any] | None:
        """Return the offset of the last record as ``hold_back_equal_times`` sets it."""
        assert shape.moment is not None  # noqa: S101 (records have offsets by timestamp)
        later = None if following is None else shape.moment(following)
        for row in reversed(rows):
            moment = shape.moment(row)
            if moment != later:
                return {**self._offset_fields, **timestamp_offset(moment)}
            later = moment
        return self._safe

    # --- deleted rows ---

    def deleted_rows(self, connection: sa.Connection, seen: SeenKeys) -> Iterator[list[SourceRecord]]:
        """Read all primary keys of the table; yield tombstones for those in ``seen`` that are gone."""
        shape = self._shape
        if shape is None:
            return
        names = [shape.columns[index].name for index in shape.keys]
        raw: Any = connection.connection.driver_connection
        with self._database.dialect.rows(raw, shape.select.keys(names)) as rows:
            while batch := rows.fetchmany(_KEYS_AT_ONCE):
                seen.add([tuple(row) for row in batch])
        end_transaction(connection)
        for keys in seen.missing():
            yield self._tombstones(shape, keys)

    def _tombstones(self, shape: Shape, keys: Sequence[tuple[Any, ...]]) -> list[SourceRecord]:
        key_schema = shape.key_schema
        if key_schema is None:
            return []
        types = [shape.columns[index].type for index in shape.keys]
        converters = [converter(self._database.dialect, each, self.config.mapping, self._zone) for each in types]
        offset = self._offset() if shape.number is not None or shape.moment is None else self._safe

        def key_of(values: Row) -> Struct:
            converted = [value if convert is None else convert(value) for convert, value in zip(converters, values, strict=True)]
            return Struct.of(key_schema, converted)

        return [SourceRecord(self.partition, offset, shape.topic, None, None, key_of(key), key_schema) for key in keys]

    # --- columns ---

    def _current_shape(self, connection: sa.Connection) -> Shape | None:
        """Return the table's shape, compiled again if a column has changed; None if the table does not exist."""
        dialect = self._database.dialect
        if self.table is None:
            if self._shape is None:  # the columns of a query are those of the first pass
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
            name=self.name,
            zone=self._zone,
            snapshot=self.snapshot,
            offset_fields=self._offset_fields,
        )

    # --- bounds ---

    def _bounds(self, raw: Any, shape: Shape) -> Bounds | None:
        """Return the upper bounds of a pass; None if there can be no new rows."""
        if self.snapshot is not None:
            return self.snapshot.bounds
        moment = None
        if self.config.uses_timestamp:
            moment = self._safe_moment(raw, shape)
            if self._interval is not None:
                return self._interval_bounds(moment, *self._interval)
            if self.position.timestamp is not None and moment <= self.position.timestamp:
                return None
        return self._number_bounds(raw, shape) if self.config.mode == INCREMENTING else Bounds(None, moment)

    def _interval_bounds(self, safe: dt.datetime, start: dt.datetime, end: dt.datetime) -> Bounds | None:
        """Return the bounds of a pass over an interval; None as long as open transactions may add rows to what is left of it."""
        before = start if self.position.timestamp is None else max(start, self.position.timestamp)
        self._last_pass = safe >= end
        return Bounds(None, min(safe, end), start) if min(safe, end) > before else None

    def _safe_moment(self, raw: Any, shape: Shape) -> dt.datetime:
        now, since = self._horizon.clock(raw), self._horizon.open_since(raw)
        self._waits.note(since, f"Rows of {self.name} with timestamps after {since} wait for a transaction open since then")
        initial = self.config.timestamp_initial if self._interval is None else None
        if self.position.timestamp is None and initial is not None:
            start = now if initial == -1 else _moment(initial)
            self.position = Position(self.position.incrementing, start)
            self._safe = self._offset()
        delay = self.config.timestamp_delay
        safe = safe_time(now, since, fraction=shape.fraction, coarse=self._horizon.coarse, delay=delay)
        self._now, self._margin = (now, time.monotonic()), (now - safe).total_seconds()
        return safe

    def _number_bounds(self, raw: Any, shape: Shape) -> Bounds | None:
        [(_, highest)] = run(raw, shape.select.highest(shape.incrementing))
        raw.rollback()
        read = self.position.incrementing
        if highest is None or (read is not None and highest <= read):
            self._numbers = SafeNumbers()  # rows that waited have been deleted
            return None
        try:
            number = whole_number(highest)
        except DataError as error:
            raise DataError(f"The highest number of {self.name} cannot be used: {error}") from error
        safe = self._numbers.add(number, self._horizon.writers(raw, self.table))
        return None if safe is None or (read is not None and safe <= read) else Bounds(safe, None)


def _moment(milliseconds: int) -> dt.datetime:
    return EPOCH + dt.timedelta(milliseconds=milliseconds)


def end_transaction(connection: sa.Connection) -> None:
    """Release all locks, for which an ALTER TABLE would have to wait."""
    connection.rollback()
    raw: Any = connection.connection.driver_connection
    raw.rollback()  # SQLAlchemy does not know of statements on the driver connection


def run(raw: Any, statement: Statement) -> list[Any]:
    """Execute a statement on a driver connection and return its few rows."""
    cursor = raw.cursor()
    try:
        cursor.execute(statement.sql, statement.parameters)
        return list(cursor.fetchall())
    finally:
        cursor.close()
