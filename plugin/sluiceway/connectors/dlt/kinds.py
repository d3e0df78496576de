"""dlt's data types: their Connect schemas, their Arrow types, and the values that fit. No I/O. Runs in the reader's process.

| dlt | Connect |
|---|---|
| text, bigint, double, bool, binary | STRING, INT64, FLOAT64, BOOLEAN, BYTES |
| timestamp, time | INT64 in microseconds with Debezium's name, or Connect's Timestamp and Time |
| date | Date |
| decimal(P,S) | Decimal with scale S |
| wei | Decimal with scale 0: integers that 64 bits do not hold |
| json | STRING with Debezium's name of JSON |

All are optional: dlt knows no column that a row must have.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import functools
import json as python_json
import re
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from dlt.common.json import custom_encode, json

from sluiceway.columns.arrow_schema import PRECISION
from sluiceway.data import Schema, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.data.logical import DECIMAL, SCALE

TEXT, BIGINT, DOUBLE, BOOL, BINARY = "text", "bigint", "double", "bool", "binary"
TIMESTAMP, DATE, TIME, WEI, JSON, DECIMAL_KIND = "timestamp", "date", "time", "wei", "json", "decimal"

_PRIMITIVE = {TEXT: Type.STRING, BIGINT: Type.INT64, DOUBLE: Type.FLOAT64, BOOL: Type.BOOLEAN, BINARY: Type.BYTES}
_STORED: dict[str, pa.DataType] = {
    TEXT: pa.utf8(),
    BIGINT: pa.int64(),
    DOUBLE: pa.float64(),
    BOOL: pa.bool_(),
    BINARY: pa.binary(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    DATE: pa.date32(),
    TIME: pa.time64("us"),
    JSON: pa.utf8(),
}
_WEI_DIGITS = 76
_DIGITS_128 = 38
_DEFAULT_DECIMAL = (38, 9)  # dlt's
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_EXACT = decimal.Context(prec=200)
_UTC = dt.timezone.utc
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=_UTC)
_TIMES = "io.debezium.time."


class MisfitError(ValueError):
    """A value would lose something as a value of another type."""


@functools.lru_cache(maxsize=1000)
def schema_of(kind: str, micros: bool) -> Schema:
    """Return the Connect schema of a type. ``micros``: times and timestamps keep their microseconds."""
    if kind in _PRIMITIVE:
        return Schema(_PRIMITIVE[kind], optional=True)
    if kind == TIMESTAMP:
        return (
            Schema(Type.INT64, optional=True, name=f"{_TIMES}MicroTimestamp", version=1)
            if micros
            else timestamp_schema(optional=True)
        )
    if kind == TIME:
        return Schema(Type.INT64, optional=True, name=f"{_TIMES}MicroTime", version=1) if micros else time_schema(optional=True)
    if kind == DATE:
        return date_schema(optional=True)
    if kind == JSON:
        return Schema(Type.STRING, optional=True, name="io.debezium.data.Json", version=1)
    digits, scale = digits_of(kind)
    if digits == _DIGITS_128:
        return decimal_schema(scale, optional=True)
    return Schema(Type.BYTES, optional=True, name=DECIMAL, version=1, parameters={SCALE: str(scale), PRECISION: str(digits)})


def stored_type(kind: str) -> pa.DataType:
    """Return the Arrow type in which values of a type are collected, before they become those of its schema."""
    if kind in _STORED:
        return _STORED[kind]
    digits, scale = digits_of(kind)
    return pa.decimal128(digits, scale) if digits <= _DIGITS_128 else pa.decimal256(digits, scale)


def as_schema_type(kind: str, array: Any, micros: bool) -> Any:
    """Return an array of ``stored_type`` as one of the schema's type."""
    if kind == TIMESTAMP:
        return array.cast(pa.int64()) if micros else array.cast(pa.timestamp("ms", tz="UTC"), safe=False)
    if kind == TIME:
        return array.cast(pa.int64()) if micros else array.cast(pa.time32("ms"), safe=False)
    return array


def digits_of(kind: str) -> tuple[int, int]:
    """Return the digits and the scale of a type of decimals."""
    if kind == WEI:
        return _WEI_DIGITS, 0
    found = _DECIMAL.fullmatch(kind)
    return (int(found[1]), int(found[2])) if found else _DEFAULT_DECIMAL


def is_kind(text: object) -> bool:
    """Return whether a text of a stored offset is a type."""
    return isinstance(text, str) and (text in _STORED or text == WEI or bool(_DECIMAL.fullmatch(text)))


def decimal_kind(digits: int | None, scale: int | None) -> str:
    """Return the type of decimals with these hints, those of dlt where there is none."""
    scale = _DEFAULT_DECIMAL[1] if scale is None else scale
    digits = _DEFAULT_DECIMAL[0] if digits is None else digits
    return f"decimal({min(max(digits, scale, 1), _WEI_DIGITS)},{scale})"


def kind_of_hint(data_type: str, digits: int | None, scale: int | None) -> str | None:
    """Return the type that a column's hint names; None for one that this module does not know."""
    if data_type == DECIMAL_KIND:
        return decimal_kind(digits, scale)
    return data_type if is_kind(data_type) else None


def kind_of_type(type_: type) -> str:
    """Return the type of values of a Python type."""
    kind = _KINDS.get(type_)
    if kind is None:
        kind = _KINDS[type_] = next((each for base, each in _OF_PYTHON if issubclass(type_, base)), JSON)
    return kind


_KINDS: dict[type, str] = {}
_OF_PYTHON: list[tuple[Any, str]] = [
    (bool, BOOL),
    (int, BIGINT),
    (float, DOUBLE),
    (str, TEXT),
    (dt.datetime, TIMESTAMP),
    (dt.date, DATE),
    (dt.time, TIME),
    (decimal.Decimal, DECIMAL_KIND),
    ((bytes, bytearray, memoryview), BINARY),
    (uuid.UUID, TEXT),
]


def kind_of(value: Any) -> str:
    """Return the type of a value, which is not None."""
    kind = kind_of_type(type(value))
    if kind == BIGINT and not -(1 << 63) <= value < 1 << 63:
        return WEI if abs(value) < 10**_WEI_DIGITS else TEXT
    if kind == DECIMAL_KIND:
        scale = -int(value.as_tuple().exponent) if value.is_finite() else 99
        return decimal_kind(None, None) if scale <= _DEFAULT_DECIMAL[1] and value.adjusted() < 29 else TEXT
    return kind


def convert(kind: str, value: Any) -> Any:
    """Return a value as one of a type. Raises MisfitError if that would lose something."""
    if value is None:
        return None
    base = kind.partition("(")[0]
    try:
        return _CONVERT[base](kind, value)
    except (TypeError, ArithmeticError, AttributeError) as error:
        raise MisfitError(str(error)) from error


def _text(_kind: str, value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    return json_text(value) if kind_of_type(type(value)) == JSON else str(value)


def _bigint(_kind: str, value: Any) -> int:
    if isinstance(value, bool) or kind_of_type(type(value)) not in {BIGINT, DOUBLE, TEXT, DECIMAL_KIND}:
        raise MisfitError
    number = int(value)
    if not isinstance(value, str) and number != value:
        raise MisfitError
    if not -(1 << 63) <= number < 1 << 63:
        raise MisfitError
    return number


def _double(_kind: str, value: Any) -> float:
    if isinstance(value, bool) or kind_of_type(type(value)) not in {BIGINT, DOUBLE, TEXT}:
        raise MisfitError
    number = float(value)
    if isinstance(value, int) and int(number) != value:
        raise MisfitError
    return number


def _bool(_kind: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise MisfitError
    return value


def _binary(_kind: str, value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise MisfitError
    return bytes(value)


def _timestamp(_kind: str, value: Any) -> dt.datetime:
    if isinstance(value, bool):
        raise MisfitError
    if isinstance(value, (int, float)):  # seconds, as dlt has it
        value = _EPOCH + dt.timedelta(seconds=value)
    elif isinstance(value, str):
        value = dt.datetime.fromisoformat(value.strip().replace("Z", "+00:00").replace("z", "+00:00"))
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=_UTC)
    if not isinstance(value, dt.datetime):
        raise MisfitError
    return value.replace(tzinfo=_UTC) if value.tzinfo is None else value.astimezone(_UTC)


def _date(_kind: str, value: Any) -> dt.date:
    if isinstance(value, str):
        return dt.date.fromisoformat(value)
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise MisfitError
    return value


def _time(_kind: str, value: Any) -> dt.time:
    if isinstance(value, str):
        value = dt.time.fromisoformat(value)
    if not isinstance(value, dt.time) or value.tzinfo is not None:
        raise MisfitError
    return value


def _decimal(kind: str, value: Any) -> decimal.Decimal:
    if isinstance(value, bool):
        raise MisfitError
    digits, scale = digits_of(kind)
    number = decimal.Decimal(repr(value) if isinstance(value, float) else value)
    if not number.is_finite():
        raise MisfitError
    scaled = number.quantize(decimal.Decimal(1).scaleb(-scale), context=_EXACT)
    if scaled != number or scaled.adjusted() + 1 > digits - scale:
        raise MisfitError
    return scaled


def json_text(value: Any) -> str:
    """Return a nested value as JSON, written as dlt writes it."""
    try:
        return json.dumps(value)
    except TypeError:  # such as an integer of more than 64 bits
        return python_json.dumps(value, default=custom_encode, ensure_ascii=False, separators=(",", ":"))


_CONVERT: dict[str, Callable[[str, Any], Any]] = {
    TEXT: _text,
    BIGINT: _bigint,
    DOUBLE: _double,
    BOOL: _bool,
    BINARY: _binary,
    TIMESTAMP: _timestamp,
    DATE: _date,
    TIME: _time,
    DECIMAL_KIND: _decimal,
    WEI: _decimal,
    JSON: lambda _kind, value: json_text(value),
}
