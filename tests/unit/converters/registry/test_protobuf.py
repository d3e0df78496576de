from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given, settings

from sluiceway.converters.registry.client import WriterSchema
from sluiceway.converters.registry.protobuf import ProtobufConverter
from sluiceway.converters.registry.protobuf_schema import (
    ENUM,
    TAG,
    UNION_PREFIX,
    ProtobufOptions,
    entry_name,
    map_name,
    to_file,
)
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.errors import DataError
from support.schemas import field_schema
from unit.converters.registry.data_strategies import structs

OPTIONAL_INT = Schema(Type.INT32, optional=True)


def converter(**options: str) -> ProtobufConverter:
    made = ProtobufConverter()
    made.configure({"schema.registry.url": "http://nowhere.invalid", **options}, is_key=False)
    return made


def encode(schema: Schema | None, value: Any, made: ProtobufConverter | None = None) -> bytes:
    writing = (made or converter())._serialization(schema)
    return b"\x00" + writing.payload(writing.native(value))


def decode(file: Any, data: bytes, made: ProtobufConverter | None = None, **references: Any) -> tuple[Schema, Any]:
    parts = tuple((name, text_of(part)) for name, part in references.items())
    reading = (made or converter())._deserialization("t", WriterSchema(text_of(file), "PROTOBUF", parts, 2))
    assert reading.returns_pair
    return reading.read(data)


def text_of(file: Any) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def plain(value: Any) -> Any:
    """Return a value without its schemas, most attributes of which Protobuf does not keep."""
    if isinstance(value, Struct):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("option", ["wrappers", "optionals"])
@settings(max_examples=80)
@given(struct=structs(nested_arrays=False, optional_containers=False, null_items=False, defaults=False))
def test_values_are_read_back_unchanged(option: str, struct: Struct) -> None:
    name = {"wrappers": "wrapper.for.nullables", "optionals": "optional.for.nullables"}[option]
    made = converter(**{name: "true"})
    file, _ = to_file(struct.schema, ProtobufOptions(**{option: True}))
    _schema, read = decode(file, encode(struct.schema, struct, made), made)
    assert plain(read) == plain(struct)


def test_file_is_what_confluents_converter_registers() -> None:
    inner = Schema.struct({"x": INT32_SCHEMA}, name="com.example.Inner")
    schema = Schema.struct(
        {
            "small": Schema(Type.INT8),
            "text": Schema(Type.STRING, optional=True),
            "price": decimal_schema(2),
            "day": date_schema(),
            "noon": time_schema(),
            "at": timestamp_schema(),
            "list": Schema.array(Schema(Type.FLOAT64)),
            "inner": inner,
            "tags": Schema.map(STRING_SCHEMA, INT32_SCHEMA, name="my_tags"),
        },
        name="com.example.Outer",
    )
    file, name = to_file(schema, ProtobufOptions())
    assert (name, file.package, file.syntax) == ("com.example.Outer", "com.example", "proto3")
    assert list(file.dependency) == [
        "confluent/meta.proto",
        "confluent/type/decimal.proto",
        "google/type/date.proto",
        "google/type/timeofday.proto",
        "google/protobuf/timestamp.proto",
    ]
    (message,) = file.message_type
    assert [
        (part.name, part.number, part.label == Field.LABEL_REPEATED, Field.Type.Name(part.type), part.type_name)
        for part in message.field
    ] == [
        ("small", 1, False, "TYPE_INT32", ""),
        ("text", 2, False, "TYPE_STRING", ""),
        ("price", 3, False, "TYPE_MESSAGE", ".confluent.type.Decimal"),
        ("day", 4, False, "TYPE_MESSAGE", ".google.type.Date"),
        ("noon", 5, False, "TYPE_MESSAGE", ".google.type.TimeOfDay"),
        ("at", 6, False, "TYPE_MESSAGE", ".google.protobuf.Timestamp"),
        ("list", 7, True, "TYPE_DOUBLE", ""),
        ("inner", 8, False, "TYPE_MESSAGE", ".com.example.Outer.Inner"),
        ("tags", 9, True, "TYPE_MESSAGE", ".com.example.Outer.MyTagsEntry"),
    ]
    assert [nested.name for nested in message.nested_type] == ["Inner", "MyTagsEntry"]
    read, _value = decode(file, b"\x00")
    assert [field_schema(read, part).type for part in ("small", "text")] == [Type.INT8, Type.STRING]
    assert field_schema(read, "price").parameters["scale"] == "2"


def test_handwritten_bytes_are_read() -> None:
    file = FileDescriptorProto(name="f", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=Field.TYPE_UINT64, label=Field.LABEL_OPTIONAL)
    message.field.add(name="name", number=3, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    message.field.add(name="color", number=4, type=Field.TYPE_ENUM, type_name=".shop.Color", label=Field.LABEL_OPTIONAL)
    enum = file.enum_type.add(name="Color")
    enum.value.add(name="RED", number=0)
    enum.value.add(name="BLUE", number=5)
    data = b"\x00" + b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + b"\x1a\x02hi" + b"\x20\x05"
    schema, struct = decode(file, data)
    assert dict(struct) == {"id": -1, "name": "hi", "color": "BLUE"}
    assert (schema.name, schema.version) == ("Order", 2)
    assert field_schema(schema, "id") == Schema(Type.INT64, optional=True, parameters={TAG: "1"})
    assert field_schema(schema, "color").parameters == {ENUM: "Color", f"{ENUM}.RED": "0", f"{ENUM}.BLUE": "5", TAG: "4"}
    again, _name = to_file(schema, ProtobufOptions())
    assert [part.number for part in again.message_type[0].field] == [1, 3, 4]
    assert encode(schema, struct) == data
    assert decode(file, data, converter(**{"enhanced.protobuf.schema.support": "true"}))[0].name == "shop.Order"


def test_the_message_is_found_by_its_indexes() -> None:
    file = FileDescriptorProto(name="f", syntax="proto3")
    file.message_type.add(name="First")
    outer = file.message_type.add(name="Second")
    outer.nested_type.add(name="Zero")
    outer.nested_type.add(name="One").field.add(name="x", number=1, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
    schema, struct = decode(file, bytes([4, 2, 2]) + b"\x08\x07")  # two indexes, 1 and 1, zigzag
    assert (schema.name, struct["x"]) == ("One", 7)
    assert decode(file, bytes([2, 2]))[0].name == "Second"
    for data in (bytes([2, 8]), bytes([2, 1]), bytes([1]), b"", b"\x80"):
        with pytest.raises(DataError):
            decode(file, data)


def test_a_oneof_becomes_a_struct_and_is_read_back() -> None:
    file = FileDescriptorProto(name="f", syntax="proto3")
    message = file.message_type.add(name="M")
    message.oneof_decl.add(name="choice")
    message.field.add(name="plain", number=1, type=Field.TYPE_BOOL, label=Field.LABEL_OPTIONAL)
    message.field.add(name="text", number=2, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL, oneof_index=0)
    message.field.add(name="number", number=3, type=Field.TYPE_INT64, label=Field.LABEL_OPTIONAL, oneof_index=0)
    for data, chosen in ((b"\x12\x01a", {"text": "a"}), (b"\x18\x00", {"number": 0}), (b"", None)):
        schema, struct = decode(file, b"\x00" + data)
        union = struct["choice_0"]
        assert (union and {name: value for name, value in union.items() if value is not None}) == chosen
        assert field_schema(schema, "choice_0").name == UNION_PREFIX + "choice"
        assert encode(schema, struct) == b"\x00" + data
    made = converter(**{"generate.index.for.unions": "false"})
    assert [part.name for part in decode(file, b"\x00", made)[0].fields] == ["choice", "plain"]


def test_a_real_map_and_a_referenced_file_are_read() -> None:
    other = FileDescriptorProto(name="other.proto", syntax="proto3", package="o")
    other.message_type.add(name="Thing").field.add(name="n", number=1, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
    file = FileDescriptorProto(name="f", syntax="proto3", dependency=["other.proto"])
    message = file.message_type.add(name="M")
    message.field.add(name="my_map", number=1, type=Field.TYPE_MESSAGE, type_name=".M.MyMapEntry", label=Field.LABEL_REPEATED)
    entry = message.nested_type.add(name="MyMapEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=Field.TYPE_MESSAGE, type_name=".o.Thing", label=Field.LABEL_OPTIONAL)
    data = b"\x00\x0a\x07\x0a\x01k\x12\x02\x08\x05"
    references: dict[str, Any] = {"other.proto": other}
    schema, struct = decode(file, data, **references)
    assert {key: value["n"] for key, value in struct["my_map"].items()} == {"k": 5}
    assert field_schema(schema, "my_map").name == "my_map"
    with pytest.raises(DataError, match=r"other\.proto, which is not among"):
        decode(file, data)


@pytest.mark.parametrize(
    ("schema", "value", "data"),
    [
        (STRING_SCHEMA, "hi", b"\x0a\x02hi"),
        (Schema(Type.INT64), 3, b"\x08\x03"),
        (Schema(Type.BYTES), b"x", b"\x0a\x01x"),
    ],
)
def test_a_primitive_outside_a_struct_is_a_wrapper_message(schema: Schema, value: Any, data: bytes) -> None:
    assert encode(schema, value) == b"\x00" + data


def test_logical_values_are_googles_and_confluents_messages() -> None:
    schema = Schema.struct({"p": decimal_schema(2), "d": date_schema(), "t": time_schema(), "at": timestamp_schema()}, name="L")
    value = {
        "p": Decimal("-12.34"),
        "d": dt.date(2024, 2, 29),
        "t": dt.time(23, 59, 58, 7000),
        "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.timezone.utc),
    }
    made = converter()
    writing = made._serialization(schema)
    message = writing.native(Struct(schema, value))
    assert (message.p.value, message.p.precision, message.p.scale) == ((-1234).to_bytes(2, "big", signed=True), 4, 2)
    assert (message.d.year, message.d.month, message.d.day) == (2024, 2, 29)
    assert (message.t.hours, message.t.minutes, message.t.seconds, message.t.nanos) == (23, 59, 58, 7_000_000)
    assert (message.at.seconds, message.at.nanos) == (-1, 999_000_000)
    read_schema, read = decode(to_file(schema, ProtobufOptions())[0], encode(schema, Struct(schema, value)))
    assert dict(read) == value
    assert field_schema(read_schema, "p").parameters["scale"] == "2"


def test_nulls_become_zero_values_by_default() -> None:
    schema = Schema.struct({"a": OPTIONAL_INT, "b": Schema(Type.STRING, optional=True)}, name="N")
    for name, expected in (
        ("", {"a": 0, "b": ""}),
        ("wrapper.for.nullables", {"a": None, "b": None}),
        ("optional.for.nullables", {"a": None, "b": None}),
    ):
        made = converter(**({name: "true"} if name else {}))
        options = ProtobufOptions(wrappers=name.startswith("wrapper"), optionals=name.startswith("optional"))
        read = decode(to_file(schema, options)[0], encode(schema, Struct(schema), made), made)[1]
        assert dict(read) == expected
        set_to_zero = encode(schema, Struct(schema, {"a": 0, "b": ""}), made)
        assert dict(decode(to_file(schema, options)[0], set_to_zero, made)[1]) == {"a": 0, "b": ""}


def test_schemas_that_protobuf_does_not_support_are_refused() -> None:
    nested = Schema.struct({"l": Schema.array(Schema.array(INT32_SCHEMA))}, name="A")
    with pytest.raises(DataError, match="Array cannot be nested"):
        encode(nested, Struct(nested))
    with pytest.raises(DataError, match="Unsupported root schema of type ARRAY"):
        encode(Schema.array(INT32_SCHEMA), [1])
    with pytest.raises(DataError, match="schemaless values"):
        encode(None, 1)
    clash = Schema.struct({"a": Schema.struct({"x": INT32_SCHEMA}, name="In"), "b": Schema.struct({}, name="In")}, name="C")
    with pytest.raises(DataError, match="two different schemas named In"):
        encode(clash, Struct(clash))
    loop = FileDescriptorProto(name="f", syntax="proto3")
    loop.message_type.add(name="M").field.add(
        name="m", number=1, type=Field.TYPE_MESSAGE, type_name=".M", label=Field.LABEL_OPTIONAL
    )
    with pytest.raises(DataError, match="contains itself"):
        decode(loop, b"\x00")


@pytest.mark.parametrize(("name", "entry", "back"), [("my_map", "MyMapEntry", "my_map"), ("Tags", "TagsEntry", "tags")])
def test_entries_are_named_after_their_map(name: str, entry: str, back: str) -> None:
    assert entry_name(name) == entry
    assert map_name(entry) == back


WRAPPERS = {
    "StringValue": ("a", b"\x0a\x01a"),
    "BytesValue": (b"a", b"\x0a\x01a"),
    "Int32Value": (5, b"\x08\x05"),
    "UInt32Value": (5, b"\x08\x05"),
    "Int64Value": (5, b"\x08\x05"),
    "UInt64Value": (5, b"\x08\x05"),
    "BoolValue": (True, b"\x08\x01"),
    "DoubleValue": (1.5, b"\x09\x00\x00\x00\x00\x00\x00\xf8?"),
    "FloatValue": (1.5, b"\x0d\x00\x00\xc0?"),
}
FORMS = ("alone", "field", "oneof", "repeated", "map")


def wrapper_file(kind: str, form: str) -> FileDescriptorProto:
    file = FileDescriptorProto(name="f", syntax="proto3", dependency=["google/protobuf/wrappers.proto"])
    message = file.message_type.add(name="M")
    typed = {"number": 1, "type": Field.TYPE_MESSAGE, "type_name": f".google.protobuf.{kind}", "label": Field.LABEL_OPTIONAL}
    if form == "oneof":
        message.oneof_decl.add(name="choice")
        message.field.add(name="w", **typed, oneof_index=0)
        message.field.add(name="x", number=2, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL, oneof_index=0)
    elif form == "map":
        entry = message.nested_type.add(name="WEntry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
        entry.field.add(name="value", **{**typed, "number": 2})
        message.field.add(name="w", number=1, type=Field.TYPE_MESSAGE, type_name=".M.WEntry", label=Field.LABEL_REPEATED)
    else:
        message.field.add(name="w", **{**typed, "label": Field.LABEL_REPEATED if form == "repeated" else Field.LABEL_OPTIONAL})
    return file


@pytest.mark.parametrize("unwrap", [False, True], ids=["default", "wrapper.for.nullables"])
@pytest.mark.parametrize("form", FORMS[1:])
@pytest.mark.parametrize("kind", WRAPPERS)
@pytest.mark.parametrize("is_zero", [False, True], ids=["value", "zero"])
def test_wrapper_types(kind: str, form: str, unwrap: bool, is_zero: bool) -> None:
    value, data = WRAPPERS[kind]
    value, data = (type(value)(), b"") if is_zero else (value, data)
    one = bytes([0x0A, len(data)]) + data
    in_map = b"\x0a\x01k\x12" + bytes([len(data)]) + data
    whole = {"repeated": one * 2, "map": bytes([0x0A, len(in_map)]) + in_map}.get(form, one)
    made = converter(**{"wrapper.for.nullables": str(unwrap).lower()})
    _, found = decode(wrapper_file(kind, form), b"\x00" + whole, made)
    single = value if unwrap else {"value": value}
    wanted: Any = {"repeated": [single] * 2, "map": {"k": single}, "oneof": {"w": single, "x": None}}.get(form, single)
    assert plain(found) == {"choice_0" if form == "oneof" else "w": wanted}
    empty = decode(wrapper_file(kind, form), b"\x00", made)[1]
    assert plain(empty) == {"choice_0" if form == "oneof" else "w": {"repeated": [], "map": {}}.get(form)}


@pytest.mark.parametrize("form", ["field", "oneof", "repeated"])
def test_wrapper_types_are_written_as_they_were_read(form: str) -> None:
    whole = b"\x0a\x03\x0a\x01a" * (2 if form == "repeated" else 1)
    schema, found = decode(wrapper_file("StringValue", form), b"\x00" + whole)
    assert encode(schema, found) == b"\x00" + whole
