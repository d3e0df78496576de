"""Maps a stream's JSON Schema to Connect's schemas, and its values to Connect's values. No I/O."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from enum import Enum
from typing import Any

from sluiceway.data import Schema, Type
from sluiceway.data.logical import date_schema, decimal_schema, timestamp_schema
from sluiceway.errors import ConnectError, DataError

JsonSchema = Mapping[str, Any]

CONNECT, MICROSECONDS, TEXT = "connect", "microseconds", "string"
"""The forms of timestamps."""
DOUBLE = "double"
"""The form of numbers without a scale; the other is ``TEXT``."""

EXTRACTED_AT, TABLE_VERSION = "_sdc_extracted_at", "_sdc_table_version"
"""Fields of a record's metadata, as Singer's targets name them."""

_JSON = "io.debezium.data.Json"
_MICRO_TIMESTAMP = "io.debezium.time.MicroTimestamp"
_LONG_MAX, _LONG_MIN = (1 << 63) - 1, -(1 << 63)
_MOST_DIGITS = 76  # of Arrow's decimals
_EXACT = Context(prec=_MOST_DIGITS, traps=[Inexact, InvalidOperation])
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_FRACTION = re.compile(r"\.(\d+)")
_NANOSECONDS = re.compile(r"(\.\d{6})\d+")
_HOURS = re.compile(r":\d\d(?:\.\d+)?[+-]\d\d$")  # a zone in hours, as PostgreSQL writes it
_MICROSECOND = dt.timedelta(microseconds=1)


class Kind(Enum):
    """A kind of values, by which they are read."""

    STRING = "string"
    INTEGER = "integer"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"
    MICRO_TIMESTAMP = "microseconds"
    JSON = "JSON"
    NUMBER = "number as text"


@dataclass(frozen=True, slots=True)
class Form:
    """The kind of a field's values, and the scale of decimals."""

    kind: Kind
    scale: int = 0

    def schema(self, *, optional: bool = True) -> Schema:
        if self.kind is Kind.DECIMAL:
            return decimal_schema(self.scale, optional=optional)
        if self.kind is Kind.TIMESTAMP:
            return timestamp_schema(optional=optional)
        if self.kind is Kind.DATE:
            return date_schema(optional=optional)
        type_, name = _SCHEMAS[self.kind]
        return Schema(type_, optional=optional, name=name, version=1 if name else None)


_SCHEMAS: Mapping[Kind, tuple[Type, str | None]] = {
    Kind.STRING: (Type.STRING, None),
    Kind.NUMBER: (Type.STRING, None),
    Kind.INTEGER: (Type.INT64, None),
    Kind.DOUBLE: (Type.FLOAT64, None),
    Kind.BOOLEAN: (Type.BOOLEAN, None),
    Kind.MICRO_TIMESTAMP: (Type.INT64, _MICRO_TIMESTAMP),
    Kind.JSON: (Type.STRING, _JSON),
}


@dataclass(frozen=True, slots=True)
class Forms:
    """The options that choose forms: of timestamps, and of numbers without a scale."""

    timestamps: str = CONNECT
    numbers: str = DOUBLE

    def of(self, schema: Any) -> Form:
        """Return the form of a field; JSON text for what has no type, or several."""
        alternatives = [form for form in self._alternatives(schema) if form is not None]
        found = list(dict.fromkeys(alternatives))
        if len(found) == 1:
            return found[0]
        kinds = {form.kind for form in found}
        if found and kinds <= {Kind.STRING, Kind.DATE, Kind.TIMESTAMP, Kind.MICRO_TIMESTAMP}:
            return Form(Kind.STRING)  # such as a timestamp, or any text where it is none
        if found and kinds <= {Kind.INTEGER, Kind.DOUBLE, Kind.NUMBER}:
            return next(form for form in found if form.kind is not Kind.INTEGER)
        return Form(Kind.JSON)

    def _alternatives(self, schema: Any) -> list[Form | None]:
        """Return the forms that a schema allows, None for null."""
        if not isinstance(schema, Mapping):
            return [Form(Kind.JSON)]
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                return [form for each in schema[key] for form in self._alternatives(each)]
        types = schema.get("type")
        names = [types] if isinstance(types, str) else types
        if not isinstance(names, list) or not names:
            return [Form(Kind.JSON)]
        return [self._of_type(name, schema) for name in names]

    def _of_type(self, name: object, schema: JsonSchema) -> Form | None:
        if name == "null":
            return None
        if name == "string":
            return self._of_text(schema)
        if name == "integer":
            largest, smallest = _number(schema.get("maximum")), _number(schema.get("minimum"))
            beyond = (largest is not None and largest > _LONG_MAX) or (smallest is not None and smallest < _LONG_MIN)
            return Form(Kind.DECIMAL) if beyond else Form(Kind.INTEGER)
        if name == "number":
            scale = _scale(schema.get("multipleOf"))
            if scale is not None:
                return Form(Kind.DECIMAL, scale)
            return Form(Kind.DOUBLE if self.numbers == DOUBLE else Kind.NUMBER)
        if name == "boolean":
            return Form(Kind.BOOLEAN)
        return Form(Kind.JSON)

    def _of_text(self, schema: JsonSchema) -> Form:
        form = schema.get("format")
        if form == "date-time" and self.timestamps != TEXT:
            return Form(Kind.TIMESTAMP if self.timestamps == CONNECT else Kind.MICRO_TIMESTAMP)
        if form == "date" and self.timestamps != TEXT:
            return Form(Kind.DATE)
        return Form(Kind.STRING)


def _number(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    return value if isinstance(value, Decimal) else Decimal(repr(value))


def _scale(step: object) -> int | None:
    """Return the number of digits after the point of values that are multiples of a step; None if it does not say so."""
    number = _number(step)
    if number is None or not number.is_finite() or number <= 0:
        return None
    exponent = int(number.normalize().as_tuple().exponent)
    scale = max(-exponent, 0)
    return scale if scale <= _MOST_DIGITS else None


def parse_schema(data: bytes) -> Any:
    """Return a JSON document with exact numbers. Raises ValueError."""
    return json.loads(data, parse_float=Decimal)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a stream's records."""

    name: str
    form: Form


class Layout:
    """The fields of a stream's records, and their schemas.

    Value fields are optional: taps leave out what is null. Those of the key are what the tap declares. ``extra`` are fields of
    the metadata, after the record's own.
    """

    def __init__(self, stream: str, schema: Any, key_properties: Sequence[str], forms: Forms, *, metadata: bool = False) -> None:
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        if not isinstance(properties, Mapping):
            raise ConnectError(f"The schema of stream {stream} has no properties, so its records have no fields.")
        self.stream = stream
        self.fields = [Field(str(name), forms.of(each)) for name, each in properties.items()]
        taken = {field.name for field in self.fields}
        added = (
            (EXTRACTED_AT, Kind.MICRO_TIMESTAMP if forms.timestamps == MICROSECONDS else Kind.TIMESTAMP),
            (TABLE_VERSION, Kind.INTEGER),
        )
        if forms.timestamps == TEXT:
            added = ((EXTRACTED_AT, Kind.STRING), (TABLE_VERSION, Kind.INTEGER))
        self.extra = [Field(name, Form(kind)) for name, kind in added if metadata and name not in taken]
        self.schema = Schema.struct([(field.name, field.form.schema()) for field in (*self.fields, *self.extra)])
        positions = {field.name: number for number, field in enumerate(self.fields)}
        missing = [name for name in key_properties if name not in positions]
        if missing:
            raise ConnectError(f"The key of stream {stream} has {missing[0]}, which its schema does not have.")
        self.keys = [positions[name] for name in key_properties]
        self.key_schema = (
            Schema.struct(
                [
                    (name, self.fields[positions[name]].form.schema(optional=_nullable(properties[name])))
                    for name in key_properties
                ]
            )
            if key_properties
            else None
        )


def _nullable(schema: Any) -> bool:
    """Return whether a schema allows null, or does not say what it allows."""
    if not isinstance(schema, Mapping):
        return True
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return any(_nullable(each) for each in schema[key])
    types = schema.get("type")
    return types is None or "null" in types


# --- values, one by one ---


def _text(data: bytes) -> str:
    value = json.loads(data)
    if not isinstance(value, str):
        raise ValueError(f"{_json_type(value)} in place of a string")
    return value


def _whole(data: bytes) -> int:
    value = json.loads(data, parse_float=Decimal)
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        value = int(value)  # 1.0 is an integer in JSON Schema
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{_json_type(value)} in place of an integer")
    if not _LONG_MIN <= value <= _LONG_MAX:
        raise ValueError("an integer of more than 64 bits")
    return value


def _double(data: bytes) -> float:
    value = json.loads(data)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{_json_type(value)} in place of a number")
    return float(value)


def _boolean(data: bytes) -> bool:
    value = json.loads(data)
    if not isinstance(value, bool):
        raise ValueError(f"{_json_type(value)} in place of a boolean")
    return value


def _number_text(data: bytes) -> str:
    _double(data)
    return data.decode()


def exact_decimal(value: Decimal, scale: int) -> Decimal:
    """Return a decimal with a scale. Raises ValueError if it has more digits."""
    try:
        exact = value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
        return exact or exact.copy_abs()  # Arrow has no negative zero
    except (Inexact, InvalidOperation):
        raise ValueError(f"a number that has more than {scale} digits after the point, or more than {_MOST_DIGITS}") from None


def _decimal(data: bytes, scale: int) -> Decimal:
    value = json.loads(data, parse_float=Decimal, parse_int=Decimal)
    if isinstance(value, str):
        try:
            value = Decimal(value)
        except InvalidOperation:
            raise ValueError("a string that is no number") from None
    if isinstance(value, float) or (isinstance(value, Decimal) and not value.is_finite()):
        raise ValueError("NaN or an infinity in place of a number")
    if not isinstance(value, Decimal):
        raise ValueError(f"{_json_type(value)} in place of a number")
    return exact_decimal(value, scale)


def parse_timestamp(text: str) -> dt.datetime:
    """Return an RFC 3339 timestamp in UTC, where one without a zone is. Raises ValueError."""
    import msgspec

    if _NANOSECONDS.search(text):
        text = _NANOSECONDS.sub(r"\1", text)  # else they would be rounded
    if _HOURS.search(text):
        text += ":00"
    try:
        found = msgspec.convert(text, dt.datetime)
    except msgspec.ValidationError:
        try:
            found = dt.datetime.combine(dt.date.fromisoformat(text), dt.time())
        except ValueError:
            raise ValueError("a text that is no timestamp of RFC 3339") from None
    if found.tzinfo is None:
        return found.replace(tzinfo=dt.timezone.utc)
    try:
        return found.astimezone(dt.timezone.utc)
    except OverflowError:
        raise ValueError("a timestamp outside of the years 1 to 9999") from None


def has_more_digits(text: str, most: int) -> bool:
    """Return whether a timestamp has more digits of seconds than that, other than zeros."""
    digits = _FRACTION.search(text)
    return digits is not None and len(digits[1].rstrip("0")) > most


def micros_of(moment: dt.datetime) -> int:
    """Return the microseconds since the epoch."""
    return (moment - _EPOCH) // _MICROSECOND


def _date(data: bytes) -> dt.date:
    text = _text(data)
    try:
        return dt.date.fromisoformat(text) if len(text) == len("2026-01-01") else _midnight(text)
    except ValueError:
        raise ValueError("a text that is no date") from None


def _midnight(text: str) -> dt.date:
    moment = parse_timestamp(text)
    if moment.time() != dt.time():
        raise ValueError
    return moment.date()


def to_millis(moment: dt.datetime) -> dt.datetime:
    """Return a timestamp without what is below a millisecond, as Connect's ``Timestamp`` has it."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _json_text(data: bytes) -> str:
    json.loads(data)
    return data.decode()


_READERS: Mapping[Kind, Callable[[bytes, int], Any]] = {
    Kind.STRING: lambda data, _: _text(data),
    Kind.INTEGER: lambda data, _: _whole(data),
    Kind.DOUBLE: lambda data, _: _double(data),
    Kind.BOOLEAN: lambda data, _: _boolean(data),
    Kind.DECIMAL: _decimal,
    Kind.DATE: lambda data, _: _date(data),
    Kind.TIMESTAMP: lambda data, _: to_millis(parse_timestamp(_text(data))),
    Kind.MICRO_TIMESTAMP: lambda data, _: micros_of(parse_timestamp(_text(data))),
    Kind.JSON: lambda data, _: _json_text(data),
    Kind.NUMBER: lambda data, _: _number_text(data),
}


def read_value(field: Field, data: bytes | None) -> Any:
    """Return the value of a field from its JSON text; None for null, and for a field that is not there. Raises DataError."""
    if data is None or data == b"null":
        return None
    try:
        return _READERS[field.form.kind](data, field.form.scale)
    except ValueError as error:
        raise DataError(f"the field {field.name} has {error or 'an unexpected value'}") from None


def _json_type(value: object) -> str:
    names = ((bool, "a boolean"), ((int, float, Decimal), "a number"), (str, "a string"), (list, "an array"), (dict, "an object"))
    return next((name for kind, name in names if isinstance(value, kind)), "null")
