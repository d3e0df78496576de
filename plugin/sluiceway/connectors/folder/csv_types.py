"""The types of CSV columns: their schemas, and the values of fields, one by one or by Arrow. No I/O.

The columnar form takes those texts for which Arrow does the same as the row form, and leaves the others to it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.folder.formats import shortened
from sluiceway.data import (
    OPTIONAL_BOOLEAN_SCHEMA,
    OPTIONAL_FLOAT32_SCHEMA,
    OPTIONAL_FLOAT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    Schema,
    date_schema,
    decimal_schema,
    timestamp_schema,
)
from sluiceway.data.instant import EARLIEST_MILLIS, EPOCH_DAY, LATEST_MILLIS
from sluiceway.data.logical import at_scale
from sluiceway.java.numbers import to_float32

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

_BLANKS = " \t\r\n"
_MOST_DIGITS = 38
_PRECISION = "connect.decimal.precision"  # a schema parameter that sinks read beside Connect's scale

_WHOLE = "[+-]?[0-9]+"
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_FLOAT = rf"{_NUMBER}(?:[eE][+-]?[0-9]+)?"
_NO_NUMBER = "(?i:nan|[+-]?inf(?:inity)?)"
_DATE = "([0-9]{4})-([0-9]{2})-([0-9]{2})"
_LOCAL = rf"{_DATE}(?:[T ]([0-9]{{2}}):([0-9]{{2}})(?::([0-9]{{2}})(?:\.([0-9]+))?)?)?"
_OFFSET = "(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)"
_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")
_DECIMAL_NAME = re.compile(r"decimal\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column. Blanks around a field do not count, and an empty field is null.

    Attributes:
        name: the name in a config.
        schema: that of the values, which are optional.
        parse: returns the value of a text, which is not empty. Raises ValueError or ArithmeticError if it has none.
        convert: returns the values of a string array, None if ``parse`` must find them. Raises ArrowInvalid for the same reason.
    """

    name: str
    schema: Schema
    parse: Callable[[str], Any]
    convert: Callable[[Any], AnyArray | None]

    def value(self, text: str) -> Any:
        """Return the value of a field. Raises ValueError if it has none."""
        content = text.strip(_BLANKS)
        try:
            return self.parse(content) if content else None
        except (ValueError, ArithmeticError):
            raise ValueError(f"{shortened(text.encode())} is no {self.name}") from None

    def array(self, texts: AnyArray) -> AnyArray | None:
        """Return the values of fields, the same as ``value``; None if that must find them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        content = pc.utf8_trim(texts, characters=_BLANKS)
        try:
            return self.convert(pc.if_else(pc.equal(content, pa.scalar("")), None, content))
        except pa.ArrowInvalid:
            return None


def column_type(name: str) -> ColumnType | None:
    """Return the type with a name, None for a string. Raises ValueError if there is no such type."""
    if name == "string":
        return None
    if name in _TYPES:
        return _TYPES[name]
    found = _DECIMAL_NAME.fullmatch(name)
    if not found:
        raise ValueError(f"the type {name!r} is none of string, {', '.join(_TYPES)}, and decimal(digits,digits after the point)")
    precision, scale = int(found[1]), int(found[2])
    if not max(1, scale) <= precision <= _MOST_DIGITS:
        raise ValueError(f"the type {name} must have 1 to {_MOST_DIGITS} digits, and no more of them after the point")
    return _decimal(precision, scale)


def _all_match(texts: Any, pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, f"^(?:{pattern})$"), min_count=0).as_py())


def _checked(text: str, pattern: str) -> re.Match[str]:
    found = re.fullmatch(pattern, text)
    if found is None:
        raise ValueError(text)
    return found


# --- Booleans


def _boolean(text: str) -> bool:
    lower = text.lower()
    if lower not in _TRUE + _FALSE:
        raise ValueError(text)
    return lower in _TRUE


def _booleans(texts: Any) -> AnyArray | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    lower = pc.ascii_lower(texts)
    are_known = pc.is_in(lower, value_set=pa.array(_TRUE + _FALSE + (None,), pa.utf8()))
    if not pc.all(are_known, min_count=0).as_py():
        return None
    are_true: AnyArray = pc.if_else(pc.is_null(lower), None, pc.is_in(lower, value_set=pa.array(_TRUE, pa.utf8())))
    return are_true


# --- Numbers


def _integer(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(_checked(text, _WHOLE)[0])
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(text)
        return value

    return parse


def _integers(bits: int) -> Callable[[Any], AnyArray | None]:
    def convert(texts: Any) -> AnyArray | None:
        import pyarrow as pa

        return texts.cast(pa.int32() if bits == 32 else pa.int64()) if _all_match(texts, _WHOLE) else None

    return convert


def _float64(text: str) -> float:
    if re.fullmatch(_NO_NUMBER, text):
        return float(text)
    value = float(_checked(text, _FLOAT)[0])
    if math.isinf(value):
        raise ValueError(text)
    return value


def _float32(text: str) -> float:
    exact = _float64(text)
    value = to_float32(exact)
    if math.isinf(value) and not math.isinf(exact):
        raise ValueError(text)
    return value


def _floats(bits: int) -> Callable[[Any], AnyArray | None]:
    def convert(texts: Any) -> AnyArray | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not _all_match(texts, _FLOAT):
            return None
        values = texts.cast(pa.float64())
        if bits == 32:
            values = values.cast(pa.float32())
        return None if pc.any(pc.is_inf(values), min_count=0).as_py() else values

    return convert


def _decimal(precision: int, scale: int) -> ColumnType:
    def parse(text: str) -> Decimal:
        exact = Decimal(_checked(text, _NUMBER)[0])
        value = at_scale(exact, scale)
        if value != exact or len(value.as_tuple().digits) > precision:
            raise ValueError(text)
        return value if value else abs(value)  # as in Java, there is no -0

    def convert(texts: Any) -> AnyArray | None:
        import pyarrow as pa

        # Of more digits, Arrow makes another number without an error.
        are_known = _all_match(texts, _NUMBER) and _all_match(texts, f".{{1,{_MOST_DIGITS}}}")
        return texts.cast(pa.decimal128(precision, scale)) if are_known else None

    schema = decimal_schema(scale, optional=True)
    schema = schema.replace(parameters={**schema.parameters, _PRECISION: str(precision)})
    return ColumnType(f"decimal({precision},{scale})", schema, parse, convert)


# --- Dates and times


def _date(text: str) -> dt.date:
    year, month, day = map(int, _checked(text, _DATE).groups())
    return dt.date(year, month, day)


def _dates(texts: Any) -> AnyArray | None:
    import pyarrow as pa

    if not _all_match(texts, _DATE):
        return None
    values = texts.cast(pa.date32())
    return values if _are_at_least(values.cast(pa.int32()), 1 - EPOCH_DAY) else None


def _timestamp(text: str) -> dt.datetime:
    """Return the timestamp of a text of ISO 8601, to milliseconds. Without an offset, it is in UTC."""
    *numbers, fraction, sign, hours, minutes = _checked(text, f"{_LOCAL}{_OFFSET}?").groups()
    year, month, day, hour, minute, second = (int(each or 0) for each in numbers)
    millis = int(f"{fraction or 0:0<3}"[:3])
    local = dt.datetime(year, month, day, hour, minute, second, millis * 1000, tzinfo=dt.timezone.utc)
    offset = dt.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if int(hours or 0) > 23 or int(minutes or 0) > 59:
        raise ValueError(text)
    return local + offset if sign == "-" else local - offset


def _timestamps(texts: Any) -> AnyArray | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    utc = pa.timestamp("ms", "UTC")
    millis = pc.replace_substring_regex(texts, r"(\.[0-9]{3})[0-9]+", r"\1")
    if _all_match(texts, _LOCAL):
        values = millis.cast(pa.timestamp("ms")).cast(utc)
    elif _all_match(texts, f"{_LOCAL}{_OFFSET}"):
        values = millis.cast(utc)
    else:
        return None
    numbers = values.cast(pa.int64())
    return values if _are_at_least(numbers, EARLIEST_MILLIS) and _are_at_least(pc.negate(numbers), -LATEST_MILLIS) else None


def _are_at_least(values: Any, least: int) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return bool(pc.all(pc.greater_equal(values, pa.scalar(least, values.type)), min_count=0).as_py())


_TYPES = {
    each.name: each
    for each in (
        ColumnType("boolean", OPTIONAL_BOOLEAN_SCHEMA, _boolean, _booleans),
        ColumnType("int32", OPTIONAL_INT32_SCHEMA, _integer(32), _integers(32)),
        ColumnType("int64", OPTIONAL_INT64_SCHEMA, _integer(64), _integers(64)),
        ColumnType("float32", OPTIONAL_FLOAT32_SCHEMA, _float32, _floats(32)),
        ColumnType("float64", OPTIONAL_FLOAT64_SCHEMA, _float64, _floats(64)),
        ColumnType("date", date_schema(optional=True), _date, _dates),
        ColumnType("timestamp", timestamp_schema(optional=True), _timestamp, _timestamps),
    )
}
