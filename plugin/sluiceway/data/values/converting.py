"""Converts values to another schema, as Connect's ``Values.convertTo...`` do. No I/O.

Narrow numbers become ``Int8``, ``Int16``, ``Int32`` or ``Float32``, so that they keep their width without a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from sluiceway.data.class_names import java_class
from sluiceway.data.instant import MOMENT_TYPES, date_of, millis_of, time_of, timestamp_of
from sluiceway.data.logical import DATE, DECIMAL, FROM_LOGICAL, TIME, TIMESTAMP, TO_LOGICAL
from sluiceway.data.numbers import Float32, Int8, Int16, Int32
from sluiceway.data.schema import Schema, Type
from sluiceway.data.struct import Struct
from sluiceway.data.text import java_text
from sluiceway.data.values.text import value_text
from sluiceway.errors import DataError
from sluiceway.java.dates.hybrid_calendar import DAY_MS
from sluiceway.java.numbers import decimal_to_integer, double_to_integer, java_double, parse_decimal, to_float32, wrap

_BYTES = (bytes, bytearray, memoryview)


def convert(target: Schema, source: Schema | None, value: Any) -> Any:
    """Convert a value to the target schema. Raises DataError if that is impossible."""
    if value is None:
        if target.optional:
            return None
        raise DataError("Unable to convert a null value to a schema that requires a value")
    logical = _LOGICAL.get(target.name or "")
    if logical is not None and logical[0] is target.type:
        return logical[1](target, source, value)
    return _CONVERSIONS[target.type](target, source, value)


def _fail(value: Any, to: object, error: BaseException | None = None) -> DataError:
    failure = DataError(f"Unable to convert {java_text(value)} (class {java_class(value)}) to {to}")
    failure.__cause__ = error
    return failure


def _parsed(value: Any) -> Any:
    """Parse a string; return any other value unchanged."""
    from sluiceway.data.values.parsing import parse_string

    return parse_string(value).value if isinstance(value, str) else value


def _as_long(value: Any, source: Schema | None) -> int:
    error: ValueError | None = None
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return _long_value(value)
    if isinstance(value, str):
        try:
            return _long_value(parse_decimal(value))
        except ValueError as failure:
            error = failure
    return _logical_number(value, source, error)


def _long_value(value: float | Decimal) -> int:
    if isinstance(value, Decimal):
        return decimal_to_integer(value, 64)
    return double_to_integer(value, 64) if isinstance(value, float) else wrap(value, 64)


def _as_double(value: Any, source: Schema | None) -> float:
    error: ValueError | None = None
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(parse_decimal(value))
        except ValueError as failure:
            error = failure
    return float(_logical_number(value, source, error))


def _logical_number(value: Any, source: Schema | None, error: BaseException | None) -> int:
    """Return the primitive value of a date, time or timestamp."""
    if source is None:
        raise _fail(value, "a number", error)
    if isinstance(value, MOMENT_TYPES) and source.name in (DATE, TIME, TIMESTAMP):
        return FROM_LOGICAL[source.name](source, value)  # type: ignore[no-any-return]
    raise _fail(value, source, error)


def _to_boolean(_target: Schema, source: Schema | None, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    parsed = _parsed(value)
    return parsed if isinstance(parsed, bool) else _as_long(value, source) != 0


def _to_integer(kind: type[int], bits: int) -> Callable[[Schema, Schema | None, Any], int]:
    return lambda _target, source, value: kind(wrap(_as_long(value, source), bits))


def _to_float32(_target: Schema, source: Schema | None, value: Any) -> float:
    return value if isinstance(value, Float32) else Float32(to_float32(_as_double(value, source)))


def _to_float64(_target: Schema, source: Schema | None, value: Any) -> float:
    return float(_as_double(value, source))


def _to_string(_target: Schema, source: Schema | None, value: Any) -> str:
    return value_text(value, source)


def _to_bytes(target: Schema, _source: Schema | None, value: Any) -> bytes:
    if isinstance(value, _BYTES):
        return bytes(value)
    if isinstance(value, Decimal):
        return FROM_LOGICAL[DECIMAL](target, value)  # type: ignore[no-any-return]
    raise _fail(value, target)


def _to_decimal(target: Schema, _source: Schema | None, value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, _BYTES):
        return TO_LOGICAL[DECIMAL](target, bytes(value))  # type: ignore[no-any-return]
    if isinstance(value, str):
        return parse_decimal(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return parse_decimal(java_double(float(value)))
    raise _fail(value, target)


def _to_array(target: Schema, _source: Schema | None, value: Any) -> list[Any]:
    found = _parsed(value)
    if isinstance(found, (list, tuple)):
        return list(found)
    raise _fail(found, target)


def _to_map(target: Schema, _source: Schema | None, value: Any) -> Mapping[Any, Any]:
    found = _parsed(value)
    if isinstance(found, Mapping) and not isinstance(found, Struct):
        return found
    raise _fail(found, target)


def _to_struct(target: Schema, _source: Schema | None, value: Any) -> Struct:
    if isinstance(value, Struct):
        return value
    raise _fail(value, target)


def _to_date(target: Schema, source: Schema | None, value: Any) -> Any:
    value = _parsed(value)
    if isinstance(value, MOMENT_TYPES):
        if source is None or source.name == DATE:
            return date_of(millis_of(value))
        if source.name == TIMESTAMP:
            return TO_LOGICAL[DATE](target, wrap(_quotient(millis_of(value), DAY_MS), 32))
    return TO_LOGICAL[DATE](target, wrap(_as_long(value, source), 32))


def _to_time(target: Schema, source: Schema | None, value: Any) -> Any:
    value = _parsed(value)
    if isinstance(value, MOMENT_TYPES):
        if source is None or source.name == TIME:
            return time_of(millis_of(value))
        if source.name == TIMESTAMP:
            return TO_LOGICAL[TIME](target, millis_of(value) % DAY_MS)
    return TO_LOGICAL[TIME](target, wrap(_as_long(value, source), 32))


def _to_timestamp(target: Schema, source: Schema | None, value: Any) -> Any:
    value = _parsed(value)
    if isinstance(value, MOMENT_TYPES) and source is None:
        return timestamp_of(millis_of(value))
    factor = DAY_MS if isinstance(value, MOMENT_TYPES) and source is not None and source.name == DATE else 1
    return timestamp_of(_as_long(value, source) * factor)


def _quotient(value: int, divisor: int) -> int:
    """Divide as Java does, rounding toward zero."""
    return value // divisor if value >= 0 else -(-value // divisor)


_CONVERSIONS: dict[Type, Callable[[Schema, Schema | None, Any], Any]] = {
    Type.BOOLEAN: _to_boolean,
    Type.INT8: _to_integer(Int8, 8),
    Type.INT16: _to_integer(Int16, 16),
    Type.INT32: _to_integer(Int32, 32),
    Type.INT64: _to_integer(int, 64),
    Type.FLOAT32: _to_float32,
    Type.FLOAT64: _to_float64,
    Type.STRING: _to_string,
    Type.BYTES: _to_bytes,
    Type.ARRAY: _to_array,
    Type.MAP: _to_map,
    Type.STRUCT: _to_struct,
}

_LOGICAL: dict[str, tuple[Type, Callable[[Schema, Schema | None, Any], Any]]] = {
    DECIMAL: (Type.BYTES, _to_decimal),
    DATE: (Type.INT32, _to_date),
    TIME: (Type.INT32, _to_time),
    TIMESTAMP: (Type.INT64, _to_timestamp),
}
