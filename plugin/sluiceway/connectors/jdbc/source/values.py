"""From what a driver returns to Connect's values: one function for each column, None where the value is right as it is. Pure."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from sluiceway.connectors.jdbc.columns import WHOLE_NUMBERS, ColumnType, Granularity, Kind, Mapping, mapped
from sluiceway.connectors.jdbc.url import MYSQL, POSTGRESQL, SQLITE
from sluiceway.data.instant import EPOCH
from sluiceway.errors import DataError

Convert = Callable[[Any], Any]

UTC = dt.timezone.utc
_MICROSECOND = dt.timedelta(microseconds=1)


def converter(database: str, column_type: ColumnType, mapping: Mapping, zone: dt.tzinfo) -> Convert | None:
    """Return the function for a column's values that are not null."""
    kind = column_type.kind
    raw = _SQLITE.get(kind) if database == SQLITE else None
    if kind is Kind.ARRAY and column_type.items is not None:
        item = converter(database, column_type.items, mapping, zone)
        return None if item is None else lambda values: [None if value is None else item(value) for value in values]
    if kind is Kind.DECIMAL:
        return _chain(raw, _decimal(column_type, mapped(column_type, mapping), exact=database != SQLITE))
    if kind is Kind.TIMESTAMP:
        instant = _instant(database, UTC if column_type.zoned else zone, zoned=column_type.zoned)
        return _chain(_chain(raw, instant), _granular(mapping.granularity))
    if kind is Kind.TIME and column_type.zoned:
        return _time_in_utc
    return _mysql(column_type) if database == MYSQL else raw


def _instant(database: str, zone: dt.tzinfo, *, zoned: bool) -> Convert | None:
    """Return how a driver's timestamp becomes a moment, in the quickest way that its driver allows."""
    if database == POSTGRESQL and (zoned or zone is UTC):
        return None  # the driver says UTC already: see source_streams
    if database == MYSQL and zone is UTC:
        return functools.partial(dt.datetime.replace, tzinfo=UTC)  # it never has a zone
    return moment_of(zone)


def _mysql(column_type: ColumnType) -> Convert | None:
    if column_type.kind is Kind.INT8 and column_type.precision == 1:
        return lambda value: int.from_bytes(value, "big") if isinstance(value, bytes) else value
    return _int64 if column_type.kind is Kind.INT64 else None


def zone_of(name: str) -> dt.tzinfo:
    """Return the time zone of that name; UTC as the quick one."""
    return UTC if name.upper() in ("UTC", "GMT", "ETC/UTC", "Z") else ZoneInfo(name)


def moment_of(zone: dt.tzinfo) -> Convert:
    """Return the function that makes a driver's timestamp a moment in UTC; one without a zone is in ``zone``."""
    if zone is UTC:
        return _in_utc
    return lambda value: (value.replace(tzinfo=zone) if value.tzinfo is None else value).astimezone(UTC)


def _in_utc(value: dt.datetime) -> dt.datetime:
    if value.tzinfo is UTC:
        return value
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _chain(first: Convert | None, second: Convert | None) -> Convert | None:
    if first is None or second is None:
        return first or second
    return lambda value: second(first(value))


def _decimal(column_type: ColumnType, kind: Kind, *, exact: bool) -> Convert | None:
    if kind is Kind.STRING:
        return lambda value: format(value, "f") if value.is_finite() else str(value)
    if kind is Kind.FLOAT64:
        return float
    if kind is not Kind.DECIMAL:
        return int
    scale = column_type.scale or 0
    if exact and scale >= 0:
        return None  # PostgreSQL and MySQL send as many digits as the column has
    unit = Decimal(1).scaleb(-scale)
    return lambda value: value.quantize(unit)


def _granular(granularity: Granularity) -> Convert | None:
    if granularity is Granularity.CONNECT_LOGICAL:
        return None
    if granularity in (Granularity.MICROS_ISO, Granularity.NANOS_ISO):
        zeros = "000" if granularity is Granularity.NANOS_ISO else ""
        return lambda value: value.strftime("%Y-%m-%dT%H:%M:%S.%f") + zeros
    factor = 1000 if granularity.value.startswith("nanos") else 1
    if granularity.value.endswith("_string"):
        return lambda value: str((value - EPOCH) // _MICROSECOND * factor)
    return lambda value: (value - EPOCH) // _MICROSECOND * factor


def _int64(value: Any) -> Any:
    if value > 0x7FFF_FFFF_FFFF_FFFF:
        raise DataError(
            f"{value} of an unsigned bigint column is more than 64 signed bits hold; cast it to decimal(20) in a query."
        )
    return value


def _time_in_utc(value: dt.time) -> dt.time:
    moment = dt.datetime.combine(dt.date(1970, 1, 2), value)
    return moment.time() if value.tzinfo is None else moment.astimezone(UTC).time()


# --- SQLite, whose columns hold anything ---


def _sqlite_timestamp(value: Any) -> dt.datetime:
    if isinstance(value, (int, float)):
        return EPOCH + dt.timedelta(milliseconds=value)
    try:
        return dt.datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError as error:
        raise DataError(f"{value!r} in a timestamp column is neither an ISO time nor a number of milliseconds.") from error


def _sqlite_date(value: Any) -> dt.date:
    return _sqlite_timestamp(value).date()


def _sqlite_time(value: Any) -> dt.time:
    return _sqlite_timestamp(value).time() if isinstance(value, (int, float)) else dt.time.fromisoformat(str(value))


def _sqlite_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _sqlite_text(value: Any) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _sqlite_number(convert: Callable[[Any], Any]) -> Convert:
    def number(value: Any) -> Any:
        try:
            return convert(value)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise DataError(f"{value!r} is in a column that was declared to hold numbers.") from error

    return number


_SQLITE: dict[Kind, Convert] = {
    Kind.BOOLEAN: bool,
    Kind.STRING: _sqlite_text,
    Kind.BYTES: _sqlite_bytes,
    Kind.DATE: _sqlite_date,
    Kind.TIME: _sqlite_time,
    Kind.TIMESTAMP: _sqlite_timestamp,
    Kind.DECIMAL: _sqlite_number(lambda value: Decimal(str(value))),
    **dict.fromkeys(WHOLE_NUMBERS, _sqlite_number(int)),
    **dict.fromkeys((Kind.FLOAT32, Kind.FLOAT64), _sqlite_number(float)),
}
