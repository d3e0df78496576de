"""A record's bytes, through each converter and transform, are data or an error of the record: no crash, hang, or lack of memory.

``CASES`` sets the number of cases (`make test-security`).
"""

from __future__ import annotations

import base64
import functools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from sluiceway.api import SinkRecord
from sluiceway.converters.registry.base import RegistryConverter
from sluiceway.converters.registry.client import WriterSchema
from sluiceway.converters.registry.json_schema_write import JsonOptions, to_json_schema
from sluiceway.converters.registry.protobuf_schema import ProtobufOptions, to_file
from sluiceway.data import BYTES_SCHEMA, FLOAT64_SCHEMA, INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.data.avro_schema import AvroOptions, to_avro
from sluiceway.data.logical import decimal_schema
from sluiceway.discovery import converter_class, header_converter_class
from sluiceway.errors import ConnectError
from sluiceway.runtime.transforms.chain_config import transformation_stages
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError
from support.column_cases import NAMES, TRANSFORMS, Cases, chain_config, data
from support.fuzz import fuzz, refused_cleanly
from support.random_data import random_schema, random_value

CONVERTERS = [
    ("JsonConverter", {"schemas.enable": "true"}),
    ("JsonConverter", {"schemas.enable": "false"}),
    *((name, {}) for name in ("StringConverter", "ByteArrayConverter", "ShortConverter", "IntegerConverter", "LongConverter")),
    *((name, {}) for name in ("FloatConverter", "DoubleConverter", "BooleanConverter")),
]
DICE = st.integers(0, 2**32).map(random.Random)


def _encoded(dice: random.Random) -> bytes:
    """Return bytes that JsonConverter writes."""
    converter = converter_class("JsonConverter")()
    converter.configure({}, is_key=False)
    schema = random_schema(dice)
    return converter.from_connect_data("t", schema, random_value(dice, schema)) or b"null"


BYTES = st.one_of(
    DICE.map(_encoded), st.binary(max_size=64), st.sampled_from([b"[" * 3000, b'{"a":' * 3000, b"9" * 6000, b"1e9999999"])
)


@pytest.mark.parametrize(("name", "options"), CONVERTERS, ids=lambda each: str(each))
@fuzz("content", share=1 / len(CONVERTERS), content=BYTES)
def test_bytes_through_converters(name: str, options: dict[str, str], content: bytes) -> None:
    converter = converter_class(name)()
    converter.configure(options, is_key=False)
    with refused_cleanly(ConnectError):
        converter.to_connect_data("t", content)


@fuzz("content", share=0.2, content=BYTES)
def test_bytes_through_the_header_converter(content: bytes) -> None:
    converter = header_converter_class("SimpleHeaderConverter")()
    converter.configure({})
    with refused_cleanly(ConnectError):
        converter.to_connect_header("t", "h", content)


ITEM = Schema.struct({"x": FLOAT64_SCHEMA, "y": OPTIONAL_STRING_SCHEMA})
WRITTEN = Schema.struct(
    {
        "a": INT64_SCHEMA,
        "b": Schema.array(ITEM),
        "c": Schema.map(STRING_SCHEMA, STRING_SCHEMA),
        "d": decimal_schema(2),
        "e": BYTES_SCHEMA.replace(optional=True),
    },
    name="Written",
)


def _schema_text(name: str) -> tuple[str, str]:
    """Return the kind and the text of WRITTEN in a registry."""
    if name == "AvroConverter":
        node = to_avro(WRITTEN, AvroOptions())
        assert isinstance(node, dict)
        empty = {"type": "array", "items": {"type": "record", "name": "Empty", "fields": []}}
        return "AVRO", json.dumps({**node, "fields": [{"name": "empty", "type": empty}, *node["fields"]]})
    if name == "JsonSchemaConverter":
        return "JSON", json.dumps(to_json_schema(WRITTEN, JsonOptions()))
    return "PROTOBUF", base64.b64encode(to_file(WRITTEN, ProtobufOptions())[0].SerializeToString()).decode()


@functools.lru_cache
def _registry_converter(name: str) -> Any:
    converter = converter_class(name)()
    assert isinstance(converter, RegistryConverter)
    converter.configure({"schema.registry.url": "http://nowhere.invalid"}, is_key=False)
    kind, text = _schema_text(name)
    converter._writer_schema = lambda *_: WriterSchema(text, kind, (), 1)  # type: ignore[method-assign]
    return converter


def _payload(name: str, dice: random.Random) -> bytes:
    writing = _registry_converter(name)._serialization(WRITTEN)
    value = Struct(WRITTEN, {field.name: random_value(dice, field.schema) for field in WRITTEN.fields})
    found = bytes(writing.payload(writing.native(value)))
    return b"\x04\x00" + found if name == "AvroConverter" else b"\x00" + found if name == "ProtobufConverter" else found


def _through_registry(name: str) -> Callable[..., None]:
    """Return a test of a converter of a Schema Registry with varied payloads."""

    def test(content: bytes) -> None:
        with refused_cleanly(ConnectError):
            _registry_converter(name).to_connect_data("t", b"\x00\x00\x00\x00\x01" + content)

    test.__name__ = f"test_bytes_through_{name}"
    return fuzz("content", share=1 / 3, content=DICE.map(lambda dice: _payload(name, dice)) | st.binary(max_size=64))(test)


test_bytes_through_the_avro_converter = _through_registry("AvroConverter")
test_bytes_through_the_json_schema_converter = _through_registry("JsonSchemaConverter")
test_bytes_through_the_protobuf_converter = _through_registry("ProtobufConverter")


@pytest.mark.parametrize("name", TRANSFORMS)
@fuzz(
    "value",
    share=1 / len(TRANSFORMS),
    chosen=st.integers(0, 2**32),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
        max_leaves=8,
    ),
)
def test_values_without_a_schema_through_transforms(name: str, chosen: int, value: Any) -> None:
    rng = Cases(f"{name} {chosen}")
    chain: TransformationChain[SinkRecord] = TransformationChain(transformation_stages(chain_config(rng, [name], predicates=0.0)))
    with refused_cleanly(TransformationError):
        list(chain.apply(SinkRecord("t", 0, 0, value, None, value, None, 1_700_000_000_000, 1)))


@pytest.mark.parametrize("name", TRANSFORMS)
@fuzz("text", share=1 / len(TRANSFORMS), chosen=st.integers(0, 2**32), text=st.text(max_size=30))
def test_texts_in_configs_of_transforms(name: str, chosen: int, text: str) -> None:
    rng = Cases(f"{name} {chosen}")
    schema, values = data(rng, 1)
    rng.schemas = {"$Key": schema, "$Value": schema}
    config = chain_config(rng, [name], predicates=0.0)
    options = [key for key in config if key.startswith("transforms.t0.") and not key.endswith(".type")]
    if options:
        config[rng.choice(options)] = text
    of_java = (IndexError,) if name == "Cast" else ()  # of a spec of colons alone: Kafka Connect's answer
    with refused_cleanly(ConnectError, TransformationError, *of_java):
        chain: TransformationChain[SinkRecord] = TransformationChain(transformation_stages(config))
        list(chain.apply(SinkRecord("t", 0, 0, values[0], schema, values[0], schema, 1_700_000_000_000, 1)))
