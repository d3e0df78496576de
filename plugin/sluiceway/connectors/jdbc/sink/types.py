"""Connect's types as columns and as the drivers' values, for each database. Pure."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from sluiceway.connectors.jdbc.debezium.types import semantic_binder, semantic_type
from sluiceway.connectors.jdbc.sink.columns import Binder, BinderOf
from sluiceway.connectors.jdbc.url import MYSQL, POSTGRESQL, SQLITE
from sluiceway.data import Instant, Schema, Type, millis_of
from sluiceway.data.instant import date_of, time_of, timestamp_of
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, decimal_scale
from sluiceway.errors import DataError

_ADVICE = (
    "Flatten it, replace it or leave it out with a transform (Flatten, ReplaceField), or leave it out with fields.whitelist."
)

_POSTGRESQL = {
    Type.INT8: "SMALLINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INTEGER",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "DOUBLE PRECISION",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "TEXT",
    Type.BYTES: "BYTEA",
    DECIMAL: "NUMERIC",
    DATE: "DATE",
    TIME: "TIME(3)",
    TIMESTAMP: "TIMESTAMP(3)",
}
_MYSQL = {
    Type.INT8: "TINYINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INT",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "FLOAT",
    Type.FLOAT64: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "LONGTEXT",
    Type.BYTES: "LONGBLOB",
    DATE: "DATE",
    TIME: "TIME(3)",
    TIMESTAMP: "DATETIME(3)",
}
_SQLITE = {
    Type.INT8: "INTEGER",
    Type.INT16: "INTEGER",
    Type.INT32: "INTEGER",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "TEXT",
    Type.BYTES: "BLOB",
    DATE: "DATE",
    TIME: "TIME",
    TIMESTAMP: "TIMESTAMP",
}
_TYPES: dict[str, dict[Any, str]] = {POSTGRESQL: _POSTGRESQL, MYSQL: _MYSQL, SQLITE: _SQLITE}

# An index of MySQL's takes no column without a length.
_MYSQL_KEYS = {Type.STRING: "VARCHAR(255)", Type.BYTES: "VARBINARY(255)"}
_MYSQL_DIGITS, _MYSQL_SCALE = 65, 30
_PRECISION = "connect.decimal.precision"  # a parameter that sources give, beside Connect's scale


def column_type(dialect: str, name: str, schema: Schema, *, key: bool = False) -> str:
    """Return the type of a column for values of a schema. Raises DataError if there is none."""
    types = _TYPES[dialect]
    if (semantic := semantic_type(schema.name)) is not None:
        return semantic.column_type(dialect)
    if schema.name == DECIMAL:
        return _decimal_type(dialect, schema)
    if schema.name in types:
        return types[schema.name]
    if key and dialect == MYSQL and schema.type in _MYSQL_KEYS:
        return _MYSQL_KEYS[schema.type]
    if schema.type in types:
        return types[schema.type]
    if schema.type is Type.ARRAY and dialect == POSTGRESQL and schema.value_schema is not None:
        if schema.value_schema.type.primitive:
            return column_type(dialect, name, schema.value_schema) + "[]"
        raise DataError(
            f"Field {name} is an array of {schema.value_schema.type.name}; only arrays of single values have a "
            f"column type. {_ADVICE}"
        )
    raise DataError(f"Field {name} is of type {schema.type.name}, for which {dialect} has no column type. {_ADVICE}")


def _decimal_type(dialect: str, schema: Schema) -> str:
    scale = max(decimal_scale(schema), 0)
    told = schema.parameters.get(_PRECISION, "")
    precision = max(int(told), scale) if told.isdecimal() and int(told) else None
    if dialect == MYSQL:
        return f"DECIMAL({min(precision or _MYSQL_DIGITS, _MYSQL_DIGITS)},{min(scale, _MYSQL_SCALE)})"
    if dialect == SQLITE:
        return f"DECIMAL({precision or _MYSQL_DIGITS},{scale})"
    # Without a precision PostgreSQL keeps every digit; a scale alone it would take for one.
    return "NUMERIC" if precision is None else f"NUMERIC({precision},{scale})"


def column_definition(dialect: str, name: str, schema: Schema, *, key: bool = False) -> str:
    """Return a column's type with what else defines it: whether it may be null, and a default that is a plain number or text."""
    definition = column_type(dialect, name, schema, key=key)
    if schema.default is not None and (default := _default(dialect, schema)) is not None:
        definition += f" DEFAULT {default}"
    return definition + (" NULL" if schema.optional and not key else " NOT NULL")


def _default(dialect: str, schema: Schema) -> str | None:
    """Return a default as SQL, or None for a kind that is filled in by us alone."""
    value = schema.default
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (int, Decimal)) or (isinstance(value, float) and value - value == 0):
        return str(value)
    if isinstance(value, str) and "\\" not in value and "\x00" not in value:
        text = "'" + value.replace("'", "''") + "'"
        return f"({text})" if dialect == MYSQL else text
    return None


def binder_of(dialect: str, zone: ZoneInfo, name: str, schema: Schema) -> Binder | None:
    """Return what makes the driver's value of one that is not None; None where that is the same.

    Timestamps become the calendar and clock of ``zone``. Raises DataError for a schema that has no column type; what is
    returned raises it for a value that no column can hold.
    """
    column_type(dialect, name, schema)
    if (semantic := semantic_type(schema.name)) is not None:
        return semantic_binder(semantic, dialect, _shift(zone), name)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return _array(binder_of(dialect, zone, name, schema.value_schema))
    if schema.name == TIMESTAMP:
        return functools.partial(_timestamp_text if dialect == SQLITE else _timestamp, name, _shift(zone))
    if schema.name == DATE:
        return functools.partial(_date, name, dialect == SQLITE)
    if schema.name == TIME:
        return functools.partial(_time, name, dialect == SQLITE)
    if dialect != SQLITE:
        return None
    return {DECIMAL: str}.get(schema.name or "") or ({Type.BOOLEAN: int}.get(schema.type))


def into_bits(binder_of: BinderOf, is_bit: Callable[[str], bool]) -> BinderOf:
    """Return what gives binders where some columns are bits: booleans for those become texts, which PostgreSQL reads."""

    def binder(name: str, schema: Schema) -> Binder | None:
        return _bit if schema.type is Type.BOOLEAN and is_bit(name) else binder_of(name, schema)

    return binder


def _bit(value: bool) -> str:
    return "1" if value else "0"


def _array(of_item: Binder | None) -> Binder:
    if of_item is None:
        return list
    bind = of_item
    return lambda values: [None if value is None else bind(value) for value in values]


def _shift(zone: ZoneInfo) -> Callable[[dt.datetime], dt.datetime]:
    """Return what makes an aware moment one of a zone's, without saying of which."""
    if zone.key in ("UTC", "Etc/UTC", "GMT"):
        return lambda moment: moment.replace(tzinfo=None)
    return lambda moment: moment.astimezone(zone).replace(tzinfo=None)


def _timestamp(name: str, shift: Callable[[dt.datetime], dt.datetime], value: Any) -> dt.datetime:
    if type(value) is dt.datetime and value.tzinfo is dt.timezone.utc:
        return shift(value)
    moment = timestamp_of(millis_of(value))
    if isinstance(moment, Instant):
        raise _beyond(name, value)
    return shift(moment)


def _timestamp_text(name: str, shift: Callable[[dt.datetime], dt.datetime], value: Any) -> str:
    return _timestamp(name, shift, value).isoformat(" ", "milliseconds")


def _date(name: str, as_text: bool, value: Any) -> dt.date | str:
    date = value if type(value) is dt.date else date_of(millis_of(value))
    if isinstance(date, Instant):
        raise _beyond(name, value)
    return date.isoformat() if as_text else date


def _time(name: str, as_text: bool, value: Any) -> dt.time | str:
    time = value if type(value) is dt.time else time_of(millis_of(value))
    if isinstance(time, Instant):
        raise _beyond(name, value)
    return time.isoformat("milliseconds") if as_text else time


def _beyond(name: str, value: Any) -> DataError:
    return DataError(f"Field {name} holds {value}, which no column of dates and times can: years go from 1 to 9999, hours to 23.")
