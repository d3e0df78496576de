from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from sluiceway.converters.registry.client import WriterSchema
from sluiceway.converters.registry.json_schema import JsonSchemaConverter
from sluiceway.converters.registry.json_schema_write import ENUM, ONE_OF, JsonOptions, to_json_schema
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.logical import DECIMAL, decimal_schema, timestamp_schema
from sluiceway.errors import DataError
from unit.converters.registry.data_strategies import pairs

INTEGER, TEXT, NUMBER = {"type": "integer"}, {"type": "string"}, {"type": "number"}
BASE = {"type": "object", "properties": {"id": INTEGER}, "required": ["id"]}
MORE = {"type": "object", "properties": {"name": TEXT}}


def converter(**options: str) -> JsonSchemaConverter:
    made = JsonSchemaConverter()
    made.configure({"schema.registry.url": "http://nowhere.invalid", **options}, is_key=False)
    return made


def encode(schema: Schema | None, value: Any, made: JsonSchemaConverter | None = None) -> bytes:
    writing = (made or converter())._serialization(schema)
    return writing.payload(writing.native(value))


def decode(node: Any, data: bytes | str, made: JsonSchemaConverter | None = None, **references: Any) -> tuple[Any, Any]:
    parts = tuple((name, json.dumps(part)) for name, part in references.items())
    reading = (made or converter())._deserialization("t", WriterSchema(json.dumps(node, default=str), "JSON", parts, None))
    return reading.schema, reading.read(data.encode() if isinstance(data, str) else data)


@settings(max_examples=150)
@given(pairs())
def test_schema_and_value_are_read_back_unchanged(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    read_schema, read_value = decode(to_json_schema(schema, JsonOptions()), encode(schema, value))
    assert read_schema == schema
    assert read_value == value


@settings(max_examples=80)
@given(pairs(defaults=False))
def test_written_values_match_the_json_schema(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    made = converter(**{"decimal.format": "NUMERIC"})
    node = json.loads(json.dumps(to_json_schema(schema, JsonOptions(numeric_decimals=True))))
    jsonschema.validate(json.loads(encode(schema, value, made), parse_float=Decimal), node)


def test_schema_is_what_confluents_converter_registers() -> None:
    schema = Schema.struct(
        {
            "id": Schema(Type.INT64),
            "price": decimal_schema(2),
            "at": timestamp_schema(optional=True),
            "raw": Schema(Type.BYTES, optional=True),
            "tags": Schema.map(STRING_SCHEMA, INT32_SCHEMA),
            "odd": Schema.map(INT32_SCHEMA, STRING_SCHEMA),
            "list": Schema.array(Schema(Type.FLOAT32)),
            "kind": Schema(Type.STRING, parameters={ENUM: "", f"{ENUM}.A": "A", f"{ENUM}.B": "B"}),
            "inner": Schema.struct({"x": Schema(Type.BOOLEAN, default=True)}, name="In", optional=True, doc="inside"),
        },
        name="com.example.T",
        version=4,
    )
    null = {"type": "null"}
    assert to_json_schema(schema, JsonOptions()) == {
        "type": "object",
        "title": "com.example.T",
        "connect.version": 4,
        "properties": {
            "id": {"type": "integer", "connect.type": "int64", "connect.index": 0},
            "price": {
                "type": "number",
                "connect.type": "bytes",
                "title": DECIMAL,
                "connect.version": 1,
                "connect.parameters": {"scale": "2"},
                "connect.index": 1,
            },
            "at": {
                "connect.index": 2,
                "oneOf": [
                    null,
                    {
                        "type": "integer",
                        "connect.type": "int64",
                        "title": "org.apache.kafka.connect.data.Timestamp",
                        "connect.version": 1,
                    },
                ],
            },
            "raw": {"connect.index": 3, "oneOf": [null, {"type": "string", "connect.type": "bytes"}]},
            "tags": {
                "type": "object",
                "connect.type": "map",
                "connect.index": 4,
                "additionalProperties": {"type": "integer", "connect.type": "int32"},
            },
            "odd": {
                "type": "array",
                "connect.type": "map",
                "connect.index": 5,
                "items": {
                    "type": "object",
                    "properties": {
                        "key": {"type": "integer", "connect.type": "int32", "connect.index": 0},
                        "value": {"type": "string", "connect.index": 1},
                    },
                },
            },
            "list": {"type": "array", "items": {"type": "number", "connect.type": "float32"}, "connect.index": 6},
            "kind": {"enum": ["A", "B"], "connect.index": 7},
            "inner": {
                "connect.index": 8,
                "oneOf": [
                    null,
                    {
                        "type": "object",
                        "title": "In",
                        "description": "inside",
                        "properties": {"x": {"type": "boolean", "default": True, "connect.index": 0}},
                    },
                ],
            },
        },
    }


def test_a_foreign_schema_with_references_and_definitions_is_read() -> None:
    node = {
        "type": "object",
        "title": "Order",
        "properties": {
            "b": {"$ref": "#/$defs/money", "connect.index": 9},
            "a": {"type": ["null", "integer"]},
            "who": {"$ref": "person.json"},
            "state": {"type": "string", "enum": ["new", "old"]},
            "ratio": {"allOf": [{"type": "number"}, {"minimum": 0}]},
            "fixed": {"const": 5},
        },
        "required": ["b"],
        "$defs": {"money": {"type": "number"}},
    }
    person = {"type": "object", "title": "Person", "properties": {"name": {"type": "string"}}}
    references: dict[str, Any] = {"person.json": person}
    data = '{"who": {"name": "x"}, "b": 2, "a": null, "state": "new", "ratio": 0.5, "fixed": 5, "more": 1}'
    schema, struct = decode(node, data, **references)
    assert {part.name: (part.schema.type, part.schema.optional) for part in schema.fields} == {
        "a": (Type.INT64, True),
        "b": (Type.FLOAT64, False),
        "who": (Type.STRUCT, False),
        "state": (Type.STRING, False),
        "ratio": (Type.FLOAT64, False),
        "fixed": (Type.INT64, False),
    }
    assert [part.name for part in schema.fields] == ["a", "who", "state", "ratio", "fixed", "b"]
    assert (struct["b"], struct["who"]["name"], struct["a"], struct["state"]) == (2.0, "x", None, "new")
    made = converter(**{"use.optional.for.nonrequired": "true"})
    schema, struct = decode(node, '{"b": 1}', made, **references)
    assert [part.name for part in schema.fields if not part.schema.optional] == ["b"]
    assert struct["who"] is None
    assert decode(node, '{"b": 1}', **references)[1]["who"] is None
    with pytest.raises(DataError, match="required STRUCT field"):
        decode(node, '{"b": 1, "who": null}', **references)


def test_one_of_becomes_a_struct_and_is_read_back() -> None:
    node = {
        "type": "object",
        "properties": {
            "u": {
                "oneOf": [
                    {"type": "null"},
                    {"type": "string"},
                    {"type": "integer"},
                    {"type": "object", "properties": {"q": {"type": "boolean"}}},
                ]
            }
        },
    }
    for text, name in (('"x"', "field.0"), ("5", "field.1"), ('{"q":true}', "field.2"), ("null", "")):
        schema, struct = decode(node, f'{{"u":{text}}}')
        union = struct["u"]
        assert (union is None) == (name == "")
        if union is not None:
            assert [key for key, value in union.items() if value is not None] == [f"{ONE_OF}.{name}"]
        assert encode(schema, struct) == f'{{"u":{text}}}'.encode()
    with pytest.raises(DataError, match="matching oneof"):
        decode(node, '{"u": [1]}')
    again = to_json_schema(schema, JsonOptions())["properties"]["u"]["oneOf"]
    assert [branch["type"] for branch in again] == ["null", "string", "integer", "object"]


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


@pytest.mark.parametrize(
    ("branches", "data", "index", "read"),
    [
        ([_object(["a"], a=INTEGER), _object(["b"], a=INTEGER, b=INTEGER)], '{"b":1}', 1, {"a": None, "b": 1}),
        ([_object(["a"], a=INTEGER), _object(["b"], b=TEXT)], '{"b":"x","more":true}', 1, {"b": "x"}),
        ([_object([], a=INTEGER), _object([], a=INTEGER, b=TEXT)], '{"a":1,"b":"x"}', 1, {"a": 1, "b": "x"}),
        ([_object([], a=INTEGER, b=TEXT), _object([], a=INTEGER)], '{"a":1}', 0, {"a": 1, "b": None}),
        ([_object([], a=INTEGER), _object([], b=TEXT)], '{"other":1}', 0, {"a": None}),
        ([{"allOf": [_object([], a=INTEGER), _object([], b=TEXT)]}, _object([], b=TEXT)], '{"b":"x"}', 0, {"a": None, "b": "x"}),
        ([TEXT, _object(["c"], a=INTEGER, c=TEXT)], '{"c":"x"}', 1, {"a": None, "c": "x"}),
    ],
)
def test_an_object_is_of_the_branch_with_most_of_its_properties(
    branches: list[Any], data: str, index: int, read: dict[str, Any]
) -> None:
    """Confluent's converter chooses so, and takes further properties, and absent ones that are not required."""
    for node in ({"oneOf": branches}, {"anyOf": branches}, {"type": "array", "items": {"oneOf": branches}}):
        is_array = "items" in node
        value = decode(node, f"[{data}]" if is_array else data)[1]
        union = value[0] if is_array else value
        (name, struct), *others = [(key, each) for key, each in union.items() if each is not None]
        assert (name, others) == (f"{ONE_OF}.field.{index}", [])
        assert dict(struct.items()) == read


def test_decimals_keep_their_digits_in_both_formats() -> None:
    schema, value = decimal_schema(20), Decimal("0.12345678901234567891")
    assert encode(schema, value, converter(**{"decimal.format": "numeric"})) == b"0.12345678901234567891"
    for data in (b"0.12345678901234567891", encode(schema, value)):
        assert decode(to_json_schema(schema, JsonOptions()), data)[1] == value


def test_nan_and_infinities_are_strings() -> None:
    schema = Schema.array(Schema(Type.FLOAT64))
    assert encode(schema, [float("nan"), float("-inf"), 1.0]) == b'["NaN","-Infinity",1.0]'


@pytest.mark.parametrize(("type_", "read"), [(Type.FLOAT32, 0.10000000149011612), (Type.FLOAT64, 0.1)])
def test_a_float_has_the_digits_of_its_type(type_: Type, read: float) -> None:
    assert decode(to_json_schema(Schema(type_), JsonOptions()), "0.1")[1] == read


def test_validation_refuses_values_that_do_not_match() -> None:
    made = converter(**{"json.fail.invalid.schema": "true"})
    node = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 5}}}
    assert decode(node, '{"a": 5}', made)[1]["a"] == 5
    with pytest.raises(DataError, match=r"\$\.a: maximum"):
        decode(node, '{"a": 6}', made)
    with pytest.raises(DataError, match="type"):  # Confluent's converter too writes base64 where the schema says number
        encode(decimal_schema(1), Decimal("1.5"), made)


@pytest.mark.parametrize(
    ("node", "data", "message"),
    [
        ({}, "1", "give each part"),
        (True, "1", "does not define a type"),
        ({"type": "array"}, "[]", "items type"),
        ({"$ref": "#/nope"}, "1", "does not exist"),
        ({"$ref": "other.json"}, "1", "not among its references"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "{}", "contains itself"),
        ({"allOf": [{"oneOf": []}]}, "{}", "Did not find matching oneof"),
        ({"allOf": [{"minimum": 0}]}, "1", "give each part"),
        ({"type": "object", "properties": {}}, "[]", "encoded as JSON objects"),
        ({"type": "string"}, "null", "Invalid null value for required STRING field"),
        ({"type": "string", "connect.type": "bytes"}, '"%"', "Invalid bytes"),
        (
            {"type": "integer", "title": "org.apache.kafka.connect.data.Date", "connect.type": "int32"},
            '"x"',
            "Invalid type for Date",
        ),
    ],
)
def test_unsupported_schemas_are_refused(node: Any, data: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        decode(node, data)


def test_values_that_cannot_be_written_are_refused() -> None:
    with pytest.raises(DataError, match="schemaless values"):
        encode(None, {"a": 1})
    schema = Schema.struct({"a": INT32_SCHEMA})
    with pytest.raises(DataError, match="required and has no default"):
        encode(schema, Struct(schema))
    closed = to_json_schema(schema, JsonOptions(additional_properties=False))
    assert closed["additionalProperties"] is False


@pytest.mark.parametrize(
    ("node", "fields"),
    [
        ({"allOf": [BASE, MORE]}, "id name"),
        ({"allOf": [{"$ref": "#/definitions/base"}, MORE], "definitions": {"base": BASE}}, "id name"),
        ({**BASE, "allOf": [MORE]}, "id name"),
        ({"allOf": [{"allOf": [BASE, MORE]}, {"properties": {"more": NUMBER}}]}, "id name more"),
        ({"allOf": [{"$ref": "other"}, MORE]}, "id name"),
        ({"allOf": [BASE, {"required": ["name"]}, MORE]}, "id name"),
        ({**BASE, "oneOf": [{"required": ["id"]}, {"required": ["name"]}]}, "id"),
        ({**BASE, "anyOf": [{"required": ["id"]}, {"not": {"required": ["id"]}}]}, "id"),
        ({**BASE, "oneOf": [MORE, {"properties": {"more": NUMBER}}]}, "id name more"),
        ({"allOf": [BASE, {"oneOf": [MORE, {"properties": {"more": NUMBER}}]}]}, "id name more"),
        ({**BASE, "if": {"properties": {"id": {"const": 1}}}, "then": {"required": ["name"]}}, "id"),
        ({**BASE, "allOf": [{"if": {"properties": {"id": {"const": 1}}}, "then": {"required": ["id"]}, "else": {}}]}, "id"),
        ({"type": "object", "allOf": [BASE, BASE]}, "id"),
    ],
    ids=str,
)
def test_all_properties_of_what_is_combined_make_one_struct(node: dict[str, Any], fields: str) -> None:
    schema, value = decode(node, '{"id": 1, "name": "a", "more": 0.5}', other=BASE)
    assert [field.name for field in schema.fields] == fields.split()
    assert value == Struct(schema, {name: {"id": 1, "name": "a", "more": 0.5}[name] for name in fields.split()})
    in_array = {"type": "array", "items": node}
    if "definitions" not in node:
        assert decode(in_array, "[]", other=BASE)[0].value_schema == schema


@pytest.mark.parametrize(
    ("node", "type_"),
    [
        ({"allOf": [NUMBER, {"minimum": 0}]}, Type.FLOAT64),
        ({"type": "string", "allOf": [{"minLength": 1}, {"pattern": "a"}]}, Type.STRING),
        ({"allOf": [{"$ref": "#/definitions/n"}], "definitions": {"n": INTEGER}}, Type.INT64),
        ({"allOf": [{"oneOf": [{"type": "null"}, INTEGER]}]}, Type.INT64),
        ({"allOf": [TEXT, {"const": "a"}]}, Type.STRING),
        ({"allOf": [TEXT, {"enum": ["a", "b"]}]}, Type.STRING),
    ],
    ids=str,
)
def test_one_type_and_its_restrictions(node: dict[str, Any], type_: Type) -> None:
    value = {Type.FLOAT64: "1.0", Type.INT64: "1"}.get(type_, '"a"')
    schema, found = decode(node, value)
    assert schema.type is type_
    assert found == json.loads(value)


@pytest.mark.parametrize("required", [[], ["n"]])
def test_only_an_explicit_null_of_a_required_property_is_an_error(required: list[str]) -> None:
    node = {"type": "object", "properties": {"n": INTEGER, "s": {**TEXT, "default": "x"}}, "required": required}
    _, value = decode(node, "{}")
    assert (value.get_without_default("n"), value["s"]) == (None, "x")
    with pytest.raises(DataError, match="Invalid null value for required INT64 field"):
        decode(node, '{"n": null}')
    optional = converter(**{"use.optional.for.nonrequired": "true"})
    if not required:
        assert decode(node, '{"n": null}', optional)[1]["n"] is None
    assert decode({"allOf": [node, MORE]}, "{}", optional)[0].field("n").schema.optional is not bool(required)


def test_a_recursive_schema_within_all_of_is_refused() -> None:
    node = {"definitions": {"a": {"allOf": [{"properties": {"a": {"$ref": "#/definitions/a"}}}]}}, "$ref": "#/definitions/a"}
    with pytest.raises(DataError, match="contains itself"):
        decode(node, "{}")
