"""``ignore.default.for.nullables`` of the converters with a Schema Registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway.columns.arrays import to_array
from sluiceway.converters.registry.avro import AvroConverter
from sluiceway.converters.registry.json_schema import JsonSchemaConverter
from sluiceway.converters.registry.protobuf import ProtobufConverter
from sluiceway.data import Schema, Struct, Type
from support.schema_registry import Registry, schema_registry

INNER = Schema.struct({"m": Schema(Type.INT32, optional=True, default=5)}, name="Inner")
VALUE = Schema.struct(
    {
        "n": Schema(Type.INT32, optional=True, default=7),
        "r": Schema(Type.INT32, default=8),
        "in": INNER,
        "ins": Schema.array(INNER),
    },
    name="Value",
)


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with schema_registry() as running:
        yield running


def read_back(registry: Registry, kind: Any, keep: str) -> Struct:
    converter, topic = kind(), kind.__name__
    # Protobuf has optional fields of primitive types only with this option.
    more = {"optional.for.nullables": "true"} if kind is ProtobufConverter else {}
    options = {"schema.registry.url": registry.url, "ignore.default.for.nullables": keep, **more}
    converter.configure(options, is_key=False)
    value = Struct(VALUE, {"in": Struct(INNER), "ins": [Struct(INNER)]})
    data = converter.from_connect_data(topic, VALUE, value)
    if kind is AvroConverter:
        assert converter.column_encoder(topic, VALUE)(to_array(VALUE, [value, value])).to_pylist() == [data, data]
    found: Struct = converter.to_connect_data(topic, data).value
    return found


@pytest.mark.parametrize("kind", [AvroConverter, JsonSchemaConverter, ProtobufConverter])
@pytest.mark.parametrize(("keep", "n", "m"), [("false", 7, 5), ("true", None, None)])
def test_a_null_of_an_optional_field_is_written_as_null_or_as_its_default(
    registry: Registry, kind: Any, keep: str, n: int | None, m: int | None
) -> None:
    found = read_back(registry, kind, keep)
    inner = found.get_without_default("in")
    assert (found.get_without_default("n"), found.get_without_default("r")) == (n, 8)
    assert (inner.get_without_default("m"), found["ins"][0].get_without_default("m")) == (m, m)
