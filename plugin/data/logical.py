"""Connect's logical types: Decimal, Date, Time and Timestamp over the primitive types.

In Python a Decimal is a ``decimal.Decimal``, a Date a ``datetime.date``, a Time a ``datetime.time`` and a Timestamp an
aware ``datetime.datetime`` in UTC. All but Decimal are kept to the millisecond, as in Connect.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

from sluiceway.data.schema import Schema, Type
from sluiceway.errors import DataError

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"

SCALE = "scale"

T = TypeVar("T")

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_DAY_MS = 24 * 60 * 60 * 1000
_MILLISECOND = dt.timedelta(milliseconds=1)


def decimal_schema(scale: int, *, optional: bool = False) -> Schema:
    """Return the schema of decimals with ``scale`` digits after the point."""
    return Schema(Type.BYTES, optional=optional, name=DECIMAL, version=1, parameters={SCALE: str(scale)})


def date_schema(*, optional: bool = False) -> Schema:
    """Return the schema of dates."""
    return Schema(Type.INT32, optional=optional, name=DATE, version=1)


def time_schema(*, optional: bool = False) -> Schema:
    """Return the schema of times of the day."""
    return Schema(Type.INT32, optional=optional, name=TIME, version=1)


def timestamp_schema(*, optional: bool = False) -> Schema:
    """Return the schema of moments, to the millisecond."""
    return Schema(Type.INT64, optional=optional, name=TIMESTAMP, version=1)


def decimal_scale(schema: Schema) -> int:
    """Return a Decimal schema's scale; raises DataError where it is missing or not a number."""
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
        raise DataError(f"Invalid value for the Decimal type: {value!r}")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 (it is finite)
    if -exponent != scale:
        raise DataError(f"Decimal value has mismatching scale for given Decimal schema. Schema has scale {scale}, "
                        f"value has scale {-exponent}.")  # fmt: skip
    unscaled = int("".join(map(str, digits)) or "0")
    unscaled = -unscaled if sign else unscaled
    bits = unscaled.bit_length() if unscaled >= 0 else (unscaled + 1).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)


def decimal_from_bytes(schema: Schema, value: bytes) -> Decimal:
    """Return the decimal of an unscaled value in big-endian two's complement, however many digits it has."""
    unscaled = int.from_bytes(value, "big", signed=True)
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -decimal_scale(schema)))


def date_to_days(_schema: Schema, value: Any) -> int:
    """Return the days since the epoch."""
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise DataError(f"Invalid value for the Date type: {value!r}")
    return value.toordinal() - _EPOCH.toordinal()


def date_from_days(_schema: Schema, value: int) -> dt.date:
    return _in_range(lambda: dt.date.fromordinal(_EPOCH.toordinal() + value), "Date", value)


def time_to_millis(_schema: Schema, value: Any) -> int:
    """Return the milliseconds since midnight."""
    if not isinstance(value, dt.time):
        raise DataError(f"Invalid value for the Time type: {value!r}")
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def time_from_millis(_schema: Schema, value: int) -> dt.time:
    if not 0 <= value <= _DAY_MS:
        raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
    return (_EPOCH + value % _DAY_MS * _MILLISECOND).time()


def timestamp_to_millis(_schema: Schema, value: Any) -> int:
    """Return the milliseconds since the epoch; a naive datetime is taken as UTC."""
    if not isinstance(value, dt.datetime):
        raise DataError(f"Invalid value for the Timestamp type: {value!r}")
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.timezone.utc)
    return (aware - _EPOCH) // _MILLISECOND


def timestamp_from_millis(_schema: Schema, value: int) -> dt.datetime:
    return _in_range(lambda: _EPOCH + value * _MILLISECOND, "Timestamp", value)


def _in_range(build: Callable[[], T], kind: str, value: int) -> T:
    try:
        return build()
    except (OverflowError, ValueError):
        raise DataError(f"{kind} value {value} is outside the years 1 to 9999, which is what Python can hold.") from None


TO_LOGICAL: dict[str, Callable[[Schema, Any], Any]] = {
    DECIMAL: decimal_from_bytes, DATE: date_from_days, TIME: time_from_millis, TIMESTAMP: timestamp_from_millis,
}  # fmt: skip
"""From a value of the primitive type to the logical one, by the schema's name."""

FROM_LOGICAL: dict[str, Callable[[Schema, Any], Any]] = {
    DECIMAL: decimal_to_bytes, DATE: date_to_days, TIME: time_to_millis, TIMESTAMP: timestamp_to_millis,
}  # fmt: skip
"""From a logical value to one of the primitive type, by the schema's name; raises DataError for any other value."""
