"""The statements that a JDBC source reads with. Pure."""

# ruff: noqa: S608 (names are quoted, values are parameters)
from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.connectors.jdbc.columns import Column, Kind
from sluiceway.connectors.jdbc.dialects.base import MARK, Dialect, TableId
from sluiceway.connectors.jdbc.source.offsets import Position
from sluiceway.connectors.jdbc.source.values import UTC
from sluiceway.connectors.jdbc.url import POSTGRESQL, SQLITE


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL in the driver's style, with its parameters."""

    sql: str
    parameters: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a reading must stay below: numbers up to ``incrementing`` and times before ``timestamp``; None is no bound."""

    incrementing: int | None = None
    timestamp: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Numbers above ``low`` and up to ``high`` of a column; None is no bound."""

    column: str
    low: int | None = None
    high: int | None = None


class SelectBuilder:
    """Writes a table's or a query's statements. ``zone`` is that of times without one."""

    def __init__(
        self,
        dialect: Dialect,
        columns: Sequence[Column],
        *,
        table: TableId | None = None,
        query: str = "",
        suffix: str = "",
        incrementing: str = "",
        timestamps: Sequence[str] = (),
        zone: dt.tzinfo = UTC,
    ) -> None:
        self._dialect = dialect
        self._columns = {column.name: column for column in columns}
        self._source = f"({query}) as q" if table is None else dialect.qualified(table)
        self._suffix = f" {suffix}" if suffix else ""
        self._incrementing = dialect.quote(incrementing) if incrementing else ""
        self._may_lack_number = bool(incrementing) and self._columns[incrementing].nullable
        self._zoned = bool(timestamps) and self._columns[timestamps[0]].type.zoned
        self._timestamp = self._time_expression(timestamps) if timestamps else ""
        self._zone = zone
        self._fields = ", ".join(map(self._field, columns))

    def rows(self, position: Position, bounds: Bounds, key_range: KeyRange | None = None) -> Statement:
        """Return the statement for the rows behind a position, in order, or those of a range of keys; everything without
        columns to go by. The time that counts is an additional last column where several may be it.
        """
        conditions: list[str] = []
        parameters: list[Any] = []
        order = [part for part in (self._timestamp, self._incrementing) if part]

        def add(condition: str, *values: Any) -> None:
            conditions.append(condition)
            parameters.extend(values)

        if key_range is not None:
            column = self._dialect.quote(key_range.column)
            order = [column]
            if key_range.low is not None:
                add(f"{column} > {MARK}", key_range.low)
            if key_range.high is not None:
                add(f"{column} <= {MARK}", key_range.high)
        elif self._timestamp:
            self._after_time(position, add)
        elif self._incrementing and position.incrementing is not None:
            add(f"{self._incrementing} > {MARK}", position.incrementing)
        if self._timestamp and bounds.timestamp is not None:
            add(f"{self._timestamp} < {MARK}", self._time(bounds.timestamp))
        if self._incrementing and bounds.incrementing is not None:
            add(f"{self._incrementing} <= {MARK}", bounds.incrementing)
        elif self._may_lack_number:
            add(f"{self._incrementing} is not null")
        where = f" where {' and '.join(conditions)}" if conditions else ""
        ordered = f" order by {', '.join(order)}" if order else ""
        fields = self._fields + (f", {self._timestamp} as sluiceway_time" if self._timestamp else "")
        return self._statement(f"select {fields} from {self._source}{where}{ordered}{self._suffix}", parameters)

    def _after_time(self, position: Position, add: Any) -> None:
        if position.timestamp is None:
            add(f"{self._timestamp} is not null")
            return
        moment = self._time(position.timestamp)
        if not self._incrementing:
            add(f"{self._timestamp} > {MARK}", moment)
        elif position.incrementing is None:
            add(f"{self._timestamp} >= {MARK}", moment)
        else:  # in a form that an index on both serves
            add(f"{self._timestamp} >= {MARK}", moment)
            add(f"({self._timestamp} > {MARK} or {self._incrementing} > {MARK})", moment, position.incrementing)

    def highest(self, column: str) -> Statement:
        """Return the statement for the lowest and the highest number of a column."""
        name = self._dialect.quote(column)
        return self._statement(f"select min({name}), max({name}) from {self._source}", [])

    def keys(self, columns: Sequence[str]) -> Statement:
        """Return the statement for all primary keys."""
        fields = ", ".join(self._field(self._columns[name]) for name in columns)
        return self._statement(f"select {fields} from {self._source}", [])

    def _statement(self, sql: str, parameters: Sequence[Any]) -> Statement:
        return Statement(self._dialect.with_parameters(sql), tuple(parameters))

    def _field(self, column: Column) -> str:
        name = self._dialect.quote(column.name)
        if self._dialect.name != POSTGRESQL:
            return name
        if column.type.kind is Kind.BOOLEAN and column.type.precision == 1:
            return f"({name} = B'1') as {name}"
        if column.type.as_text:
            return f"{name}::text as {name}"
        if column.type.items is not None and column.type.items.as_text:
            return f"{name}::text[] as {name}"
        return name

    def _time_expression(self, names: Sequence[str]) -> str:
        quoted = [self._dialect.quote(name) for name in names]
        if self._dialect.name == SQLITE:  # texts and numbers of milliseconds, to be compared with each other
            form = "'%Y-%m-%d %H:%M:%f'"
            quoted = [
                f"case typeof({name}) when 'text' then strftime({form}, {name}) "
                f"else strftime({form}, {name} / 1000.0, 'unixepoch') end"
                for name in quoted
            ]
        return quoted[0] if len(quoted) == 1 else f"coalesce({', '.join(quoted)})"

    def _time(self, moment: dt.datetime) -> Any:
        """Return a moment as the parameter to compare the column with."""
        if self._dialect.name == POSTGRESQL and self._zoned:
            return moment
        local = moment.astimezone(UTC if self._zoned else self._zone).replace(tzinfo=None)
        return local.isoformat(" ", "milliseconds") if self._dialect.name == SQLITE else local
