"""Maps Connect's schemas to column types and values to the drivers' values, by the dialect's tables. No I/O."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.values import Convert, SinkValue
from sluiceway.connectors.jdbc.sink.columns import Binder, BinderOf
from sluiceway.connectors.jdbc.sink.semantic_types import SEMANTIC_TYPES, Shift, semantic_binder
from sluiceway.data import Instant, Schema, Type, millis_of
from sluiceway.data.instant import date_of, time_of, timestamp_of
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, decimal_scale
from sluiceway.errors import DataError
from sluiceway.java.numbers import whole_number

_ADVICE = (
    "Flatten it, replace it or leave it out with a transform (Flatten, ReplaceField), or leave it out with fields.whitelist."
)
_PRECISION = "connect.decimal.precision"  # a schema parameter that some sources set beside Connect's scale


def column_type(dialect: Dialect, name: str, schema: Schema, *, key: bool = False) -> str:
    """Return the type of a column to create for values of a schema. Raises DataError if there is none."""
    types = dialect.column_types
    if schema.name == DECIMAL:
        return _decimal_type(dialect, schema)
    if schema.name is not None and schema.name in types:
        return types[schema.name]
    if key and schema.type in dialect.key_column_types:
        return dialect.key_column_types[schema.type]
    if schema.type in types:
        return types[schema.type]
    if schema.type is Type.ARRAY and schema.value_schema is not None and dialect.array_type("") is not None:
        if not schema.value_schema.type.primitive:
            raise DataError(
                f"Field {name} is an array of {schema.value_schema.type.name}; only arrays of primitive types have a column "
                f"type. {_ADVICE}"
            )
        return dialect.array_type(column_type(dialect, name, schema.value_schema)) or ""
    raise DataError(f"Field {name} is of type {schema.type.name}, for which {dialect.name} has no column type. {_ADVICE}")


def _decimal_type(dialect: Dialect, schema: Schema) -> str:
    scale = max(decimal_scale(schema), 0)
    given = whole_number(schema.parameters.get(_PRECISION, ""))
    return dialect.decimal_type(max(given, scale) if given else None, scale)


def column_definition(dialect: Dialect, name: str, schema: Schema, *, key: bool = False) -> str:
    """Return a column's type, its default if that is a plain number or text, and its nullability."""
    definition = column_type(dialect, name, schema, key=key)
    literal = None if schema.default is None else _literal(schema.default)
    if literal is not None:
        definition += f" DEFAULT {dialect.default_value(literal)}"
    return definition + (" NULL" if schema.optional and not key else " NOT NULL")


def _literal(value: Any) -> str | None:
    """Return a default in SQL; None if it cannot be written safely, so that only the sink fills it in."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (int, Decimal)) or (isinstance(value, float) and value - value == 0):
        return str(value)
    if isinstance(value, str) and "\\" not in value and "\x00" not in value:
        return "'" + value.replace("'", "''") + "'"
    return None


def binder_of(dialect: Dialect, zone: ZoneInfo, name: str, schema: Schema) -> Binder | None:
    """Return the function from a value that is not None to the driver's value; None if they are the same.

    Timestamps are converted to the clock of ``zone``. Raises DataError for a schema without a column type; the function
    raises it for a value that does not fit into the column.
    """
    column_type(dialect, name, schema)
    adapters = dialect.adapters
    if schema.name is not None and schema.name in SEMANTIC_TYPES:
        return semantic_binder(dialect, schema.name, _shift(zone), name)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return _array(binder_of(dialect, zone, name, schema.value_schema))
    if schema.name == TIMESTAMP:
        bind = functools.partial(_timestamp, name, _shift(zone))
        adapt = adapters.get(SinkValue.TIMESTAMP)
        return bind if adapt is None else functools.partial(_adapted, adapt, bind)
    if schema.name == DATE:
        return functools.partial(_date, name, adapters.get(SinkValue.DATE))
    if schema.name == TIME:
        return functools.partial(_time, name, adapters.get(SinkValue.TIME))
    if schema.name == DECIMAL:
        return adapters.get(SinkValue.DECIMAL)
    if schema.type is Type.BYTES:
        return adapters.get(SinkValue.BYTES)
    return adapters.get(SinkValue.BOOLEAN) if schema.type is Type.BOOLEAN else None


def with_bits(binder_of: BinderOf, is_bit: Callable[[str], bool]) -> BinderOf:
    """Return ``binder_of`` for tables in which the columns of some fields take booleans only as the texts 0 and 1."""

    def binder(name: str, schema: Schema) -> Binder | None:
        return _bit if schema.type is Type.BOOLEAN and is_bit(name) else binder_of(name, schema)

    return binder


def _bit(value: bool) -> str:
    return "1" if value else "0"


def _array(item_binder: Binder | None) -> Binder:
    if item_binder is None:
        return list
    bind = item_binder
    return lambda values: [None if value is None else bind(value) for value in values]


def _shift(zone: ZoneInfo) -> Shift:
    if zone.key in ("UTC", "Etc/UTC", "GMT"):
        return lambda moment: moment.replace(tzinfo=None)
    return lambda moment: moment.astimezone(zone).replace(tzinfo=None)


def _adapted(adapt: Convert, bind: Binder, value: Any) -> Any:
    return adapt(bind(value))


def _timestamp(name: str, shift: Shift, value: Any) -> dt.datetime:
    if type(value) is dt.datetime and value.tzinfo is dt.timezone.utc:
        return shift(value)
    moment = timestamp_of(millis_of(value))
    if isinstance(moment, Instant):
        raise _out_of_range(name, value)
    return shift(moment)


def _date(name: str, adapt: Convert | None, value: Any) -> Any:
    date = value if type(value) is dt.date else date_of(millis_of(value))
    if isinstance(date, Instant):
        raise _out_of_range(name, value)
    return date if adapt is None else adapt(date)


def _time(name: str, adapt: Convert | None, value: Any) -> Any:
    time = value if type(value) is dt.time else time_of(millis_of(value))
    if isinstance(time, Instant):
        raise _out_of_range(name, value)
    return time if adapt is None else adapt(time)


def _out_of_range(name: str, value: Any) -> DataError:
    return DataError(f"Field {name} holds {value}, which is out of range: years go from 1 to 9999, hours from 0 to 23.")
