"""Tests how JSON Schemas of streams become Connect's schemas."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sluiceway.connectors.singer.fields import CONNECT, DOUBLE, MICROSECONDS, TEXT, Forms, Layout, parse_schema
from sluiceway.data import Schema, Type
from sluiceway.data.logical import date_schema, decimal_schema, timestamp_schema
from sluiceway.errors import ConnectError

STRING, LONG, REAL = (Schema(each, optional=True) for each in (Type.STRING, Type.INT64, Type.FLOAT64))
BOOLEAN = Schema(Type.BOOLEAN, optional=True)
JSON = Schema(Type.STRING, optional=True, name="io.debezium.data.Json", version=1)
MICROS = Schema(Type.INT64, optional=True, name="io.debezium.time.MicroTimestamp", version=1)
MOMENT, DAY = timestamp_schema(optional=True), date_schema(optional=True)
DATE_TIME = {"type": "string", "format": "date-time"}


def decimals(scale: int) -> Schema:
    return decimal_schema(scale, optional=True)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ('{"type": "string"}', STRING),
        ('{"type": ["null", "string"]}', STRING),
        ('{"type": ["string", "null"], "maxLength": 5}', STRING),
        ('{"type": ["null", "string"], "format": "date-time"}', MOMENT),
        ('{"type": "string", "format": "date"}', DAY),
        ('{"type": "string", "format": "time"}', STRING),
        ('{"type": "string", "format": "uuid"}', STRING),
        ('{"type": "string", "format": "singer.decimal"}', STRING),
        ('{"type": "integer"}', LONG),
        ('{"type": ["null", "integer"], "minimum": -2147483648, "maximum": 2147483647}', LONG),
        ('{"type": "integer", "minimum": -9223372036854775808, "maximum": 9223372036854775807}', LONG),
        ('{"type": "integer", "minimum": 0, "maximum": 18446744073709551615}', decimals(0)),
        ('{"type": "integer", "minimum": -9223372036854775809}', decimals(0)),
        ('{"type": "number"}', REAL),
        ('{"type": ["integer", "number", "null"]}', REAL),
        ('{"type": "number", "multipleOf": 0.01}', decimals(2)),
        ('{"type": ["null", "number"], "multipleOf": 1e-08}', decimals(8)),
        ('{"type": "number", "multipleOf": 1}', decimals(0)),
        ('{"type": "number", "multipleOf": 10}', decimals(0)),
        ('{"type": "number", "multipleOf": 0.25}', decimals(2)),
        ('{"type": "number", "multipleOf": 0}', REAL),
        ('{"type": "number", "multipleOf": 1e-77}', REAL),
        ('{"type": "number", "multipleOf": "0.01"}', REAL),
        ('{"type": "boolean"}', BOOLEAN),
        ('{"type": "object", "properties": {"a": {"type": "integer"}}}', JSON),
        ('{"type": ["null", "array"], "items": {"type": "string"}}', JSON),
        ("{}", JSON),
        ("true", JSON),
        ('{"type": []}', JSON),
        ('{"type": "null"}', JSON),
        ('{"type": ["string", "integer"]}', JSON),
        ('{"$ref": "#/definitions/x"}', JSON),
        ('{"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}', MOMENT),
        ('{"anyOf": [{"type": "string", "format": "date-time"}, {"type": ["null", "string"]}]}', STRING),
        ('{"oneOf": [{"type": "integer"}, {"type": "number"}]}', REAL),
        ('{"anyOf": [{"type": "array"}, {"type": "object"}, {"type": "null"}]}', JSON),
        ('{"anyOf": [{"type": "array"}, {"type": "null"}, {}]}', JSON),
    ],
)
def test_a_schema_of_json_becomes_one_of_connect(schema: str, expected: Schema) -> None:
    layout = Layout("s", {"properties": {"f": parse_schema(schema.encode())}}, (), Forms())
    assert layout.schema.field("f").schema == expected  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        (Forms(CONNECT), [MOMENT, DAY, REAL]),
        (Forms(MICROSECONDS), [MICROS, DAY, REAL]),
        (Forms(TEXT), [STRING, STRING, REAL]),
        (Forms(CONNECT, TEXT), [MOMENT, DAY, STRING]),
        (Forms(CONNECT, DOUBLE), [MOMENT, DAY, REAL]),
    ],
)
def test_options_choose_forms(forms: Forms, expected: list[Schema]) -> None:
    schemas: dict[str, Any] = {"a": DATE_TIME, "b": {"type": "string", "format": "date"}, "c": {"type": "number"}}
    layout = Layout("s", {"properties": schemas}, (), forms)
    assert [field.schema for field in layout.schema.fields] == expected


@pytest.mark.parametrize(
    ("schema", "optional"),
    [
        ({"type": "integer"}, False),
        ({"type": ["integer"]}, False),
        ({"type": ["null", "integer"]}, True),
        ({}, True),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
    ],
)
def test_a_key_is_required_unless_it_may_be_null(schema: dict[str, Any], optional: bool) -> None:
    layout = Layout("s", {"properties": {"a": {"type": "string"}, "k": schema}}, ["k"], Forms())
    assert layout.key_schema is not None
    assert [(field.name, field.schema.optional) for field in layout.key_schema.fields] == [("k", optional)]
    assert layout.schema.field("k").schema.optional  # type: ignore[union-attr]


def test_metadata_has_fields_of_its_own_unless_the_stream_has_them() -> None:
    fields = {"_sdc_table_version": {"type": "string"}}
    layout = Layout("s", {"properties": fields}, (), Forms(), metadata=True)
    assert [(field.name, field.schema.type) for field in layout.schema.fields] == [
        ("_sdc_table_version", Type.STRING),
        ("_sdc_extracted_at", Type.INT64),
    ]


@pytest.mark.parametrize("schema", [{}, [], {"type": "object"}, {"properties": []}])
def test_a_stream_without_properties_is_refused(schema: Any) -> None:
    with pytest.raises(ConnectError, match="The schema of stream s has no properties"):
        Layout("s", schema, (), Forms())


def test_a_key_that_the_schema_lacks_is_refused() -> None:
    with pytest.raises(ConnectError, match="The key of stream s has b"):
        Layout("s", {"properties": {"a": {"type": "string"}}}, ["a", "b"], Forms())


def test_numbers_of_schemas_are_exact() -> None:
    assert parse_schema(b'{"multipleOf": 0.1}') == {"multipleOf": Decimal("0.1")}
