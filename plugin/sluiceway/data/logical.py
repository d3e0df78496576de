"""Converts Connect's logical types Decimal, Date, Time and Timestamp from and to primitive types.

In Python a Decimal is a ``decimal.Decimal``, a Date a ``datetime.date``, a Time a ``datetime.time`` and a Timestamp an
aware ``datetime.datetime`` in UTC. Dates, times and timestamps have milliseconds, as in Connect, and are interchangeable, because
all of them are Java's ``Date`` there. A value that Python's type cannot represent is an ``Instant``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from sluiceway.data.instant import EPOCH_DAY, MOMENT_TYPES, Instant, date_of, millis_of, time_of, timestamp_of
from sluiceway.data.schema import Schema, Type
from sluiceway.errors import DataError
from sluiceway.java.dates.hybrid_calendar import DAY_MS

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"

SCALE = "scale"

# The default context would round to 28 digits.
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ANY_COLUMN = Context(prec=200_000)  # PostgreSQL's numeric has up to 131,072 digits before and 16,383 after the point


def decimal_schema(scale: int, *, optional: bool = False, default: Decimal | None = None) -> Schema:
    """Return the schema of decimals with ``scale`` digits after the point."""
    return Schema(Type.BYTES, optional=optional, default=default, name=DECIMAL, version=1, parameters={SCALE: str(scale)})


def date_schema(*, optional: bool = False, default: dt.date | None = None) -> Schema:
    """Return the schema of dates."""
    return Schema(Type.INT32, optional=optional, default=default, name=DATE, version=1)


def time_schema(*, optional: bool = False, default: dt.time | None = None) -> Schema:
    """Return the schema of times of day."""
    return Schema(Type.INT32, optional=optional, default=default, name=TIME, version=1)


def timestamp_schema(*, optional: bool = False, default: dt.datetime | None = None) -> Schema:
    """Return the schema of timestamps, in milliseconds."""
    return Schema(Type.INT64, optional=optional, default=default, name=TIMESTAMP, version=1)


def decimal_scale(schema: Schema) -> int:
    """Return a Decimal schema's scale. Raises DataError if it is missing or not a number."""
    text = schema.parameters.get(SCALE)
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError:
        raise DataError("Invalid scale parameter found in Decimal schema: ") from None


def decimal_to_bytes(schema: Schema, value: Any) -> bytes:
    """Return a decimal's unscaled value as big-endian two's complement; the scale must be the schema's."""
    scale = decimal_scale(schema)
    if not isinstance(value, Decimal) or not value.is_finite():
        raise DataError(f"Invalid type for Decimal: {value!r} of {type(value).__name__}")
    exponent = value.as_tuple().exponent
    if -int(exponent) != scale:
        raise DataError(
            f"Decimal value has mismatching scale for given Decimal schema. Schema has scale {scale}, "
            f"value has scale {-int(exponent)}."
        )
    return unscaled_bytes(unscaled(value, scale))


def unscaled(value: Decimal, scale: int) -> int:
    """Return ``value * 10**scale`` of a decimal with this scale and any number of digits."""
    return int(value.scaleb(scale, _EXACT))


def unscaled_bytes(number: int) -> bytes:
    """Return an integer as the shortest big-endian two's complement."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def decimal_of(number: int, scale: int) -> Decimal:
    """Return ``number * 10**-scale`` with that scale and any number of digits (``new BigDecimal(number, scale)``)."""
    return Decimal(number).scaleb(-scale, _EXACT)


def at_scale(value: Decimal, scale: int, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """Return a decimal with so many digits after the point (``BigDecimal.setScale``), and all its digits before it.

    Raises decimal.InvalidOperation for more than 200,000 digits, which no database has.
    """
    return value.quantize(Decimal((0, (1,), -scale)), rounding, _ANY_COLUMN)


def decimal_from_bytes(schema: Schema, value: bytes) -> Decimal:
    """Return the decimal of an unscaled value in big-endian two's complement."""
    return decimal_of(int.from_bytes(value, "big", signed=True), decimal_scale(schema))


def date_to_days(_schema: Schema, value: Any) -> int:
    """Return the days since the epoch."""
    if type(value) is dt.date:
        return value.toordinal() - EPOCH_DAY
    days, rest = divmod(_millis("Date", value), DAY_MS)
    if rest:
        raise DataError("Kafka Connect Date type should not have any time fields set to non-zero values.")
    return days


def date_from_days(_schema: Schema, value: int) -> dt.date | Instant:
    return date_of(value * DAY_MS)


def time_to_millis(_schema: Schema, value: Any) -> int:
    """Return the milliseconds since midnight."""
    millis = _millis("Time", value)
    if not 0 <= millis <= DAY_MS:
        raise DataError("Kafka Connect Time type should not have any date fields set to non-zero values.")
    return millis


def time_from_millis(_schema: Schema, value: int) -> dt.time | Instant:
    if not 0 <= value <= DAY_MS:
        raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
    return time_of(value)


def timestamp_to_millis(_schema: Schema, value: Any) -> int:
    """Return the milliseconds since the epoch; naive datetimes are in UTC."""
    return _millis("Timestamp", value)


def timestamp_from_millis(_schema: Schema, value: int) -> dt.datetime | Instant:
    return timestamp_of(value)


def _millis(kind: str, value: Any) -> int:
    if not isinstance(value, MOMENT_TYPES):
        raise DataError(f"Invalid type for {kind}, expected a date or time but was {type(value).__name__}")
    return millis_of(value)


TO_LOGICAL: dict[str, Callable[[Schema, Any], Any]] = {
    DECIMAL: decimal_from_bytes,
    DATE: date_from_days,
    TIME: time_from_millis,
    TIMESTAMP: timestamp_from_millis,
}
"""Functions from primitive to logical values, by schema name."""

FROM_LOGICAL: dict[str, Callable[[Schema, Any], Any]] = {
    DECIMAL: decimal_to_bytes,
    DATE: date_to_days,
    TIME: time_to_millis,
    TIMESTAMP: timestamp_to_millis,
}
"""Functions from logical to primitive values, by schema name; they raise DataError for any other value."""
