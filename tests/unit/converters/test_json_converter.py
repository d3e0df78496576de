from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.api import NULL
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
    Type,
)
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.data.numbers import Float32, Int32
from sluiceway.errors import ConfigError, DataError
from sluiceway.java.numbers import to_float32

PERSON = Schema.struct(
    {"name": STRING_SCHEMA, "age": INT32_SCHEMA, "tags": Schema.array(OPTIONAL_STRING_SCHEMA)}, name="com.x.Person", version=2
)
STRING_ENVELOPE = b'{"schema":{"type":"string","optional":false},"payload":'


def converter(**config: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({key.replace("_", "."): value for key, value in config.items()}, is_key=False)
    return made


def bare() -> JsonConverter:
    return converter(schemas_enable="false")


def test_a_string_has_connects_bytes() -> None:
    expected = b'{"schema":{"type":"string","optional":false},"payload":"foo"}'
    assert converter().from_connect_data("t", STRING_SCHEMA, "foo") == expected
    assert bare().from_connect_data("t", STRING_SCHEMA, "foo") == b'"foo"'


def test_a_struct_schema_is_written_with_its_members_in_connects_order() -> None:
    value = Struct(PERSON, {"name": "Ü", "age": 7, "tags": ["a", None]})
    assert (
        converter().from_connect_data("t", PERSON, value)
        == (
            '{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"name"},'
            '{"type":"int32","optional":false,"field":"age"},'
            '{"type":"array","items":{"type":"string","optional":true},"optional":false,"field":"tags"}],'
            '"optional":false,"name":"com.x.Person","version":2},"payload":{"name":"Ü","age":7,"tags":["a",null]}}'
        ).encode()
    )


SAMPLES: list[tuple[Schema, Any, bytes]] = [
    (INT8_SCHEMA, -128, b"-128"),
    (INT64_SCHEMA, 2**63 - 1, b"9223372036854775807"),
    (FLOAT64_SCHEMA, 1.5, b"1.5"),
    (BOOLEAN_SCHEMA, True, b"true"),
    (BYTES_SCHEMA, b"\x00\xff", b'"AP8="'),
    (OPTIONAL_STRING_SCHEMA, None, b"null"),
    (Schema.map(STRING_SCHEMA, INT32_SCHEMA), {"a": 1}, b'{"a":1}'),
    (Schema.map(INT32_SCHEMA, STRING_SCHEMA), {1: "a"}, b'[[1,"a"]]'),
    (decimal_schema(2), Decimal("1.56"), b'"AJw="'),
    (date_schema(), dt.date(1970, 1, 11), b"10"),
    (time_schema(), dt.time(0, 0, 1), b"1000"),
    (timestamp_schema(), dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.timezone.utc), b"1000"),
    (PERSON, Struct(PERSON, {"name": "x", "age": 1, "tags": []}), b'{"name":"x","age":1,"tags":[]}'),
]


@pytest.mark.parametrize(("schema", "value", "payload"), SAMPLES)
def test_values_of_every_type_are_written_and_read_back(schema: Schema, value: Any, payload: bytes) -> None:
    assert bare().encoder("t", schema)(value) == payload
    data = converter().from_connect_data("t", schema, value)
    reader = converter()
    assert reader.to_connect_data("t", data) == reader.to_connect_data("t", data) == (schema, value)


@pytest.mark.parametrize(("text", "printed"), [("\x1f\x0b", rb'"\u001F\u000B"'), ("\\u001f", rb'"\\u001f"'), ("\n", rb'"\n"')])
def test_only_control_characters_are_escaped_in_uppercase(text: str, printed: bytes) -> None:
    assert bare().from_connect_data("t", STRING_SCHEMA, text) == printed
    assert bare().from_connect_data("t", None, {"a": text}) == b'{"a":' + printed + b"}"


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (float("nan"), b'"NaN"'),
        ([float("-inf"), None], b'["-Infinity",null]'),
        ({"a": b"\xff"}, b'{"a":"/w=="}'),
        ({1: "x"}, b'[[1,"x"]]'),
        ([1.0, True], b"[1.0,true]"),
    ],
)
def test_schemaless_values_are_read_back(value: Any, printed: bytes) -> None:
    assert bare().from_connect_data("t", None, value) == printed
    assert converter().from_connect_data("t", None, value) == b'{"schema":null,"payload":' + printed + b"}"


def test_a_schemaless_null_is_a_tombstone() -> None:
    for each in (converter(), bare()):
        assert each.from_connect_data("t", None, None) is None
        assert each.to_connect_data("t", None) == NULL
        assert each.decoder("t")(None) == NULL


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (STRING_SCHEMA, None, "null value for field that is required and has no default value"),
        (STRING_SCHEMA, 1, "Invalid type for STRING: class java.lang.Long"),
        (INT8_SCHEMA, 128, "128 does not fit"),
        (INT32_SCHEMA, True, "Invalid type for INT32"),
        (PERSON, {"name": "x"}, "Invalid type for STRUCT"),
        (None, dt.date(2024, 1, 1), "does not have corresponding schema type"),
        (None, 2**64, "does not have corresponding schema type"),
        (None, Struct(PERSON), "Mismatching schema."),
        (FLOAT64_SCHEMA, Float32(1.5), "Invalid type for FLOAT64: class java.lang.Float"),
        (None, [uuid.uuid4, 1], "does not have corresponding schema type"),
        (PERSON, Struct(Schema.struct({"name": STRING_SCHEMA}), {"name": "x"}), "Mismatching schema."),
    ],
)
def test_a_value_of_another_type_is_refused(schema: Schema | None, value: Any, text: str) -> None:
    for each in (converter(), bare()):
        with pytest.raises(DataError, match=text):
            each.from_connect_data("t", schema, value)


def test_nulls_become_defaults_unless_disabled() -> None:
    schema = Schema(Type.INT32, default=7)
    assert bare().encoder("t", schema)(None) == b"7"
    optional = Schema(Type.INT32, default=7, optional=True)
    assert converter(schemas_enable="false", replace_null_with_default="false").encoder("t", optional)(None) == b"null"


@pytest.mark.parametrize(
    ("value", "printed"), [("0.001", b"0.001"), ("5E+3", b"5E+3"), ("1.10", b"1.10"), ("1E-10", b"1E-10"), ("-0.5", b"-0.5")]
)
def test_decimals_can_be_numbers_of_any_scale(value: str, printed: bytes) -> None:
    numeric = converter(schemas_enable="false", decimal_format="numeric")
    assert numeric.encoder("t", decimal_schema(3))(Decimal(value)) == printed


@pytest.mark.parametrize(
    ("schema", "value", "printed"),
    [
        (FLOAT64_SCHEMA, 1e10, b"1.0E10"),
        (FLOAT64_SCHEMA, 1e-5, b"1.0E-5"),
        (FLOAT64_SCHEMA, 0.001, b"0.001"),
        (FLOAT64_SCHEMA, 1e7, b"1.0E7"),
        (FLOAT64_SCHEMA, -0.0, b"-0.0"),
        (FLOAT64_SCHEMA, 100.0, b"100.0"),
        (FLOAT64_SCHEMA, float("nan"), b'"NaN"'),
        (FLOAT32_SCHEMA, to_float32(0.1), b"0.1"),
        (FLOAT32_SCHEMA, 0.1, b"0.1"),
        (FLOAT32_SCHEMA, to_float32(3.4028235e38), b"3.4028235E38"),
        (FLOAT32_SCHEMA, to_float32(1.4e-45), b"1.4E-45"),
        (FLOAT32_SCHEMA, float("-inf"), b'"-Infinity"'),
        (None, Float32(to_float32(0.1)), b"0.1"),
        (None, Int32(5), b"5"),
    ],
)
def test_floats_have_javas_digits(schema: Schema | None, value: float, printed: bytes) -> None:
    assert bare().from_connect_data("t", schema, value) == printed


@pytest.mark.parametrize(
    "data",
    [
        b'{"schema":{"type":"string","optional":false},"payload":"a","extra":1}',
        b'{"schema":{"type":"string","optional":false},"extra":"a"}',
        b'"a"',
        b"{}",
        b"[]",
        b"5",
        b"not json",
        b"",
        b"   ",
        b'{"schema":{"type":"string","optional":false},"payload":"a"',
        b'{"schema":{"type":"string","optional":false},"payload":}',
    ],
)
def test_other_documents_are_refused_also_after_valid_envelopes(data: bytes) -> None:
    decode = converter().decoder("t")
    with pytest.raises(DataError):
        decode(data)
    assert decode(STRING_ENVELOPE + b'"x"}')[1] == "x"
    with pytest.raises(DataError):
        decode(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (STRING_ENVELOPE + b'"a","payload":"b"}', "b"),
        (b'{"payload":"a","schema":{"type":"string","optional":false}}', "a"),
        (b'{ "schema": {"type":"string","optional":false}, "payload": "a" }', "a"),
        (STRING_ENVELOPE + b'"a" } ', "a"),
        (STRING_ENVELOPE + b'"a"} trailing', "a"),
        (b"\xef\xbb\xbf" + STRING_ENVELOPE + b'"a"}', "a"),
        (STRING_ENVELOPE + b'"}"}', "}"),
        (STRING_ENVELOPE + b"5}", None),
    ],
)
def test_unusual_documents_are_read_the_same_with_and_without_a_cached_prefix(data: bytes, value: Any) -> None:
    decode = converter().decoder("t")
    before = decode(data)
    decode(STRING_ENVELOPE + b'"x"}')
    assert before == decode(data) == (STRING_SCHEMA, value)


def test_a_payload_member_inside_the_schema_is_not_the_payload() -> None:
    schema = Schema(Type.STRING, parameters={"a": "x", "payload": "y"})
    writer, reader = converter(), converter()
    for text in ("one", "two"):
        assert reader.to_connect_data("t", writer.from_connect_data("t", schema, text)) == (schema, text)


def test_many_schemas_in_one_topic_are_distinguished() -> None:
    schemas = [Schema.struct({f"f{number}": INT32_SCHEMA}) for number in range(40)]
    writer, decode = converter(), converter().decoder("t")
    for _ in range(3):
        for schema in schemas:
            value = Struct(schema, {schema.fields[0].name: 5})
            assert decode(writer.from_connect_data("t", schema, value)) == (schema, value)


@pytest.mark.parametrize(
    ("number", "read"), [(2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (2**64, 0), (-(2**64) - 5, -5), (10**30, 5076944270305263616)]
)
def test_integers_beyond_a_long_wrap_around(number: int, read: int) -> None:
    assert bare().to_connect_data("t", b"[%d]" % number) == (None, [read])
    decode = converter().decoder("t")
    for _ in range(2):
        assert decode(b'{"schema":null,"payload":{"n":%d}}' % number) == (None, {"n": read})


def test_many_digits_in_strings_and_fractions_are_read_correctly() -> None:
    assert bare().to_connect_data("t", b'{"a":"12345678901234567890","b":0.1234567890123456789}') == (
        None,
        {"a": "12345678901234567890", "b": 0.1234567890123456789},
    )


@pytest.mark.parametrize("blank", [b"", b"  \n"])
def test_without_schemas_a_blank_document_is_null(blank: bytes) -> None:
    assert bare().to_connect_data("t", blank) == NULL


@pytest.mark.parametrize("bad", [b"NaN", b"[1,]", b".5", b"{'a':1}", b"\xff"])
def test_invalid_json_is_refused(bad: bytes) -> None:
    with pytest.raises(DataError, match="serialization error"):
        bare().to_connect_data("t", bad)


def test_invalid_option_values_are_refused_with_kafkas_message() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value x for configuration decimal\.format: String must be one of"):
        converter(decimal_format="x")
    with pytest.raises(ConfigError, match=r"Invalid value x for configuration schemas\.cache\.size: Not a number of type INT"):
        converter(schemas_cache_size="x")


def test_strings_that_orjson_refuses_have_connects_bytes() -> None:
    assert bare().from_connect_data("t", STRING_SCHEMA, "a\ud800\x1f") == b'"a\\uD800\\u001F"'
    assert bare().from_connect_data("t", None, {"\ud800": [1.5, b"a"]}) == b'{"\\uD800":[1.5,"YQ=="]}'
    assert bare().from_connect_data("t", STRING_SCHEMA, "é😀") == '"é\\uD83D\\uDE00"'.encode()
    nested: Any = 1
    for _ in range(300):
        nested = [nested]
    assert bare().from_connect_data("t", None, nested) == b"[" * 300 + b"1" + b"]" * 300


def test_values_nested_too_deeply_are_refused() -> None:
    nested: Any = 2**64
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(DataError):
        bare().from_connect_data("t", None, nested)
    with pytest.raises(DataError):
        bare().to_connect_data("t", b"[" * 990 + b"-0" + b"]" * 990)


@pytest.mark.parametrize("depth", [5, 10, 11, 40, 150])
def test_schemas_may_be_nested_deeply(depth: int) -> None:
    schema, value, one = INT32_SCHEMA, 1, converter()
    inner: Any = value
    for level in range(depth):
        schema, inner = (Schema.array(schema), [inner]) if level % 2 else (Schema.map(STRING_SCHEMA, schema), {"k": inner})
    written = one.from_connect_data("t", schema, inner)
    for _ in range(2):
        assert one.to_connect_data("t", written) == (schema, inner)


def test_a_struct_with_a_default_can_be_written_only_without_its_schema() -> None:
    plain = Schema.struct({"x": INT32_SCHEMA})
    schema = plain.replace(default=Struct(plain, {"x": 1}))
    value = Struct(schema, {"x": 2})
    assert bare().from_connect_data("t", schema, value) == b'{"x":2}'
    with pytest.raises(DataError, match=r"Mismatching schema\."):
        converter().from_connect_data("t", schema, value)


def test_messages_can_be_read_with_schema_content() -> None:
    one = converter(schema_content='{"type":"struct","fields":[{"field":"a","type":"int64"}]}')
    schema = Schema.struct({"a": INT64_SCHEMA})
    assert one.to_connect_data("t", b'{"a":5,"b":6}') == (schema, Struct(schema, {"a": 5}))
    assert one.to_connect_data("t", b'{"a":"5"}') == (schema, Struct(schema, {"a": 0}))
    assert one.to_connect_data("t", None) == NULL
    with pytest.raises(DataError, match="Invalid null value for required INT64 field"):
        one.to_connect_data("t", b'{"schema":{"type":"string"},"payload":"x"}')
    assert one.from_connect_data("t", None, 5) == b'{"schema":null,"payload":5}'
    for none in ("", "null", " "):
        assert converter(schema_content=none).to_connect_data("t", STRING_ENVELOPE + b'"x"}') == (STRING_SCHEMA, "x")


def test_an_invalid_schema_content_is_refused_by_configure() -> None:
    with pytest.raises(DataError, match=r"^Failed to parse schema in converter config due to serialization error: $"):
        converter(schema_content="not json")
    with pytest.raises(DataError, match=r"^Unknown schema type: nope$"):
        converter(schema_content='{"type":"nope"}')


def test_headers_are_converted_like_values() -> None:
    data = converter().from_connect_header("t", "h", INT32_SCHEMA, 1)
    assert data == b'{"schema":{"type":"int32","optional":false},"payload":1}'
    assert converter().to_connect_header("t", "h", data) == (INT32_SCHEMA, 1)


def test_a_null_key_of_a_map_is_written_as_a_string() -> None:
    schema = Schema.map(OPTIONAL_STRING_SCHEMA, INT32_SCHEMA)
    assert bare().from_connect_data("t", schema, {None: 1, "a": 2}) == b'{"null":1,"a":2}'
    with pytest.raises(DataError, match="required and has no default"):
        bare().from_connect_data("t", Schema.map(STRING_SCHEMA, INT32_SCHEMA), {None: 1})


def test_more_schemas_than_the_cache_size_are_converted() -> None:
    one = converter(schemas_cache_size="2")
    for _ in range(2):
        for size in range(5):
            schema = Schema.struct({f"f{size}": INT32_SCHEMA})
            value = Struct(schema, {f"f{size}": size})
            assert one.to_connect_data("t", one.from_connect_data("t", schema, value)) == (schema, value)


@pytest.mark.parametrize("text", ["plain", "\x1f\x7f \\u001f", "é\u2028", "😀"])
@pytest.mark.parametrize("enabled", ["true", "false"])
def test_a_layout_makes_what_the_converter_makes(text: str, enabled: str) -> None:
    made = converter(schemas_enable=enabled)
    layout = made.json_layout(STRING_SCHEMA)
    assert layout is not None
    expected = made.from_connect_data("t", STRING_SCHEMA, text)
    assert layout.prefix + layout.encode(json.dumps(text, ensure_ascii=False)) + layout.suffix == expected
    assert layout.prefix + layout.encode(layout.text(STRING_SCHEMA)(text)) + layout.suffix == expected
    assert layout.base64_decimals
    numeric = converter(decimal_format="NUMERIC").json_layout(STRING_SCHEMA)
    assert numeric is not None
    assert not numeric.base64_decimals


def test_a_subclass_has_no_layout_because_it_may_write_otherwise() -> None:
    class Other(JsonConverter):
        pass

    assert Other().json_layout(STRING_SCHEMA) is None
