"""Builds the statements of a JDBC source. No I/O."""

# ruff: noqa: S608 (names are quoted, values are parameters)
from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.sql import MARK, Statement, TableId, subquery
from sluiceway.connectors.jdbc.dialects.values import UTC
from sluiceway.connectors.jdbc.source.offsets import Position


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a pass: numbers up to ``incrementing``, timestamps from ``since`` to before ``timestamp``; None is none."""

    incrementing: int | None = None
    timestamp: dt.datetime | None = None
    since: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The numbers of a column above ``low`` and up to ``high``; None is unbounded."""

    column: str
    low: int | None = None
    high: int | None = None


class _Conditions:
    """The conditions of a WHERE clause and their parameters."""

    def __init__(self) -> None:
        self.parameters: list[Any] = []
        self._conditions: list[str] = []

    def add(self, condition: str, *values: Any) -> None:
        self._conditions.append(condition)
        self.parameters.extend(values)

    @property
    def clause(self) -> str:
        return f" where {' and '.join(self._conditions)}" if self._conditions else ""


class SelectBuilder:
    """Builds the statements for one table or query; ``zone`` is that of timestamps without one."""

    def __init__(
        self,
        dialect: Dialect,
        columns: Sequence[Column],
        table: TableId | None = None,
        query: str = "",
        *,
        suffix: str = "",
        incrementing: str = "",
        timestamps: Sequence[str] = (),
        zone: dt.tzinfo = UTC,
    ) -> None:
        self._dialect = dialect
        self._columns = {column.name: column for column in columns}
        self._source = subquery(query, "q") if table is None else dialect.qualified(table)
        self._suffix = f" {suffix}" if suffix else ""
        self._incrementing = dialect.quote(incrementing) if incrementing else ""
        self._number_nullable = bool(incrementing) and self._columns[incrementing].nullable
        self._zoned = bool(timestamps) and self._columns[timestamps[0]].type.zoned
        self._timestamp = self._timestamp_expression(timestamps) if timestamps else ""
        self._zone = zone
        self._fields = ", ".join(map(dialect.select_field, columns))

    def rows(self, position: Position, bounds: Bounds, key_range: KeyRange | None = None) -> Statement:
        """Return the statement for the rows after a position in order, or for those of a key range.

        In timestamp modes the effective timestamp is an additional last column.
        """
        where = _Conditions()
        order = [part for part in (self._timestamp, self._incrementing) if part]
        if key_range is not None:
            order = [self._in_range(key_range, where)]
        elif self._timestamp:
            self._after_timestamp(position, where)
        elif self._incrementing and position.incrementing is not None:
            where.add(f"{self._incrementing} > {MARK}", position.incrementing)
        if self._timestamp and bounds.since is not None:
            where.add(f"{self._timestamp} >= {self._dialect.timestamp_mark}", self._parameter(bounds.since))
        if self._timestamp and bounds.timestamp is not None:
            where.add(f"{self._timestamp} < {self._dialect.timestamp_mark}", self._parameter(bounds.timestamp))
        if self._incrementing and bounds.incrementing is not None:
            where.add(f"{self._incrementing} <= {MARK}", bounds.incrementing)
        elif self._number_nullable:
            where.add(f"{self._incrementing} is not null")
        ordered = f" order by {', '.join(order)}" if order else ""
        fields = self._fields + (f", {self._timestamp} as sluiceway_time" if self._timestamp else "")
        return self._statement(f"select {fields} from {self._source}{where.clause}{ordered}{self._suffix}", where.parameters)

    def _in_range(self, key_range: KeyRange, where: _Conditions) -> str:
        column = self._dialect.quote(key_range.column)
        if key_range.low is not None:
            where.add(f"{column} > {MARK}", key_range.low)
        if key_range.high is not None:
            where.add(f"{column} <= {MARK}", key_range.high)
        return column

    def _after_timestamp(self, position: Position, where: _Conditions) -> None:
        if position.timestamp is None:
            where.add(f"{self._timestamp} is not null")
            return
        parameter, mark = self._parameter(position.timestamp), self._dialect.timestamp_mark
        if not self._incrementing:
            where.add(f"{self._timestamp} > {mark}", parameter)
        elif position.incrementing is None:
            where.add(f"{self._timestamp} >= {mark}", parameter)
        else:  # an index on both columns serves this form
            where.add(f"{self._timestamp} >= {mark}", parameter)
            where.add(f"({self._timestamp} > {mark} or {self._incrementing} > {MARK})", parameter, position.incrementing)

    def highest(self, column: str) -> Statement:
        """Return the statement for the lowest and the highest number of a column."""
        name = self._dialect.quote(column)
        return self._statement(f"select min({name}), max({name}) from {self._source}", [])

    def times(self) -> Statement:
        """Return the statement for the earliest and the latest effective timestamp."""
        return self._statement(f"select min({self._timestamp}), max({self._timestamp}) from {self._source}", [])

    def latest_before(self, moment: dt.datetime) -> Statement:
        """Return the statement for the latest effective timestamp before a time."""
        where = f" where {self._timestamp} < {self._dialect.timestamp_mark}"
        return self._statement(f"select max({self._timestamp}) from {self._source}{where}", [self._parameter(moment)])

    def highest_since(self, moment: dt.datetime) -> Statement:
        """Return the statement for the highest number of the rows from a timestamp on."""
        where = f" where {self._timestamp} >= {self._dialect.timestamp_mark}"
        return self._statement(f"select max({self._incrementing}) from {self._source}{where}", [self._parameter(moment)])

    def keys(self, columns: Sequence[str]) -> Statement:
        """Return the statement for the values of key columns in all rows."""
        fields = ", ".join(self._dialect.select_field(self._columns[name]) for name in columns)
        return self._statement(f"select {fields} from {self._source}", [])

    def _statement(self, sql: str, parameters: Sequence[Any]) -> Statement:
        return Statement(self._dialect.with_parameters(sql), tuple(parameters))

    def _timestamp_expression(self, names: Sequence[str]) -> str:
        columns = [self._dialect.timestamp_expression(self._dialect.quote(name)) for name in names]
        return columns[0] if len(columns) == 1 else f"coalesce({', '.join(columns)})"

    def _parameter(self, moment: dt.datetime) -> Any:
        return self._dialect.timestamp_parameter(moment, UTC if self._zoned else self._zone, zoned=self._zoned)
