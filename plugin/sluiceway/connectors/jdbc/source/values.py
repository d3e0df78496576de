"""Compiles the conversion of a column's values from the driver's to Connect's. No I/O.

Each column gets one function, or None if the driver's values are right as they are.
"""

from __future__ import annotations

import datetime as dt

from sluiceway.connectors.jdbc.columns import ColumnType, Granularity, Kind, Mapping, mapped
from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.values import UTC, Convert
from sluiceway.data.instant import EPOCH
from sluiceway.data.logical import at_scale

_MICROSECOND = dt.timedelta(microseconds=1)


def converter(dialect: Dialect, column_type: ColumnType, mapping: Mapping, zone: dt.tzinfo) -> Convert | None:
    """Return the function for a column's values that are not null; ``zone`` is that of timestamps without one."""
    kind, read = column_type.kind, dialect.reader(column_type)
    if kind is Kind.ARRAY and column_type.items is not None:
        item = converter(dialect, column_type.items, mapping, zone)
        return None if item is None else lambda values: [None if value is None else item(value) for value in values]
    if kind is Kind.DECIMAL:
        return _chain(read, _decimal(column_type, mapped(column_type, mapping), exact=dialect.exact_decimals))
    if kind is Kind.TIMESTAMP:
        moment = dialect.timestamp_reader(UTC if column_type.zoned else zone, zoned=column_type.zoned)
        return _chain(_chain(read, moment), _granular(mapping.granularity))
    return _time_in_utc if kind is Kind.TIME and column_type.zoned else read


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
        return None
    return lambda value: at_scale(value, scale)


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


def _time_in_utc(value: dt.time) -> dt.time:
    moment = dt.datetime.combine(dt.date(1970, 1, 2), value)
    return moment.time() if value.tzinfo is None else moment.astimezone(UTC).time()
