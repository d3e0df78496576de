"""Which messages each converter reads and writes as columns, exactly, and why not the others.

A columnar form that refuses what it used to handle makes connectors slow without an error, so the tables below have all types.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sluiceway.api import Converter
from sluiceway.api.columns import NotColumnar, RowFormReason
from sluiceway.columns.arrays import to_array
from sluiceway.converters import boolean_converter, byte_array_converter, number_converters, string_converter
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.converters.registry.avro import AvroConverter
from sluiceway.converters.registry.json_schema import JsonSchemaConverter
from sluiceway.converters.registry.protobuf import ProtobufConverter
from sluiceway.data import Schema, Struct, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.discovery import plugins
from support.column_forms import decoded_alike, encoded_alike
from support.schema_registry import Registry, schema_registry

_COUNT = 300  # more than the runs that converters leave to the row form
_UTC = dt.timezone.utc
_PRIMITIVE: dict[str, tuple[Schema, list[Any]]] = {
    "int8": (Schema(Type.INT8), [-128, 0, 127]),
    "int16": (Schema(Type.INT16), [-(2**15), 0, 2**15 - 1]),
    "int32": (Schema(Type.INT32), [-(2**31), 0, 2**31 - 1]),
    "int64": (Schema(Type.INT64), [-(2**63), 0, 2**63 - 1]),
    "float32": (Schema(Type.FLOAT32), [0.5, -1.0, 2.0**24]),
    "float64": (Schema(Type.FLOAT64), [0.1, -1.0, 1e300]),
    "boolean": (Schema(Type.BOOLEAN), [True, False, True]),
    "string": (Schema(Type.STRING), ["a", "", 'é"\n😀']),
    "bytes": (Schema(Type.BYTES), [b"a", b"", b"\x00\xff"]),
    "decimal": (decimal_schema(2), [Decimal("1.25"), Decimal("-3.00"), Decimal("0.01")]),
    "date": (date_schema(), [dt.date(2024, 2, 29), dt.date(1970, 1, 1), dt.date(1969, 12, 31)]),
    "time": (time_schema(), [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999000)]),
    "timestamp": (timestamp_schema(), [dt.datetime(2024, 2, 29, tzinfo=_UTC), dt.datetime(1970, 1, 1, tzinfo=_UTC)] * 2),
}
_INNER = Schema.struct({"x": Schema(Type.INT32), "y": Schema(Type.STRING, optional=True)}, name="com.example.Inner")
_MAP = Schema(Type.MAP, key_schema=Schema(Type.STRING), value_schema=Schema(Type.INT32))
_ARRAY = Schema(Type.ARRAY, value_schema=Schema(Type.STRING))
_ALL = Schema.struct(
    {**{f"f_{name}": schema for name, (schema, _) in _PRIMITIVE.items()}, "s": _INNER, "m": _MAP, "l": _ARRAY},
    name="com.example.All",
)
_OPTIONAL = Schema.struct(
    {f"f_{name}": schema.replace(optional=True) for name, (schema, _) in _PRIMITIVE.items()}, name="com.example.Optional"
)


def _all(at: int) -> Struct:
    inner = Struct(_INNER, {"x": at, "y": None if at % 2 else "y"})
    values = {f"f_{name}": values[at] for name, (_, values) in _PRIMITIVE.items()}
    return Struct(_ALL, {**values, "s": inner, "m": {"k": at}, "l": ["a", "b"][: at % 3]})


DATA: dict[str, tuple[Schema, list[Any]]] = {
    **_PRIMITIVE,
    "array": (_ARRAY, [[], ["a"], ["a", "b"]]),
    "map": (_MAP, [{}, {"a": 1}, {"b": 2, "a": 1}]),
    "map of ints": (
        Schema(Type.MAP, key_schema=Schema(Type.INT32), value_schema=Schema(Type.INT32)),
        [{}, {1: 1}, {2: 2, 1: 1}],
    ),
    "struct": (_ALL, [_all(at) for at in range(3)]),
    "optional": (_OPTIONAL, [Struct(_OPTIONAL, {}), Struct(_OPTIONAL, {"f_int8": 1}), Struct(_OPTIONAL, {})]),
}


def values_of(data: str) -> tuple[Schema, list[Any]]:
    schema, values = DATA[data]
    return schema, [values[at % 3] for at in range(_COUNT)]


def written(converter: Converter, data: str) -> RowFormReason | None:
    """Return None if a converter writes values as columns, or why it does not."""
    schema, values = values_of(data)
    encode = converter.column_encoder("t", schema)
    if encode is None:
        return RowFormReason.CONVERTER
    try:
        encode(to_array(schema, values))
    except NotColumnar as error:
        return error.reason
    assert encoded_alike(converter, schema, values) == _COUNT
    return None


def read(converter: Converter, messages: list[bytes | None]) -> RowFormReason | None:
    """Return None if a converter reads all messages as columns, or why it does not."""
    decode = converter.column_decoder("t")
    if decode is None:
        return RowFormReason.CONVERTER
    refused = {
        run.refusal.reason if run.refusal else None for run in decode(pa.array(messages, pa.binary())) if run.column is None
    }
    if refused:
        (reason,) = refused
        return reason
    assert decoded_alike(converter, messages) == len(messages)
    return None


_TEXTS = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "struct", "optional")
_SIMPLE: dict[type[Converter], tuple[str, ...]] = {
    string_converter.StringConverter: _TEXTS,
    byte_array_converter.ByteArrayConverter: ("bytes",),
    boolean_converter.BooleanConverter: ("boolean",),
    number_converters.ShortConverter: ("int16",),
    number_converters.IntegerConverter: ("int32",),
    number_converters.LongConverter: ("int64",),
    number_converters.FloatConverter: ("float32",),
    number_converters.DoubleConverter: ("float64",),
}
"""The data that the converters of single values write as columns. They read all that they write as columns, too."""

_JSON: dict[str, tuple[dict[str, str], dict[str, RowFormReason]]] = {
    "envelopes": ({}, {}),
    "payloads": ({"schemas.enable": "false"}, {}),
    "numeric decimals": (
        {"decimal.format": "NUMERIC"},
        {"decimal": RowFormReason.VALUE, "struct": RowFormReason.VALUE},  # a double would lose digits
    ),
}
"""Options of JsonConverter, which writes all data as columns, and what it does not read as columns."""


def configured(kind: type[Converter], options: dict[str, str]) -> Converter:
    made = kind()
    made.configure(options)
    return made


def messages_of(converter: Converter, data: str) -> list[bytes | None]:
    schema, values = values_of(data)
    return list(map(converter.encoder("t", schema), values))


@pytest.mark.parametrize("kind", _SIMPLE)
def test_converters_of_single_values_handle_these_as_columns_and_no_others(kind: type[Converter]) -> None:
    made = configured(kind, {})
    expected: dict[str, RowFormReason | None] = dict.fromkeys(DATA, RowFormReason.CONVERTER) | dict.fromkeys(_SIMPLE[kind])
    if kind is string_converter.StringConverter:
        expected["bytes"] = RowFormReason.VALUE  # not all of them are UTF-8
    assert {data: written(made, data) for data in DATA} == expected
    assert {data: read(made, messages_of(made, data)) for data in _SIMPLE[kind]} == dict.fromkeys(_SIMPLE[kind])


def test_text_in_another_encoding_has_no_columnar_form() -> None:
    made = configured(string_converter.StringConverter, {"converter.encoding": "UTF-16"})
    assert {written(made, data) for data in DATA} == {RowFormReason.CONVERTER}
    assert read(made, messages_of(made, "string")) is RowFormReason.CONVERTER


@pytest.mark.parametrize("options", _JSON)
def test_json_handles_these_as_columns_and_no_others(options: str) -> None:
    config, refused = _JSON[options]
    made = configured(JsonConverter, config)
    assert {data: written(made, data) for data in DATA} == dict.fromkeys(DATA)
    assert {data: read(made, messages_of(made, data)) for data in DATA} == {data: refused.get(data) for data in DATA}


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with schema_registry() as running:
        running.levels[""] = "NONE"
        yield running


def test_avro_handles_these_as_columns_and_no_others(registry: Registry) -> None:
    made = configured(AvroConverter, {"schema.registry.url": registry.url})
    refused = ("decimal", "map of ints")  # decimals by themselves, and maps as arrays of entries
    assert {data: written(made, data) for data in DATA} == {
        data: RowFormReason.CONVERTER if data in refused else None for data in DATA
    }
    assert {data: read(made, messages_of(made, data)) for data in DATA} == {
        data: RowFormReason.SCHEMA if data in refused else None for data in DATA
    }


@pytest.mark.parametrize("kind", [JsonSchemaConverter, ProtobufConverter])
def test_other_formats_of_the_registry_have_no_columnar_form(kind: type[Converter], registry: Registry) -> None:
    made = configured(kind, {"schema.registry.url": registry.url})
    assert {written(made, data) for data in DATA} == {RowFormReason.CONVERTER}
    assert read(made, []) is RowFormReason.CONVERTER


def test_the_tables_have_every_converter() -> None:
    tested = {*_SIMPLE, JsonConverter, AvroConverter, JsonSchemaConverter, ProtobufConverter}
    built_in = {each for each in plugins("sluiceway.converters").values() if each.__module__.startswith("sluiceway.")}
    assert built_in - tested == set()
