from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings

from sluiceway.converters.registry.avro import AvroConverter, branch_writer
from sluiceway.converters.registry.avro_connect import AvroTypes, ToConnect
from sluiceway.converters.registry.avro_write import anything, writer
from sluiceway.converters.registry.client import WriterSchema
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.avro_schema import ANYTHING_SCHEMA, ENUM, FIELD_DEFAULT, UNION, AvroOptions, to_avro
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.data.numbers import Float32, Int8, Int16, Int32
from sluiceway.errors import DataError
from support.schemas import field_schema
from unit.converters.registry.data_strategies import pairs

OPTIONAL_STRING = Schema(Type.STRING, optional=True)
PLAIN = AvroOptions()


def converter(**options: str) -> AvroConverter:
    made = AvroConverter()
    made.configure({"schema.registry.url": "http://nowhere.invalid", **options}, is_key=False)
    return made


def encode(schema: Schema | None, value: Any, made: AvroConverter | None = None) -> bytes:
    writing = (made or converter())._serialization(schema)
    return writing.payload(writing.native(value))


def decode(node: Any, data: bytes, *, version: int | None = None, made: AvroConverter | None = None) -> tuple[Any, Any]:
    reading = (made or converter())._deserialization("t", WriterSchema(json.dumps(node), "AVRO", (), version))
    return reading.schema, reading.read(data)


def fast(node: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(node), value)
    return out.getvalue()


def to_connect(node: Any, options: AvroOptions = PLAIN, version: int | None = None) -> Schema:
    types = AvroTypes()
    types.add(node)
    return ToConnect(types, options).schema(node, version=version)


@settings(max_examples=150)
@given(pairs())
def test_schema_and_value_are_read_back_unchanged(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    node = to_avro(schema, PLAIN)
    read_schema, read_value = decode(node, encode(schema, value))
    assert read_schema == schema
    assert read_value == value


@settings(max_examples=60)
@given(pairs(defaults=False))
def test_bytes_are_those_of_fastavro_by_the_registered_schema(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    node = to_avro(schema, PLAIN)
    if node == "bytes" or (isinstance(node, dict) and node["type"] == "bytes"):
        return  # bytes by themselves stand bare in Confluent's format
    data = encode(schema, value)
    parsed = fastavro.parse_schema(json.loads(json.dumps(node)))
    assert fast(node, fastavro.schemaless_reader(io.BytesIO(data), parsed)) == data


def test_schema_is_what_confluents_converter_registers() -> None:
    inner = Schema.struct({"x": INT32_SCHEMA}, name="com.example.Inner")
    schema = Schema.struct(
        {
            "small": Schema(Type.INT8),
            "short": Schema(Type.INT16, optional=True),
            "count": Schema(Type.INT32, default=7),
            "text": Schema(Type.STRING, optional=True, doc="a text", default="none"),
            "price": decimal_schema(2),
            "day": date_schema(),
            "at": timestamp_schema(optional=True),
            "inner": inner,
            "again": Schema.struct({"x": INT32_SCHEMA}, name="com.example.Inner", optional=True),
            "pairs": Schema.map(INT32_SCHEMA, STRING_SCHEMA),
            "tags": Schema.map(STRING_SCHEMA, OPTIONAL_STRING),
        },
        name="com.example.Outer",
        version=3,
        doc="outer",
    )
    assert to_avro(schema, PLAIN) == {
        "type": "record",
        "name": "Outer",
        "namespace": "com.example",
        "fields": [
            {"name": "small", "type": {"type": "int", "connect.type": "int8"}},
            {"name": "short", "type": ["null", {"type": "int", "connect.type": "int16"}], "default": None},
            {"name": "count", "type": {"type": "int", "connect.default": 7}, "default": 7},
            {
                "name": "text",
                "type": [{"type": "string", "connect.doc": "a text", "connect.default": "none"}, "null"],
                "default": "none",
            },
            {
                "name": "price",
                "type": {
                    "type": "bytes",
                    "scale": 2,
                    "precision": 64,
                    "connect.version": 1,
                    "connect.parameters": {"scale": "2"},
                    "connect.name": "org.apache.kafka.connect.data.Decimal",
                    "logicalType": "decimal",
                },
            },
            {
                "name": "day",
                "type": {
                    "type": "int",
                    "connect.version": 1,
                    "connect.name": "org.apache.kafka.connect.data.Date",
                    "logicalType": "date",
                },
            },
            {
                "name": "at",
                "default": None,
                "type": [
                    "null",
                    {
                        "type": "long",
                        "connect.version": 1,
                        "connect.name": "org.apache.kafka.connect.data.Timestamp",
                        "logicalType": "timestamp-millis",
                    },
                ],
            },
            {
                "name": "inner",
                "type": {
                    "type": "record",
                    "name": "Inner",
                    "fields": [{"name": "x", "type": "int"}],
                    "connect.name": "com.example.Inner",
                },
            },
            {"name": "again", "type": ["null", "com.example.Inner"], "default": None},
            {
                "name": "pairs",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "MapEntry",
                        "namespace": "io.confluent.connect.avro",
                        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
                    },
                },
            },
            {"name": "tags", "type": {"type": "map", "values": ["null", "string"]}},
        ],
        "connect.doc": "outer",
        "connect.version": 3,
        "connect.name": "com.example.Outer",
    }


def test_bytes_from_other_writers_are_read() -> None:
    node = {
        "type": "record",
        "name": "R",
        "namespace": "ns",
        "doc": "d",
        "fields": [
            {"name": "id", "type": "long", "doc": "the id"},
            {"name": "n", "type": "int", "default": 4},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
            {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
            {"name": "mac", "type": {"type": "fixed", "name": "Mac", "size": 2}},
        ],
    }
    at = dt.datetime(2024, 2, 29, 1, 2, 3, 4000, tzinfo=dt.timezone.utc)
    value = {
        "id": 1,
        "n": 2,
        "day": dt.date(2024, 2, 29),
        "at": at,
        "micros": at,
        "price": Decimal("1.23"),
        "color": "BLUE",
        "mac": b"ab",
    }
    schema, struct = decode(node, fast(node, value), version=5)
    assert dict(struct) == {**value, "micros": 1709168523004000}
    assert (schema.name, schema.version, schema.doc) == ("ns.R", 5, None)
    assert schema.parameters == {"io.confluent.connect.avro.record.doc": "d", "io.confluent.connect.avro.field.doc.id": "the id"}
    assert field_schema(schema, "n") == Schema(Type.INT32, default=4, parameters={FIELD_DEFAULT: "true"})
    assert field_schema(schema, "at") == timestamp_schema(optional=True)
    assert field_schema(schema, "micros") == Schema(Type.INT64)
    assert field_schema(schema, "price").parameters == {"scale": "2", "connect.decimal.precision": "9"}
    assert field_schema(schema, "color") == Schema(
        Type.STRING, name="ns.Color", parameters={ENUM: "ns.Color", f"{ENUM}.RED": "RED", f"{ENUM}.BLUE": "BLUE"}
    )


def test_a_union_becomes_a_struct_and_is_read_back() -> None:
    node = [
        "null",
        "string",
        "long",
        {"type": "record", "name": "A", "namespace": "x.y", "fields": [{"name": "q", "type": "int"}]},
        {"type": "record", "name": "B", "namespace": "x.y", "fields": [{"name": "q", "type": "int"}]},
        {"type": "array", "items": "string"},
    ]
    wrapped = {"type": "record", "name": "W", "fields": [{"name": "u", "type": node}]}
    made = converter(**{"enhanced.avro.schema.support": "true"})
    seen = []
    for value in ("text", 2**40, ("x.y.A", {"q": 1}), ("x.y.B", {"q": 1}), ["s"], None):
        data = fast(wrapped, {"u": value})
        schema, struct = decode(wrapped, data, made=made)
        seen.append(struct["u"] if struct["u"] is None else {k: v for k, v in struct["u"].items() if v is not None})
        assert encode(schema, struct, made) == data
    field = field_schema(schema, "u")
    assert (field.name, field.optional, [part.name for part in field.fields]) == (
        UNION,
        True,
        ["string", "long", "x.y.A", "x.y.B", "array"],
    )
    a, b = field_schema(field, "x.y.A"), field_schema(field, "x.y.B")
    assert seen == [
        {"string": "text"},
        {"long": 2**40},
        {"x.y.A": Struct(a, {"q": 1})},
        {"x.y.B": Struct(b, {"q": 1})},
        {"array": ["s"]},
        None,
    ]


def test_union_fields_have_short_names_unless_enhanced() -> None:
    node = ["int", {"type": "record", "name": "A", "namespace": "x.y", "fields": []}]
    assert [part.name for part in to_connect(node).fields] == ["int", "A"]
    twice: list[Any] = [{"type": "record", "name": "A", "namespace": space, "fields": []} for space in ("x", "y")]
    with pytest.raises(DataError, match="Multiple union schemas map"):
        to_connect(twice)
    assert len(to_connect(twice, AvroOptions(enhanced=True)).fields) == 2


def test_enums_stay_enums_only_if_enhanced() -> None:
    schema = Schema(Type.STRING, name="c.Color", parameters={ENUM: "c.Color", f"{ENUM}.RED": "RED", f"{ENUM}.BLUE": "BLUE"})
    assert to_avro(schema, AvroOptions(meta_data=False)) == "string"
    node = to_avro(schema, AvroOptions(meta_data=False, enhanced=True))
    assert node == {"type": "enum", "name": "Color", "namespace": "c", "symbols": ["RED", "BLUE"]}
    assert to_connect(node) == schema


def test_without_meta_data_only_avro_attributes_are_used() -> None:
    schema = Schema.struct({"a": Schema(Type.INT8, doc="x"), "d": date_schema()}, name="n.A", version=2)
    assert to_avro(schema, AvroOptions(meta_data=False)) == {
        "type": "record",
        "name": "A",
        "namespace": "n",
        "fields": [{"name": "a", "type": "int"}, {"name": "d", "type": {"type": "int", "logicalType": "date"}}],
    }


def test_two_different_structs_with_the_same_name_are_refused() -> None:
    schema = Schema.struct({"a": Schema.struct({"x": INT32_SCHEMA})})
    with pytest.raises(DataError, match=r"Can't redefine: io\.confluent\.connect\.avro\.ConnectDefault"):
        to_avro(schema, PLAIN)


POINT = Schema.struct({"x": INT32_SCHEMA}, name="Point")
LINE = Schema.struct({"a": POINT, "b": POINT}, name="Line")
EITHER = Schema.struct({"Point": POINT.replace(optional=True), "int": Schema(Type.INT32, optional=True)}, name=UNION)


@pytest.mark.parametrize(
    "fields",
    [
        {"a": POINT, "b": POINT},
        {"line": LINE, "point": POINT, "again": LINE},
        {"points": Schema.array(POINT), "by_name": Schema.map(STRING_SCHEMA, POINT), "last": POINT.replace(optional=True)},
        {"point": POINT, "either": EITHER},
        {"deep": Schema.struct({"point": POINT, "either": EITHER}, name="other.Deep"), "point": POINT},
    ],
    ids=["twice", "nested", "in containers", "in a union", "of another namespace"],
)
def test_types_without_a_namespace_are_found_from_within_one(fields: dict[str, Schema]) -> None:
    """As Java writes them: by their bare names, which are looked up in the namespace first."""
    schema = Schema.struct(fields, name="shop.Order")
    node, value = to_avro(schema, PLAIN), value_of(schema)
    with pytest.raises(DataError, match=r"The struct (Point|Line) has no namespace, and is used more than once .* example\."):
        encode(schema, value)
    assert decode(node, branch_writer(node)(writer(schema, PLAIN)(value)))[1] == value


def value_of(schema: Schema) -> Any:
    """Return a value of structs of integers, with the first branch of each union."""
    if schema.type is Type.ARRAY:
        return [value_of(schema.value_schema or schema)] * 2
    if schema.type is Type.MAP:
        return {"k": value_of(schema.value_schema or schema)}
    if schema.type is not Type.STRUCT:
        return 7
    fields = schema.fields[:1] if schema.name == UNION else schema.fields
    return Struct(schema, {field.name: value_of(field.schema) for field in fields})


def test_a_type_in_the_namespace_is_meant_before_one_outside() -> None:
    inside = {"type": "record", "name": "Point", "namespace": "shop", "fields": [{"name": "x", "type": "string"}]}
    outside = {"type": "record", "name": "Point", "namespace": "", "fields": [{"name": "x", "type": "int"}]}
    parts = [("in", inside), ("out", outside), ("again", "Point")]
    node = {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [{"name": name, "type": kind} for name, kind in parts],
    }
    _, value = decode(node, b"\x02i\x02\x02a")
    assert value["again"]["x"] == "a"


def test_names_are_scrubbed_on_request() -> None:
    schema = Schema.struct({"a-b": INT32_SCHEMA, "1": STRING_SCHEMA}, name="my-app.My Type")
    node = to_avro(schema, AvroOptions(scrub=True, meta_data=False))
    assert isinstance(node, dict)
    assert (node["namespace"], node["name"]) == ("my_app", "My_Type")
    assert [part["name"] for part in node["fields"]] == ["a_b", "x1"]
    made = converter(**{"scrub.invalid.names": "true"})
    struct = Struct(schema, {"a-b": 1, "1": "x"})
    assert encode(schema, struct, made) == b"\x02\x02x"


def test_null_in_a_required_field_is_refused_or_replaced_by_the_default() -> None:
    schema = Schema.struct({"a": INT32_SCHEMA}, name="A")
    with pytest.raises(DataError, match="non-optional schema: field a"):
        encode(schema, Struct(schema))
    filled = Schema.struct({"a": Schema(Type.INT32, default=3)}, name="A")
    assert encode(filled, Struct(filled)) == b"\x06"


@pytest.mark.parametrize("type_", [Type.BOOLEAN, Type.INT32, Type.STRING, Type.BYTES])
def test_null_in_a_list_of_required_items_is_refused(type_: Type) -> None:
    with pytest.raises((DataError, TypeError)):  # the converter makes the latter a DataError
        encode(Schema.array(Schema(type_)), [None])
    with pytest.raises((DataError, TypeError)):
        encode(Schema.map(STRING_SCHEMA, Schema(type_)), {"k": None})
    assert encode(Schema.array(Schema(type_, optional=True)), [None]) == b"\x02\x00\x00"


def test_a_value_of_another_schema_is_refused() -> None:
    schema, other = Schema.struct({"a": INT32_SCHEMA}), Schema.struct({"b": INT32_SCHEMA})
    with pytest.raises(DataError, match="Mismatching schema"):
        encode(schema, Struct(other, {"b": 1}))
    with pytest.raises(DataError, match="Invalid type for STRUCT"):
        encode(schema, {"a": 1})


def test_schemaless_values_keep_their_java_types() -> None:
    value = {"i": 1, "s": "x", "f": 1.5, "n": None, "l": [Int32(2), True, b"z", Float32(0.5)], 4: {"deep": []}}
    schema, read = decode(ANYTHING_SCHEMA, encode(None, value))
    assert schema is None
    assert read == value
    assert [type(item) for item in read["l"]] == [Int32, bool, bytes, Float32]
    assert type(next(key for key in read if key == 4)) is int
    assert anything(Int8(1)) == anything(Int16(1)) == {"int": 1}
    with pytest.raises(DataError, match="schemaless data: datetime"):
        anything(dt.datetime.now(dt.timezone.utc))


def test_timestamps_outside_pythons_range_are_read() -> None:
    node = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
    }
    data = fast({"type": "record", "name": "R", "fields": [{"name": "at", "type": "long"}]}, {"at": 10**15})
    schema, struct = decode(node, data)
    assert struct["at"] is not None
    assert encode(schema, struct) == data


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("null", "Standalone null"),
        ({"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}, "contains itself"),
        ({"type": "record", "name": "R", "fields": [{"name": "r", "type": "Missing"}]}, "without defining it"),
        ({"type": "int", "connect.version": "one"}, "Invalid Connect version"),
        ({"type": "int", "connect.parameters": {"a": 1}}, "parameter values to be strings"),
        ({"type": "int", "logicalType": "date", "connect.version": 2}, "Mismatched versions"),
        ({"type": "int", "logicalType": "date", "connect.name": "Other"}, "Mismatched names"),
        ({"type": "int", "connect.type": "int12"}, "annotation"),
        ({"type": "bytes", "logicalType": "decimal", "scale": "x"}, "scale must be"),
    ],
)
def test_schemas_that_connect_does_not_support_are_refused(node: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        to_connect(node)


@pytest.mark.parametrize(
    "value",
    [[1, 2], {"a": 1}, Struct(Schema.struct({"x": Schema(Type.INT8, default=1)}, name="D"), {"x": 5})],
    ids=["array", "map", "struct"],
)
def test_defaults_of_containers_are_read_back(value: Any) -> None:
    parts: dict[type, Any] = {
        list: lambda: Schema.array(INT32_SCHEMA, default=value),
        dict: lambda: Schema.map(STRING_SCHEMA, INT32_SCHEMA, default=value),
    }
    make = parts.get(type(value), lambda: Schema.struct({"x": Schema(Type.INT8, default=1)}, name="D", default=value))
    schema = Schema.struct({"f": make()}, name="R")
    assert to_connect(to_avro(schema, PLAIN)) == schema


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (decimal_schema(2), Decimal("1.50")),
        (date_schema(), dt.date(2020, 1, 1)),
        (time_schema(), dt.time(1, 2)),
        (timestamp_schema(), dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)),
        (Schema(Type.BYTES), b"\xff\x00"),
    ],
)
def test_logical_defaults_are_read_back(schema: Schema, value: Any) -> None:
    with_default = Schema(schema.type, name=schema.name, version=schema.version, parameters=schema.parameters, default=value)
    outer = Schema.struct({"f": with_default}, name="R")
    read = to_connect(json.loads(json.dumps(to_avro(outer, PLAIN))))
    assert read == outer
    assert field_schema(read, "f").default == value


def test_bytes_outside_a_record_have_no_length_prefix() -> None:
    assert encode(Schema(Type.BYTES), b"abc") == b"abc"
    assert decode("bytes", b"abc") == (Schema(Type.BYTES), b"abc")
    assert decode(to_avro(decimal_schema(1), PLAIN), encode(decimal_schema(1), Decimal("-0.5"))) == (
        decimal_schema(1),
        Decimal("-0.5"),
    )


def test_optional_string_keys_make_an_avro_map_only_if_enabled() -> None:
    schema = Schema.map(OPTIONAL_STRING, INT32_SCHEMA)
    node = to_avro(schema, PLAIN)
    assert isinstance(node, dict)
    assert (node["type"], node["items"]["name"]) == ("array", "MapEntry")
    assert to_avro(schema, AvroOptions(optional_map_keys=True)) == {"type": "map", "values": "int"}


def test_an_avro_default_is_not_repeated_as_connect_default() -> None:
    node = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int", "default": 4}]}
    assert to_avro(to_connect(node), PLAIN) == {**node, "connect.name": "R"}


def test_integers_in_a_union_use_the_narrowest_branch() -> None:
    node = {"type": "record", "name": "R", "fields": [{"name": "u", "type": ["int", "long", "double"]}]}
    for value, branch in ((5, "int"), (2**40, "long"), (-(2**31), "int"), (2**31, "long"), (0.5, "double")):
        struct = decode(node, fast(node, {"u": value}))[1]
        assert {name: item for name, item in struct["u"].items() if item is not None} == {branch: value}
