"""Records and schemas of a few bytes that would make more than memory or time can hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from sluiceway.converters.registry.avro import AvroConverter
from sluiceway.converters.registry.client import WriterSchema
from sluiceway.converters.registry.json_schema import JsonSchemaConverter
from sluiceway.converters.registry.limits import Budget
from sluiceway.converters.registry.protobuf_connect import to_connect
from sluiceway.converters.registry.protobuf_schema import ProtobufOptions
from sluiceway.errors import DataError
from support.fuzz import memory, processor_time
from unit.converters.registry.test_avro import decode, fast

EMPTY = {"type": "record", "name": "Empty", "fields": []}
WITHOUT_BYTES = [
    EMPTY,
    {"type": "fixed", "name": "F", "size": 0},
    {
        "type": "record",
        "name": "Nested",
        "fields": [{"name": "a", "type": EMPTY}, {"name": "b", "type": {"type": "fixed", "name": "G", "size": 0}}],
    },
]
BILLIONS = b"\xfe\xff\xff\xff\x0f"  # 2,147,483,647 items


@pytest.mark.parametrize("items", WITHOUT_BYTES, ids=lambda items: str(items["name"]))
@pytest.mark.parametrize("count", [BILLIONS, b"\xff\xff\xff\xff\x0f\x00"], ids=["items", "block with its size"])
@pytest.mark.parametrize("outer", [False, True])
def test_a_few_bytes_make_no_billions_of_items(items: Any, count: bytes, *, outer: bool) -> None:
    node: Any = {"type": "array", "items": items}
    data = count + b"\x00"
    if outer:
        fields = [{"name": "text", "type": "string"}, {"name": "list", "type": ["null", node]}, {"name": "last", "type": "long"}]
        node, data = {"type": "record", "name": "Outer", "fields": fields}, b"\x02x\x02" + data + b"\x02"
    with memory(), processor_time(), pytest.raises(DataError, match="items that take no bytes; 100000 are allowed"):
        decode(node, data)


def test_lists_of_items_without_bytes_are_read_within_the_limit() -> None:
    node = {"type": "array", "items": EMPTY}
    assert len(decode(node, fast(node, [{}] * 1000))[1]) == 1000


def _doubling(levels: int) -> dict[str, Any]:
    node: Any = "long"
    fields = [{"name": "a", "type": {"type": "record", "name": f"R{levels}", "fields": [{"name": "x", "type": "int"}]}}]
    for level in range(levels - 1, -1, -1):
        node = {"type": "record", "name": f"R{level}", "fields": [*fields, {"name": "b", "type": f"R{level + 1}"}]}
        fields = [{"name": "a", "type": node}]
    return dict(node)


def _protobuf(levels: int) -> Any:
    file = FileDescriptorProto(name="d.proto", package="d", syntax="proto3")
    for level in range(levels):
        message = file.message_type.add(name=f"M{level}")
        for number, name in enumerate("ab", 1):
            part = message.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            if level + 1 < levels:
                part.type, part.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".d.M{level + 1}"
            else:
                part.type = FieldDescriptorProto.TYPE_INT32
    pool = DescriptorPool()
    pool.Add(file)
    return pool.FindMessageTypeByName("d.M0")


def _json_schema(levels: int) -> dict[str, Any]:
    parts = {
        f"p{level}": {"type": "object", "properties": {name: {"$ref": f"#/definitions/p{level + 1}"} for name in "ab"}}
        for level in range(levels)
    }
    return {"$ref": "#/definitions/p0", "definitions": {**parts, f"p{levels}": {"type": "integer"}}}


def _read_avro(node: dict[str, Any]) -> None:
    decode(node, b"")


def _read_json_schema(node: dict[str, Any]) -> None:
    converter = JsonSchemaConverter()
    converter.configure({"schema.registry.url": "http://nowhere.invalid"}, is_key=False)
    converter._deserialization("t", WriterSchema(json.dumps(node), "JSON", (), 1))


def _read_protobuf(message: Any) -> None:
    to_connect(message, ProtobufOptions())


@pytest.mark.parametrize(
    ("read", "schema"),
    [(_read_avro, _doubling(40)), (_read_json_schema, _json_schema(40)), (_read_protobuf, _protobuf(40))],
    ids=["avro", "json schema", "protobuf"],
)
def test_a_schema_that_doubles_with_each_level_is_refused(read: Any, schema: Any) -> None:
    with pytest.raises(DataError, match=f"more than {Budget.MOST} fields"):
        read(schema)


def test_a_schema_that_is_nested_too_deeply_is_a_bad_record(monkeypatch: pytest.MonkeyPatch) -> None:
    converter = AvroConverter()
    converter.configure({"schema.registry.url": "http://nowhere.invalid"}, is_key=False)
    text = '{"type":"array","items":' * 20_000 + '"int"' + "}" * 20_000
    monkeypatch.setattr(AvroConverter, "_writer_schema", lambda *_: WriterSchema(text, "AVRO", (), 1))
    with pytest.raises(DataError, match="the schema is nested too deeply"):
        converter.to_connect_data("t", b"\x00\x00\x00\x00\x01x")
