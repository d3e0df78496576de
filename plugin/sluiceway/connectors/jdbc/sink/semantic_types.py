"""Converts values of Debezium's semantic types: a schema's name says what its plain value stands for. No I/O.

Source: https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-data-types. The column types
are the dialects'.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.values import Convert, SinkValue
from sluiceway.data.instant import EPOCH
from sluiceway.data.logical import decimal_of
from sluiceway.errors import DataError

Shift = Callable[[dt.datetime], dt.datetime]
"""Returns a moment in UTC by the clock of ``db.timezone``, without a zone."""

_LOCAL_EPOCH = EPOCH.replace(tzinfo=None)
_FIRST_DAY = EPOCH.date()
_DAY_MICROSECONDS = 86_400_000_000


class SemanticType(NamedTuple):
    """The conversion of a plain value to a Python value of ``kind``; None for values that every driver takes as they are."""

    kind: SinkValue | None
    convert: Convert
    zoned: bool = False
    """Whether ``convert`` is for databases that keep no zones; the others get the value from ``with_zone``."""
    with_zone: Convert = str


def _local_timestamp(nanoseconds: int, value: int) -> dt.datetime:
    return _LOCAL_EPOCH + dt.timedelta(microseconds=value * nanoseconds // 1000)


def _date(value: int) -> dt.date:
    return _FIRST_DAY + dt.timedelta(days=value)


def _time(nanoseconds: int, value: int) -> dt.time:
    microseconds = value * nanoseconds // 1000
    if not 0 <= microseconds < _DAY_MICROSECONDS:
        raise ValueError(f"{value} is not a time of day")
    return (_LOCAL_EPOCH + dt.timedelta(microseconds=microseconds)).time()


def _moment(value: str) -> dt.datetime:
    return dt.datetime.fromisoformat(value.replace("Z", "+00:00"))


def _time_in_utc(value: str) -> dt.time:
    time = dt.time.fromisoformat(value.replace("Z", "+00:00"))
    moment = dt.datetime.combine(dt.date(1970, 1, 2), time)
    return (moment if time.tzinfo is None else moment.astimezone(dt.timezone.utc)).time()


def _decimal(value: Any) -> Decimal:
    return decimal_of(int.from_bytes(value["value"], "big", signed=True), int(value["scale"]))


def _unchanged(value: Any) -> Any:
    return value


def _timestamp_of(nanoseconds: int) -> SemanticType:
    return SemanticType(SinkValue.MICRO_TIMESTAMP, functools.partial(_local_timestamp, nanoseconds))


def _time_of(nanoseconds: int) -> SemanticType:
    return SemanticType(SinkValue.MICRO_TIME, functools.partial(_time, nanoseconds))


_ZONED_TIMESTAMP = "io.debezium.time.ZonedTimestamp"

SEMANTIC_TYPES = {
    "io.debezium.time.Timestamp": _timestamp_of(1_000_000),
    "io.debezium.time.MicroTimestamp": _timestamp_of(1000),
    "io.debezium.time.NanoTimestamp": _timestamp_of(1),
    _ZONED_TIMESTAMP: SemanticType(SinkValue.MICRO_TIMESTAMP, _moment, True, _moment),
    "io.debezium.time.Date": SemanticType(SinkValue.DATE, _date),
    "io.debezium.time.Time": _time_of(1_000_000),
    "io.debezium.time.MicroTime": _time_of(1000),
    "io.debezium.time.NanoTime": _time_of(1),
    "io.debezium.time.ZonedTime": SemanticType(SinkValue.MICRO_TIME, _time_in_utc, True, _unchanged),
    "io.debezium.data.Json": SemanticType(None, _unchanged),
    "io.debezium.data.Uuid": SemanticType(None, _unchanged),
    "io.debezium.data.Xml": SemanticType(None, _unchanged),
    "io.debezium.data.VariableScaleDecimal": SemanticType(SinkValue.DECIMAL, _decimal),
}
"""The semantic types by schema name."""


def semantic_binder(dialect: Dialect, schema_name: str, shift: Shift, field: str) -> Convert:
    """Return the function from a value of a semantic type to the driver's value.

    The function raises DataError for a value that the type does not have.
    """
    semantic = SEMANTIC_TYPES[schema_name]
    if semantic.zoned and dialect.keeps_zones:
        convert = semantic.with_zone
    else:
        convert = semantic.convert
        if schema_name == _ZONED_TIMESTAMP:
            convert = _then(convert, lambda moment: shift(moment.astimezone(dt.timezone.utc)))
        if semantic.kind is not None and semantic.kind in dialect.adapters:
            convert = _then(convert, dialect.adapters[semantic.kind])

    def bind(value: Any) -> Any:
        try:
            return convert(value)
        except (ValueError, TypeError, OverflowError, ArithmeticError, KeyError) as error:
            raise DataError(f"Field {field} holds {value!r}, which is not a valid {schema_name}: {error}") from error

    return bind


def _then(first: Convert, second: Convert) -> Convert:
    return lambda value: second(first(value))
