"""Converts values to and from Protobuf messages, with functions made once for each schema. No I/O."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sluiceway.converters.registry.avro_write import values_of
from sluiceway.converters.registry.protobuf_connect import (
    WRAPPED,
    is_map,
    is_proto3_optional,
    is_repeated,
    real_oneof,
    union_name,
)
from sluiceway.converters.registry.protobuf_schema import ENUM, ENUM_PREFIX, KEY, VALUE, ProtobufOptions, is_oneof
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.logical import DATE, DECIMAL, FROM_LOGICAL, SCALE, TIME, TIMESTAMP, TO_LOGICAL
from sluiceway.data.null_values import null_value
from sluiceway.errors import DataError
from sluiceway.java.numbers import wrap

Convert = Callable[[Any], Any]

_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT64: 64}
_NANOS = 1_000_000


def writer(schema: Schema, options: ProtobufOptions) -> Convert:
    """Return the function from a struct to the keyword arguments of its message, without fields that are null."""
    fields: list[tuple[int, str, Any, Convert | None]] = []
    for part in schema.fields:
        if is_oneof(part.schema):
            fields.append((part.index, "", None, _oneof(part.schema, options)))
        else:
            default = null_value(part.schema, replace=not options.keep_nulls)
            fields.append((part.index, options.plain(part.name), default, _converter(part.schema, options)))

    def write(value: Any) -> dict[str, Any]:
        values = values_of(schema, value)
        arguments = {}
        for index, name, default, convert in fields:
            item = values[index]
            if item is None:
                item = default
                if item is None:
                    continue
            if name:
                arguments[name] = item if convert is None else convert(item)
            elif convert is not None:
                arguments |= convert(item)
        return arguments

    return write


def _oneof(schema: Schema, options: ProtobufOptions) -> Convert:
    write = writer(schema, options)

    def convert(value: Any) -> dict[str, Any]:
        arguments = write(value)
        for name, item in arguments.items():
            return {name: item}  # the first field that is set, like in Confluent's converter
        raise DataError("Cannot find non-null field")

    return convert


def _converter(schema: Schema, options: ProtobufOptions) -> Convert | None:
    if schema.name in _TO_MESSAGE:
        to_message = _TO_MESSAGE[str(schema.name)]
        return lambda value: to_message(schema, value)
    if schema.type is Type.STRUCT:
        return writer(schema, options)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        items = _converter(schema.value_schema, options)
        return (lambda values: [items(value) for value in values]) if items else None
    if schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
        keys, values = _converter(schema.key_schema, options) or _same, _converter(schema.value_schema, options) or _same
        return lambda pairs: [
            {KEY: keys(key)} if value is None else {KEY: keys(key), VALUE: values(value)} for key, value in pairs.items()
        ]
    if schema.type is Type.STRING and ENUM in schema.parameters:
        numbers = {key[len(ENUM_PREFIX) :]: int(tag) for key, tag in schema.parameters.items() if key.startswith(ENUM_PREFIX)}
        return numbers.__getitem__
    if schema.optional and options.wrappers:
        return lambda value: {"value": value}
    return None


def _same(value: Any) -> Any:
    return value


def _decimal(_schema: Schema, value: Any) -> dict[str, Any]:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise DataError(f"Invalid type for Decimal, expected Decimal but was {type(value).__name__}")
    scale = -int(value.as_tuple().exponent)
    own = Schema(Type.BYTES, name=DECIMAL, parameters={SCALE: str(scale)})  # the message contains the scale of the value
    return {"value": FROM_LOGICAL[DECIMAL](own, value), "precision": len(value.as_tuple().digits), "scale": scale}


def _date(schema: Schema, value: Any) -> dict[str, int]:
    FROM_LOGICAL[DATE](schema, value)  # raises DataError if it is not a date
    return {"year": value.year, "month": value.month, "day": value.day}


def _time(schema: Schema, value: Any) -> dict[str, int]:
    millis = FROM_LOGICAL[TIME](schema, value)
    return {
        "hours": millis // 3_600_000,
        "minutes": millis // 60_000 % 60,
        "seconds": millis // 1000 % 60,
        "nanos": millis % 1000 * _NANOS,
    }


def _timestamp(schema: Schema, value: Any) -> dict[str, int]:
    seconds, millis = divmod(FROM_LOGICAL[TIMESTAMP](schema, value), 1000)
    return {"seconds": seconds, "nanos": millis * _NANOS}


_TO_MESSAGE: dict[str, Callable[[Schema, Any], dict[str, Any]]] = {
    DECIMAL: _decimal,
    DATE: _date,
    TIME: _time,
    TIMESTAMP: _timestamp,
}


def reader(message: Any, schema: Schema, options: ProtobufOptions) -> Convert:
    """Return the function from messages to structs of their Connect schema."""
    if message.full_name in WRAPPED and schema.type is not Type.STRUCT:
        return _unwrapped(schema)
    oneofs = [(oneof, union_name(oneof, options)) for oneof in message.oneofs if any(map(real_oneof, oneof.fields))]
    unions = []
    for oneof, name in oneofs:
        union = schema.field(name)
        assert union is not None  # noqa: S101 (made from the same oneof)
        reads = {part.name: _field_reader(part, _inner(union.schema, part), options) for part in oneof.fields}
        unions.append((union.index, oneof.name, union.schema, reads))
    fields = []
    for part in message.fields:
        if real_oneof(part) is None:
            field = schema.field(part.name)
            assert field is not None  # noqa: S101 (made from the same message)
            presence = not is_repeated(part) and (
                part.message_type is not None or (options.optionals and is_proto3_optional(part))
            )
            fields.append((field.index, part.name, presence, _field_reader(part, field.schema, options)))
    size = len(schema.fields)

    def read(value: Any) -> Struct:
        values: list[Any] = [None] * size
        for index, name, union_schema, reads in unions:
            chosen = value.WhichOneof(name)
            if chosen is not None:
                item, convert = getattr(value, chosen), reads[chosen]
                values[index] = Struct(union_schema, {chosen: item if convert is None else convert(item)})
        for index, name, presence, convert in fields:
            if not presence or value.HasField(name):
                item = getattr(value, name)
                values[index] = item if convert is None else convert(item)
        return Struct.of(schema, values)

    return read


def _inner(schema: Schema, part: Any) -> Schema:
    field = schema.field(part.name)
    assert field is not None  # noqa: S101 (made from the same message)
    return field.schema


def _unwrapped(schema: Schema) -> Convert:
    if schema.type is Type.INT64:
        return lambda message: wrap(message.value, 64)
    return lambda message: message.value


def _field_reader(part: Any, schema: Schema, options: ProtobufOptions) -> Convert | None:
    if is_repeated(part):
        if schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
            return _map_reader(part, schema, options)
        assert schema.value_schema is not None  # noqa: S101 (made from the same field)
        items = _single_reader(part, schema.value_schema, options)
        return list if items is None else lambda values: [items(value) for value in values]
    return _single_reader(part, schema, options)


def _map_reader(part: Any, schema: Schema, options: ProtobufOptions) -> Convert:
    assert schema.key_schema is not None and schema.value_schema is not None  # noqa: S101, PT018 (it is a map)
    key, value = part.message_type.fields
    keys = _field_reader(key, schema.key_schema, options) or _same
    values = _field_reader(value, schema.value_schema, options) or _same
    if part.message_type.GetOptions().map_entry:  # protobuf returns a real map as a mapping
        return lambda pairs: {keys(name): values(item) for name, item in pairs.items()}
    presence = value.message_type is not None and not is_repeated(value)
    return lambda pairs: {keys(pair.key): values(pair.value) if not presence or pair.HasField(VALUE) else None for pair in pairs}


def _single_reader(part: Any, schema: Schema, options: ProtobufOptions) -> Convert | None:
    if part.enum_type is not None:
        names = {value.number: value.name for value in part.enum_type.values}
        return lambda number: names.get(number, f"UNKNOWN_ENUM_VALUE_{part.enum_type.name}_{number}")
    if part.message_type is None:
        bits = _BITS.get(schema.type)
        return None if bits is None else lambda value: wrap(value, bits)
    if schema.name in _FROM_MESSAGE:
        from_message = _FROM_MESSAGE[str(schema.name)]
        return lambda value: from_message(schema, value)
    if options.wrappers and part.message_type.full_name in WRAPPED:
        return _unwrapped(schema)
    assert not is_map(part.message_type) or schema.type is Type.STRUCT  # noqa: S101
    return reader(part.message_type, schema, options)


def _to_decimal(_schema: Schema, message: Any) -> Decimal:
    own = Schema(Type.BYTES, name=DECIMAL, parameters={SCALE: str(message.scale)})
    decimal: Decimal = TO_LOGICAL[DECIMAL](own, message.value)
    return decimal


def _to_date(_schema: Schema, message: Any) -> dt.date:
    try:
        return dt.date(message.year, message.month, message.day)
    except ValueError as error:
        raise DataError(f"Invalid google.type.Date {message.year}-{message.month}-{message.day}: {error}") from None


def _to_time(schema: Schema, message: Any) -> Any:
    seconds = (message.hours * 60 + message.minutes) * 60 + message.seconds
    return TO_LOGICAL[TIME](schema, seconds * 1000 + message.nanos // _NANOS)


def _to_timestamp(schema: Schema, message: Any) -> Any:
    return TO_LOGICAL[TIMESTAMP](schema, message.seconds * 1000 + message.nanos // _NANOS)


_FROM_MESSAGE: dict[str, Callable[[Schema, Any], Any]] = {
    DECIMAL: _to_decimal,
    DATE: _to_date,
    TIME: _to_time,
    TIMESTAMP: _to_timestamp,
}
