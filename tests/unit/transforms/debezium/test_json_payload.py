from __future__ import annotations

from typing import Any

import pytest

from sluiceway.data import OPTIONAL_BYTES_SCHEMA, OPTIONAL_INT32_SCHEMA, OPTIONAL_STRING_SCHEMA, Schema, Type
from sluiceway.errors import ConnectError, DataError
from sluiceway.transforms.debezium.json_payload import JsonPayloads, parse_json
from sluiceway.transforms.debezium.names import field_name_adjuster

PAYLOADS = JsonPayloads(nulls_as_bytes=False, empty_as_text=False)


def fields(payloads: JsonPayloads, text: str) -> dict[str, Any]:
    schema = payloads.schema_of("payload", parse_json(text))
    assert schema is not None
    return {field.name: field.schema for field in schema.fields}


def test_nulls_and_empty_arrays_are_left_out_or_get_a_schema() -> None:
    assert fields(PAYLOADS, '{"a": null, "b": []}') == {}
    kept = JsonPayloads(nulls_as_bytes=True, empty_as_text=True)
    assert fields(kept, '{"a": null, "b": []}') == {
        "a": OPTIONAL_BYTES_SCHEMA,
        "b": Schema.array(OPTIONAL_STRING_SCHEMA, optional=True),
    }


def test_of_two_names_that_become_the_same_the_first_stays() -> None:
    payloads = JsonPayloads(nulls_as_bytes=False, empty_as_text=False, field_name=field_name_adjuster("avro"))
    assert fields(payloads, '{"a-b": 1, "a.b": "x"}') == {"a_b": OPTIONAL_INT32_SCHEMA}


def test_objects_in_an_array_share_a_schema_with_the_fields_of_all() -> None:
    items = fields(PAYLOADS, '{"a": [{"x": 1}, {"y": "b"}]}')["a"].value_schema
    assert [(field.name, field.schema.type) for field in items.fields] == [("x", Type.INT32), ("y", Type.STRING)]
    assert (items.name, items.optional) == ("payload.a", False)


@pytest.mark.parametrize("text", ['{"a": [1, "b"]}', '{"a": [1, 12345678901]}', '{"a": [null]}'])
def test_arrays_of_several_types_are_refused(text: str) -> None:
    with pytest.raises(ConnectError):
        fields(PAYLOADS, text)


def test_numbers_beyond_a_long_are_refused_as_values() -> None:
    document = parse_json('{"a": 123456789012345678901}')
    with pytest.raises(DataError):
        PAYLOADS.struct_of(document, PAYLOADS.schema_of("payload", document))


@pytest.mark.parametrize("text", ["text", "", "{bad", '{"a": NaN}'])
def test_other_text_is_no_json(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the text differs by case)
        parse_json(text)
