"""Debezium's semantic types as columns and as the drivers' values: a schema's name says what its plain value stands for. Pure.

The types: https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-data-types
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from sluiceway.connectors.jdbc.url import MYSQL, POSTGRESQL, SQLITE
from sluiceway.data.instant import EPOCH
from sluiceway.errors import DataError

Shift = Callable[[dt.datetime], dt.datetime]
"""Makes an aware moment one of the database's zone, without saying of which."""

_NO_ZONE = EPOCH.replace(tzinfo=None)
_FIRST_DAY = EPOCH.date()


class Semantic(NamedTuple):
    """A type's columns in PostgreSQL, MySQL and SQLite, and what makes the driver's value of one that is not None."""

    postgresql: str
    mysql: str
    sqlite: str
    convert: Callable[[str, Shift, Any], Any]

    def column_type(self, dialect: str) -> str:
        return {POSTGRESQL: self.postgresql, MYSQL: self.mysql, SQLITE: self.sqlite}[dialect]


def _wall(nanoseconds: int, dialect: str, _shift: Shift, value: int) -> Any:
    moment = _NO_ZONE + dt.timedelta(microseconds=value * nanoseconds // 1000)
    return moment.isoformat(" ") if dialect == SQLITE else moment


def _moment(dialect: str, shift: Shift, value: str) -> Any:
    moment = dt.datetime.fromisoformat(value.replace("Z", "+00:00"))
    if dialect == POSTGRESQL:
        return moment
    wall = shift(moment.astimezone(dt.timezone.utc))
    return wall.isoformat(" ") if dialect == SQLITE else wall


def _date(dialect: str, _shift: Shift, value: int) -> Any:
    date = _FIRST_DAY + dt.timedelta(days=value)
    return date.isoformat() if dialect == SQLITE else date


def _time(nanoseconds: int, dialect: str, _shift: Shift, value: int) -> Any:
    microseconds = value * nanoseconds // 1000
    if not 0 <= microseconds < 86_400_000_000:
        raise ValueError(f"{value} is no time of a day")
    time = (_NO_ZONE + dt.timedelta(microseconds=microseconds)).time()
    return time.isoformat() if dialect == SQLITE else time


def _zoned_time(dialect: str, _shift: Shift, value: str) -> Any:
    if dialect == POSTGRESQL:
        return value
    time = dt.time.fromisoformat(value.replace("Z", "+00:00"))
    moment = dt.datetime.combine(dt.date(1970, 1, 2), time)
    in_utc = (moment if time.tzinfo is None else moment.astimezone(dt.timezone.utc)).time()
    return in_utc.isoformat() if dialect == SQLITE else in_utc


def _as_it_is(_dialect: str, _shift: Shift, value: Any) -> Any:
    return value


def _any_scale(dialect: str, _shift: Shift, value: Any) -> Any:
    number = Decimal(int.from_bytes(value["value"], "big", signed=True)).scaleb(-int(value["scale"]))
    return str(number) if dialect == SQLITE else number


def _wall_of(nanoseconds: int, digits: int) -> Semantic:
    return Semantic(f"TIMESTAMP({digits})", f"DATETIME({digits})", "TIMESTAMP", functools.partial(_wall, nanoseconds))


def _time_of(nanoseconds: int, digits: int) -> Semantic:
    return Semantic(f"TIME({digits})", f"TIME({digits})", "TIME", functools.partial(_time, nanoseconds))


_SEMANTICS = {
    "io.debezium.time.Timestamp": _wall_of(1_000_000, 3),
    "io.debezium.time.MicroTimestamp": _wall_of(1000, 6),
    "io.debezium.time.NanoTimestamp": _wall_of(1, 6),
    "io.debezium.time.ZonedTimestamp": Semantic("TIMESTAMP(6) WITH TIME ZONE", "DATETIME(6)", "TIMESTAMP", _moment),
    "io.debezium.time.Date": Semantic("DATE", "DATE", "DATE", _date),
    "io.debezium.time.Time": _time_of(1_000_000, 3),
    "io.debezium.time.MicroTime": _time_of(1000, 6),
    "io.debezium.time.NanoTime": _time_of(1, 6),
    "io.debezium.time.ZonedTime": Semantic("TIME(6) WITH TIME ZONE", "TIME(6)", "TIME", _zoned_time),
    "io.debezium.data.Json": Semantic("JSON", "JSON", "TEXT", _as_it_is),
    "io.debezium.data.Uuid": Semantic("UUID", "CHAR(36)", "TEXT", _as_it_is),
    "io.debezium.data.Xml": Semantic("XML", "LONGTEXT", "TEXT", _as_it_is),
    "io.debezium.data.VariableScaleDecimal": Semantic("NUMERIC", "DECIMAL(65,30)", "DECIMAL", _any_scale),
}


def semantic_type(schema_name: str | None) -> Semantic | None:
    """Return what a schema of this name stands for; None where its plain type is all that there is to know."""
    return None if schema_name is None else _SEMANTICS.get(schema_name)


def semantic_binder(semantic: Semantic, dialect: str, shift: Shift, field: str) -> Callable[[Any], Any]:
    """Return what makes the driver's value of one that is not None; it raises DataError for a value that is none of the type."""

    def bind(value: Any) -> Any:
        try:
            return semantic.convert(dialect, shift, value)
        except (ValueError, TypeError, OverflowError, ArithmeticError, KeyError) as error:
            kind = semantic.column_type(dialect)
            raise DataError(f"Field {field} holds {value!r}, of which no value of type {kind} can be made: {error}") from error

    return bind
