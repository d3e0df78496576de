"""Plans rounds by ranges of a column's values.

The plan of a round is stored in the offset of the table, and each of its splits is marked as produced in an offset of its own,
so that a round that was cut off is completed with the same ranges.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api import Offset, OffsetStorageReader
from sluiceway.api.data_frames import Round, Split, SplitReader
from sluiceway.config.intervals import Interval
from sluiceway.connectors.spark.jdbc_reader import JdbcReaders
from sluiceway.connectors.spark.parquet_reader import parquet_reader
from sluiceway.connectors.spark.ranges import (
    ROUND_FIELD,
    RoundPlan,
    ValueRange,
    Window,
    offset_of,
    plan_in,
    position_in,
    split_partition,
)
from sluiceway.connectors.spark.reading import check_names, load, reader_of
from sluiceway.connectors.spark.source_config import SourceConfig
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_INTEGERS = ("byte", "short", "integer", "long", "decimal")
_UNCOUNTED_SPLITS = 100  # the most splits that are planned without a count of rows
_MILLISECOND = 1000  # in microseconds
_TIMESTAMPS = ("timestamp", "timestamp_ntz", "date")


class ColumnRounds:
    """The rounds of one table, query or folder."""

    def __init__(
        self, spark: SparkSession, config: SourceConfig, offsets: OffsetStorageReader, interval: Interval | None = None
    ) -> None:
        """``interval``: read only rows whose timestamps are in it."""
        self._interval = None if interval is None else (interval.start * 1000, interval.end * 1000 - 1)
        self._spark = spark
        self._config = config
        self._offsets = offsets
        self._window: Window | None = None
        self._jdbc_readers = JdbcReaders(config) if config.is_jdbc and not config.by_timestamp else None

    def next_round(self) -> Round | None:
        """Return the round that has begun, or else the next rows."""
        stored = self._offsets.offset(self._config.partition)
        frame = load(self._spark, self._config)
        self._check(frame)
        plan = plan_in(stored)
        if plan is not None:
            self._window = None  # counted before the round began
            return self._round(frame, stored, plan)
        window = self._window_after(frame, position_in(stored, timestamp=self._config.by_timestamp))
        if window is None:
            return None
        slots, rows = self._config.splits, self._config.split_rows
        bounds = window.bounds(slots, rows)
        self._window = window.after(bounds[-1], (len(bounds) - 1) * rows)
        return self._round(frame, stored, RoundPlan(uuid.uuid4().hex, slots, tuple(bounds)))

    def _round(self, frame: DataFrame, stored: Offset | None, plan: RoundPlan) -> Round:
        config = self._config
        before = {key: value for key, value in (stored or {}).items() if key != ROUND_FIELD}
        marks = [split_partition(config.partition, number) for number in range(len(plan.ranges))]
        readers = self._readers(frame, plan)
        splits = [
            Split(frame.where(self._between(frame, low, high)), [(mark, {ROUND_FIELD: plan.id})], number % plan.slots, reader)
            for number, (mark, (low, high), reader) in enumerate(zip(marks, plan.ranges, readers, strict=True))
        ]
        return Round(
            config.topic,
            splits,
            config.schema_name,
            begin=[(config.partition, {**before, ROUND_FIELD: plan.text()})],
            end=[
                (config.partition, offset_of(plan.bounds[-1], timestamp=config.by_timestamp)),
                *((mark, None) for mark in marks),
            ],
        )

    def _readers(self, frame: DataFrame, plan: RoundPlan) -> Sequence[SplitReader | None]:
        """Return the readers of the plan's ranges, None for those that Spark reads."""
        config = self._config
        ranges = [ValueRange(config.column, low, high) for low, high in plan.ranges]
        readers = None if self._jdbc_readers is None else self._jdbc_readers.readers(frame, ranges)
        if readers is not None:
            return readers
        if config.is_jdbc:
            check_names(config)
            return [None] * len(ranges)
        files = sorted(frame.inputFiles()) if config.path else []
        return [parquet_reader(frame, config, files, each) for each in ranges]

    def _window_after(self, frame: DataFrame, position: int | None) -> Window | None:
        """Return the rows after a position. They are counted once, and again when all of them have been read."""
        if self._interval is not None:
            first = self._interval[0] - 1
            position = first if position is None else max(position, first)
        if self._window is not None and position == self._window.low - 1:
            return self._window
        by_query = self._config.is_jdbc and not self._config.by_timestamp
        low, high, count = self._bounds_by_query(position) if by_query else self._bounds(frame, position)
        if self._config.delay and high is not None:
            high = min(high, int((time.time() - self._config.delay) * 1_000_000))
        if self._interval is not None and high is not None:
            high = min(high, self._interval[1])
        return Window(low, high, count) if low is not None and high is not None and count and low <= high else None

    def _bounds(self, frame: DataFrame, position: int | None) -> tuple[int | None, int | None, int]:
        from pyspark.sql import functions

        check_names(self._config)
        value = self._number(frame)
        rows = frame if position is None else frame.where(self._after(frame, position))
        if self._interval is not None:
            rows = rows.where(self._until(frame, self._interval[1]))
        [(low, high, count)] = rows.agg(functions.min(value), functions.max(value), functions.count(value)).collect()
        return (None if low is None else int(low)), (None if high is None else int(high)), int(count)

    def _bounds_by_query(self, position: int | None) -> tuple[int | None, int | None, int]:
        """Let the database find the bounds, because Spark would fetch the column of all rows.

        An incrementing column has each value once, so rows need no count, which is slow for large tables, unless the values
        may have large gaps.
        """
        # The first column is never null: SQLite's driver fails if it is null and a decimal, as MIN of no rows is.
        _, low, high = self._query("1 AS present, MIN({0}) AS low_value, MAX({0}) AS high_value", position)
        if low is None or high is None:
            return None, None, 0
        values = int(high) - int(low) + 1
        if values > _UNCOUNTED_SPLITS * self._config.split_rows:
            values = int(self._query("COUNT({0}) AS row_count", position)[0])
        return int(low), int(high), values

    def _query(self, selected: str, position: int | None) -> Sequence[Any]:
        config, column = self._config, self._config.column
        where = "" if position is None else f" WHERE {column} > {position}"
        query = f"SELECT {selected.format(column)} FROM {config.rows}{where}"  # noqa: S608
        [found] = reader_of(self._spark, config).option("query", query).load().collect()
        return found

    def _number(self, frame: DataFrame) -> Column:
        """Return the column's value as an integer."""
        from pyspark.sql import functions

        column = frame[self._config.column]
        return functions.unix_micros(column.cast("timestamp")) if self._config.by_timestamp else column

    def _after(self, frame: DataFrame, position: int) -> Column:
        column, config = frame[self._config.column], self._config
        if not config.by_timestamp:
            return column > self._literal(position)
        # ORC's statistics round to milliseconds, and Spark skips rows by them: what it pushes down is wider than what counts.
        return (column >= self._literal((position // _MILLISECOND - 1) * _MILLISECOND)) & (self._number(frame) > position)

    def _until(self, frame: DataFrame, position: int) -> Column:
        column, config = frame[self._config.column], self._config
        if not config.by_timestamp:
            return column <= self._literal(position)
        return (column <= self._literal((position // _MILLISECOND + 2) * _MILLISECOND)) & (self._number(frame) <= position)

    def _between(self, frame: DataFrame, low: int, high: int) -> Column:
        return self._after(frame, low) & self._until(frame, high)

    def _literal(self, position: int) -> Column:
        """Return a position as a constant that formats can use to skip rows (predicate push-down)."""
        from pyspark.sql import functions

        number = functions.lit(position)
        return functions.timestamp_micros(number) if self._config.by_timestamp else number

    def _check(self, frame: DataFrame) -> None:
        """Raise ConnectError unless the column exists and has a type that can order rows."""
        name, allowed = self._config.column, _TIMESTAMPS if self._config.by_timestamp else _INTEGERS
        kinds = {column.name: column.dataType.typeName().partition("(")[0] for column in frame.schema.fields}
        if name not in kinds:
            raise ConnectError(f"There is no column {name}; there are {', '.join(kinds)}.")
        if kinds[name] not in allowed:
            raise ConnectError(f"Column {name} has type {kinds[name]}; it must be one of {', '.join(allowed)}.")
