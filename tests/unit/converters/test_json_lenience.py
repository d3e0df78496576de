"""JSON of another type than the schema: accepted like in Connect, or refused with its messages."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import (
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Type,
)
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.errors import DataError, SchemaBuilderError
from sluiceway.java.numbers import to_float32

PERSON = Schema.struct({"name": STRING_SCHEMA, "age": INT32_SCHEMA, "tags": Schema.array(OPTIONAL_STRING_SCHEMA)})


def converter() -> JsonConverter:
    return JsonConverter()


def read_as(schema: Schema, payload: str) -> Any:
    """Read a payload under a schema, plainly and then by its known start; both must give the same."""
    start = converter().from_connect_data("t", schema.replace(optional=True), None) or b""
    document = start.removesuffix(b"null}") + payload.encode() + b"}"
    decode = converter().decoder("t")
    first = decode(document)
    assert repr(decode(document)) == repr(first)
    return first[1]


def test_wrong_scalars_are_accepted_like_in_connect() -> None:
    def read(type_: str, payload: str) -> Any:
        document = f'{{"schema":{{"type":"{type_}","optional":false}},"payload":{payload}}}'
        return converter().to_connect_data("t", document.encode())[1]

    assert [read("int32", payload) for payload in ('"5"', "5.9", str(2**40), "true")] == [0, 5, 0, 0]
    assert (read("int8", "300"), read("boolean", '"true"')) == (44, False)
    assert (read("string", "5"), read("double", '"NaN"')) == (None, 0.0)


def test_decimals_read_from_numbers_keep_their_digits() -> None:
    for written in ("1.10", "5", "1e2", "12345678901234567890.123"):
        assert repr(read_as(decimal_schema(0), written)) == repr(Decimal(written))


ARRAY = Schema.array(STRING_SCHEMA)
PAIRS = Schema.map(INT32_SCHEMA, STRING_SCHEMA)


@pytest.mark.parametrize(
    ("schema", "payload", "value"),
    [
        (INT32_SCHEMA, "1e10", 1410065408),
        (INT64_SCHEMA, "9007199254740993.0", 9007199254740993),
        (INT64_SCHEMA, "1e63", -(2**63)),
        (INT64_SCHEMA, "1e64", 0),
        (INT64_SCHEMA, "1e2000000000", 0),
        (INT8_SCHEMA, "128", -128),
        (INT8_SCHEMA, "-129", 127),
        (INT32_SCHEMA, "2147483648", -(2**31)),
        (INT64_SCHEMA, "9223372036854775808", -(2**63)),
        (INT8_SCHEMA, "-5.9", -5),
        (INT64_SCHEMA, str(2**70), 0),
        (FLOAT64_SCHEMA, "-0.0", 0.0),
        (FLOAT64_SCHEMA, "5", 5.0),
        (FLOAT64_SCHEMA, "1e400", float("inf")),
        (FLOAT32_SCHEMA, "0.1", to_float32(0.1)),
        (FLOAT32_SCHEMA, "1e39", float("inf")),
        (FLOAT32_SCHEMA, "9007199791611905", to_float32(9007200328482816.0)),
        (BYTES_SCHEMA, "5", None),
        (BYTES_SCHEMA, '" AAE="', b"\0\1"),
        (ARRAY, '{"a":"x"}', ["x"]),
        (ARRAY, "5", []),
        (ARRAY, '["x",5]', ["x", None]),
        (PAIRS, '[[1,"a"],[2.5,"b"]]', {1: "a", 2: "b"}),
        (time_schema(), "0", dt.time(0)),
        (timestamp_schema(), str(2**64 + 5), dt.datetime(1970, 1, 1, 0, 0, 0, 5000, dt.timezone.utc)),
        (Schema.map(ARRAY, INT32_SCHEMA), '[[["a"],1]]', {("a",): 1}),
    ],
)
def test_payloads_of_another_type_are_read_like_in_connect(schema: Schema, payload: str, value: Any) -> None:
    read = read_as(schema, payload)
    assert repr(read) == repr(value)


@pytest.mark.parametrize(
    ("schema", "payload", "text"),
    [
        (PERSON, "[]", "Structs should be encoded as JSON objects, but found ARRAY"),
        (PERSON, '{"name":5,"age":1,"tags":[]}', 'Invalid value: null used for required field: "name", schema type: STRING'),
        (PERSON, '{"name":"x","tags":[]}', "Invalid null value for required INT32 field"),
        (
            Schema.struct({"a": ARRAY}),
            '{"a":[5]}',
            'Invalid value: null used for required element of array field: "a", schema type: STRING',
        ),
        (PAIRS, "{}", "Maps with non-string fields should be encoded as JSON array of tuples, but found OBJECT"),
        (PAIRS, "[5]", "Found invalid map entry instead of array tuple: NUMBER"),
        (PAIRS, '["ab"]', "Found invalid map entry instead of array tuple: STRING"),
        (PAIRS, "[[1]]", "Found invalid map entry, expected length 2 but found :1"),
        (
            Schema.map(STRING_SCHEMA, STRING_SCHEMA),
            "[]",
            "Maps with string fields should be encoded as JSON objects, but found ARRAY",
        ),
        (BYTES_SCHEMA, '"A"', "Invalid bytes field"),
        (decimal_schema(1), '""', "Invalid bytes for Decimal field"),
        (
            decimal_schema(1),
            "true",
            "Invalid type for Decimal, underlying representation should be numeric or bytes but was BOOLEAN",
        ),
        (date_schema(), "5000000000", "Invalid type for Date, underlying representation should be integer but was NUMBER"),
        (time_schema(), "-1", "Time values must use number of milliseconds greater than 0 and less than 86400000"),
        (timestamp_schema(), "1.0", "Invalid type for Timestamp, underlying representation should be integral but was NUMBER"),
    ],
)
def test_invalid_payloads_are_refused_with_connects_messages(schema: Schema, payload: str, text: str) -> None:
    envelope = json.loads(converter().from_connect_data("t", schema.replace(optional=True), None) or b"")
    envelope["schema"]["optional"] = False
    decode = converter().decoder("t")
    for _ in range(2):
        with pytest.raises(DataError) as raised:
            decode(json.dumps(envelope).removesuffix("null}").encode() + payload.encode() + b"}")
        assert str(raised.value) == text


@pytest.mark.parametrize(
    ("schema", "kind", "text"),
    [
        ('"int32"', DataError, "Schema must contain 'type' field"),
        ('{"type":"INT32"}', DataError, "Unknown schema type: INT32"),
        ('{"type":"array","items":null}', DataError, "Array schema did not specify the element type"),
        ('{"type":"map","values":{"type":"int8"}}', DataError, "Map schema did not specify the key type"),
        ('{"type":"map","keys":{"type":"int8"},"values":null}', SchemaBuilderError, "valueSchema cannot be null."),
        ('{"type":"struct","fields":{}}', DataError, 'Struct schema\'s "fields" argument is not an array.'),
        ('{"type":"struct","fields":[{"type":"int8"}]}', DataError, "Struct schema's field name not specified properly"),
        ('{"type":"int8","parameters":{"a":1}}', DataError, "Schema parameters must have string values."),
        ('{"type":"int8","default":null}', DataError, "Invalid null value for required INT8 field"),
        ('{"type":"string","default":5}', SchemaBuilderError, "Invalid default value"),
        ('{"type":"struct","fields":[],"default":{}}', SchemaBuilderError, "Invalid default value"),
        ('{"type":"array","items":{"type":"string"},"default":[5]}', SchemaBuilderError, "Invalid default value"),
    ],
)
def test_invalid_schemas_are_refused_with_connects_messages(schema: str, kind: type[DataError], text: str) -> None:
    with pytest.raises(DataError) as raised:
        converter().to_connect_data("t", b'{"schema":%b,"payload":null}' % schema.encode())
    assert (type(raised.value), str(raised.value)) == (kind, text)


def test_attributes_of_a_wrong_type_are_ignored_and_a_version_wraps() -> None:
    odd = b'{"schema":{"type":"int8","version":"1","name":5,"doc":5,"optional":"true","parameters":[]},"payload":1}'
    assert converter().to_connect_data("t", odd) == (INT8_SCHEMA, 1)
    versioned = converter().to_connect_data("t", b'{"schema":{"type":"int8","version":5000000000},"payload":1}').schema
    assert versioned is not None
    assert versioned.version == 705032704


def test_a_default_of_a_wrong_type_is_read_as_leniently_as_a_payload() -> None:
    schema = converter().to_connect_data("t", b'{"schema":{"type":"int8","default":"x"},"payload":null}')
    assert schema == (Schema(Type.INT8, default=0), 0)
