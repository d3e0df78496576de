"""Maps Connect's schemas to JSON Schema, and their values to what its JSON holds. No I/O.

Names of fields in errors are paths, such as ``address.city``. Errors do not hold values.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from sluiceway.data import Schema, Struct, Type
from sluiceway.data.instant import EPOCH
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, decimal_of, decimal_scale
from sluiceway.data.null_values import null_value
from sluiceway.data.schema import INTEGER_BITS
from sluiceway.errors import DataError
from sluiceway.java.numbers import java_float, to_float32

JsonSchema = dict[str, Any]
Convert = Callable[[Any], Any]

INTEGER, NUMBER, BOOLEAN, STRING = "integer", "number", "boolean", "string"
_FIRST_DAY = EPOCH.date()
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY_NANOSECONDS = 86_400_000_000_000


class Mapped(NamedTuple):
    """A schema as JSON Schema, and the function that makes a value's JSON form. The function gets no null."""

    schema: JsonSchema
    convert: Convert


def mapped(schema: Schema, path: str, *, replace_nulls: bool) -> Mapped:
    """Return what a schema, and values of it that are not null, become. Its function raises DataError for other values."""
    found = _LOGICAL.get(schema.name or "")
    if found is not None:
        return found(schema, path)
    if schema.type is Type.STRUCT:
        return _struct(schema, path, replace_nulls=replace_nulls)
    if schema.type is Type.ARRAY:
        return _array(schema, path, replace_nulls=replace_nulls)
    if schema.type is Type.MAP:
        return _map(schema, path, replace_nulls=replace_nulls)
    json_schema, check = _PRIMITIVES[schema.type]
    return Mapped(dict(json_schema), _guarded(check, schema, path))


def nullable(schema: JsonSchema, *, optional: bool) -> JsonSchema:
    """Return a JSON Schema that also allows null, if it must."""
    return {**schema, "type": ["null", schema["type"]]} if optional else schema


class Nested(NamedTuple):
    """A schema as JSON Schema with its nulls, and the function for all of its values, null too."""

    schema: JsonSchema
    convert: Convert


def nested(schema: Schema, path: str, *, replace_nulls: bool) -> Nested:
    """Return what a part of a value becomes."""
    json_schema, convert = mapped(schema, path, replace_nulls=replace_nulls)
    default = null_value(schema, replace=replace_nulls)
    stands = None if default is None else convert(default)

    def convert_any(value: Any) -> Any:
        if value is not None:
            return convert(value)
        if stands is None and not schema.optional:
            raise DataError(f"the field {path} is null, and its schema does not allow that")
        return stands

    return Nested(nullable(json_schema, optional=schema.optional), convert_any)


def _guarded(convert: Convert, schema: Schema, path: str) -> Convert:
    """Return a function that raises DataError, with the path, for a value that is none of the schema's."""
    what = schema.name or schema.type.value

    def guarded(value: Any) -> Any:
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError, ArithmeticError, KeyError, AttributeError) as error:
            raise DataError(f"the field {path} has a value that is not a {what} for JSON ({_reason(error)})") from None

    return guarded


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, (_UnfitError, UnicodeError)) else type(error).__name__


class _UnfitError(ValueError):
    """A value has no JSON form; its text, which holds no data, says why."""


def merged(first: JsonSchema, second: JsonSchema) -> JsonSchema | None:
    """Return a schema that both kinds of values match; None if a target could not keep them together."""
    kinds = [_kind(first), _kind(second)]
    if set(kinds) == {INTEGER, NUMBER}:
        found: JsonSchema | None = {"type": NUMBER}
    elif kinds[0] != kinds[1]:
        return None
    elif kinds[0] == "object":
        found = _merged_objects(first, second)
    elif kinds[0] == "array":
        items = [each["items"] for each in (first, second) if "items" in each]
        both = merged(items[0], items[-1]) if items else None
        found = {"type": "array"} if not items else None if both is None else {"type": "array", "items": both}
    elif kinds[0] == NUMBER:
        steps = [each["multipleOf"] for each in (first, second) if "multipleOf" in each]
        found = {"type": NUMBER, "multipleOf": min(steps)} if len(steps) > 1 else {"type": NUMBER}
    else:
        found = {**first, "type": kinds[0]} if _rest(first) == _rest(second) else None
    return None if found is None else nullable(found, optional="null" in first["type"] or "null" in second["type"])


def _merged_objects(first: JsonSchema, second: JsonSchema) -> JsonSchema | None:
    """Return the schema of both objects. One with fields, and one with any names, have none in common."""
    if _rest(first).keys() != _rest(second).keys():
        return None
    if "additionalProperties" in first:
        values = merged(first["additionalProperties"], second["additionalProperties"])
        return None if values is None else {"type": "object", "additionalProperties": values}
    if "properties" not in first:
        return {"type": "object"}
    properties = merged_properties(first["properties"], second["properties"])
    return None if properties is None else {"type": "object", "properties": properties}


def merged_properties(first: Mapping[str, JsonSchema], second: Mapping[str, JsonSchema]) -> dict[str, JsonSchema] | None:
    """Return the fields of both; None if one of them cannot be both."""
    found = dict(first)
    for name, schema in second.items():
        both = merged(found[name], schema) if name in found else schema
        if both is None:
            return None
        found[name] = both
    return found


def _kind(schema: JsonSchema) -> str:
    kinds = schema["type"]
    return str(kinds if isinstance(kinds, str) else next(each for each in kinds if each != "null"))


def _rest(schema: JsonSchema) -> JsonSchema:
    return {name: each for name, each in schema.items() if name != "type"}


# --- nested values ---


def _struct(schema: Schema, path: str, *, replace_nulls: bool) -> Mapped:
    parts = {
        field.name: nested(field.schema, f"{path}.{field.name}" if path else field.name, replace_nulls=replace_nulls)
        for field in schema.fields
    }
    fields = tuple((field.name, field.index, parts[field.name].convert) for field in schema.fields)

    def convert(value: Struct) -> dict[str, Any]:
        values = value.values_
        return {name: each(values[index]) for name, index, each in fields}

    return Mapped(
        {"type": "object", "properties": {name: part.schema for name, part in parts.items()}}, _checked(Struct, convert, path)
    )


def _array(schema: Schema, path: str, *, replace_nulls: bool) -> Mapped:
    assert schema.value_schema is not None  # noqa: S101 (of an array)
    items = nested(schema.value_schema, f"{path}[]", replace_nulls=replace_nulls)
    convert = items.convert
    return Mapped(
        {"type": "array", "items": items.schema}, _checked((list, tuple), lambda value: list(map(convert, value)), path)
    )


def _map(schema: Schema, path: str, *, replace_nulls: bool) -> Mapped:
    """Maps with texts as keys are objects; others are arrays of objects with ``key`` and ``value``."""
    assert schema.key_schema is not None and schema.value_schema is not None  # noqa: S101, PT018 (of a map)
    keys = nested(schema.key_schema, f"{path}.key", replace_nulls=replace_nulls)
    values = nested(schema.value_schema, f"{path}.value", replace_nulls=replace_nulls)
    of_key, of_value = keys.convert, values.convert
    if schema.key_schema.type is Type.STRING and not schema.key_schema.optional:
        return Mapped(
            {"type": "object", "additionalProperties": values.schema},
            _checked(Mapping, lambda value: {of_key(key): of_value(each) for key, each in value.items()}, path),
        )
    item = {"type": "object", "properties": {"key": keys.schema, "value": values.schema}}
    return Mapped(
        {"type": "array", "items": item},
        _checked(Mapping, lambda value: [{"key": of_key(key), "value": of_value(each)} for key, each in value.items()], path),
    )


def _checked(kinds: type | tuple[type, ...], convert: Convert, path: str) -> Convert:
    def checked(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise DataError(f"the field {path or 'at the top'} has a {type(value).__name__}, which its schema does not allow")
        return convert(value)

    return checked


# --- single values ---


def _of(kind: type) -> Convert:
    def exact(value: Any) -> Any:
        if type(value) is kind:
            return value
        if isinstance(value, kind) and not isinstance(value, bool):
            return kind(value)  # a class of Connect's narrower numbers
        raise _UnfitError(f"{type(value).__name__}")

    return exact


def _whole(bits: int) -> Convert:
    most = (1 << bits - 1) - 1
    exact = _of(int)

    def convert(value: Any) -> int:
        found: int = exact(value)
        if not -most - 1 <= found <= most:
            raise _UnfitError(f"it has more than {bits} bits")
        return found

    return convert


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _UnfitError(type(value).__name__)
    if not value.isascii():
        value.encode()  # raises for half a surrogate pair
    return value


def double(value: Any) -> float:
    """Return a finite number. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _UnfitError(type(value).__name__)
    if not math.isfinite(value):
        raise _UnfitError("NaN and infinities are no JSON")
    return float(value)


def single(value: Any) -> float:
    """Return a number of 32 bits, with the digits that Java prints, which say no more than the number. Raises ValueError."""
    return float(java_float(to_float32(double(value))))


def base64_text(value: Any) -> str:
    """Return bytes as Base64. Raises ValueError."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise _UnfitError(type(value).__name__)
    return base64.b64encode(value).decode()


def moment_text(value: dt.datetime, timespec: str = "milliseconds") -> str:
    """Return a timestamp of RFC 3339 in UTC, where one without a zone is."""
    if value.tzinfo is None:
        return f"{value.isoformat(timespec=timespec)}+00:00"
    return value.astimezone(dt.timezone.utc).isoformat(timespec=timespec)


_BYTES: JsonSchema = {"type": STRING, "contentEncoding": "base64"}
_PRIMITIVES: Mapping[Type, tuple[JsonSchema, Convert]] = {
    **{type_: ({"type": INTEGER}, _whole(bits)) for type_, bits in INTEGER_BITS.items()},
    Type.FLOAT32: ({"type": NUMBER}, single),
    Type.FLOAT64: ({"type": NUMBER}, double),
    Type.BOOLEAN: ({"type": BOOLEAN}, _of(bool)),
    Type.STRING: ({"type": STRING}, _text),
    Type.BYTES: (_BYTES, base64_text),
}


def _decimal(schema: Schema, path: str) -> Mapped:
    scale = decimal_scale(schema)

    def convert(value: Any) -> Decimal:
        if not isinstance(value, Decimal):
            raise _UnfitError(type(value).__name__)
        if not value.is_finite():
            raise _UnfitError("NaN and infinities are no JSON")
        if -int(value.as_tuple().exponent) > scale:
            raise _UnfitError(f"it has more than {scale} digits after the point")
        return value

    step = Decimal(1).scaleb(-scale)
    return Mapped({"type": NUMBER, "multipleOf": step}, _guarded(convert, schema, path))


def _formatted(form: str, convert: Convert) -> Callable[[Schema, str], Mapped]:
    return lambda schema, path: Mapped({"type": STRING, "format": form}, _guarded(convert, schema, path))


def _day(value: Any) -> str:
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise _UnfitError(f"{type(value).__name__}, or a date outside of the years 1 to 9999")
    return value.isoformat()


def _time(value: Any) -> str:
    if not isinstance(value, dt.time):
        raise _UnfitError(f"{type(value).__name__}")
    return value.isoformat(timespec="milliseconds")


def _moment(value: Any) -> str:
    if not isinstance(value, dt.datetime):
        raise _UnfitError(f"{type(value).__name__}, or a time outside of the years 1 to 9999")
    return moment_text(value)


# --- Debezium's semantic types ---


def _moment_in(nanoseconds: int) -> Convert:
    """Return the function from a number of units since the epoch; microseconds are kept, and nanoseconds cut."""
    timespec = "milliseconds" if nanoseconds == 1_000_000 else "microseconds"
    return lambda value: moment_text(EPOCH + _of(int)(value) * nanoseconds // 1000 * _MICROSECOND, timespec)


def _time_in(nanoseconds: int) -> Convert:
    timespec = "milliseconds" if nanoseconds == 1_000_000 else "microseconds"

    def convert(value: Any) -> str:
        passed = _of(int)(value) * nanoseconds
        if not 0 <= passed < _DAY_NANOSECONDS:
            raise _UnfitError("no time of a day")
        found: str = (EPOCH + passed // 1000 * _MICROSECOND).time().isoformat(timespec=timespec)
        return found

    return convert


def _day_in(value: Any) -> str:
    return (_FIRST_DAY + dt.timedelta(days=_of(int)(value))).isoformat()


def _variable_decimal(schema: Schema, path: str) -> Mapped:
    def convert(value: Any) -> Decimal:
        return decimal_of(int.from_bytes(value["value"], "big", signed=True), int(value["scale"]))

    return Mapped({"type": NUMBER}, _guarded(convert, schema, path))


_MILLI, _MICRO, _NANO = 1_000_000, 1000, 1
_LOGICAL: Mapping[str, Callable[[Schema, str], Mapped]] = {
    DECIMAL: _decimal,
    DATE: _formatted("date", _day),
    TIME: _formatted("time", _time),
    TIMESTAMP: _formatted("date-time", _moment),
    "io.debezium.time.Timestamp": _formatted("date-time", _moment_in(_MILLI)),
    "io.debezium.time.MicroTimestamp": _formatted("date-time", _moment_in(_MICRO)),
    "io.debezium.time.NanoTimestamp": _formatted("date-time", _moment_in(_NANO)),
    "io.debezium.time.ZonedTimestamp": _formatted("date-time", _text),
    "io.debezium.time.Date": _formatted("date", _day_in),
    "io.debezium.time.Time": _formatted("time", _time_in(_MILLI)),
    "io.debezium.time.MicroTime": _formatted("time", _time_in(_MICRO)),
    "io.debezium.time.NanoTime": _formatted("time", _time_in(_NANO)),
    "io.debezium.time.ZonedTime": _formatted("time", _text),
    "io.debezium.data.VariableScaleDecimal": _variable_decimal,
}
"""The forms of schemas with a name. Those with other names have the form of their type."""
