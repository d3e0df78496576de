from __future__ import annotations

from typing import Any

import pytest

from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Schema, Type
from sluiceway.errors import ConfigError, DataError
from sluiceway.transforms.value_to_key import ValueToKey
from unit.transforms.transforming import configured, plain, struct_of, transformed

DEFAULTED = {"a": Schema(Type.INT32, optional=True, default=5), "b": Schema(Type.STRING, default="d"), "c": INT32_SCHEMA}


def test_the_key_has_the_fields_in_the_order_of_the_config() -> None:
    struct, schema = struct_of({"a": INT32_SCHEMA, "b": STRING_SCHEMA}, {"a": 1, "b": "x"}, name="N", optional=True)
    record = transformed(configured(ValueToKey, fields="b,a"), struct, schema, key="before", key_schema=STRING_SCHEMA)
    assert record.key_schema == Schema.struct({"b": STRING_SCHEMA, "a": INT32_SCHEMA})
    assert plain(record.key) == {"b": "x", "a": 1}
    assert (record.value, record.value_schema) == (struct, schema)


@pytest.mark.parametrize(("replace", "expected"), [("true", {"a": 5}), ("false", {"a": None})])
def test_nulls_become_defaults_unless_told_otherwise(replace: str, expected: dict[str, Any]) -> None:
    struct, schema = struct_of(DEFAULTED, {"c": 1})
    assert (
        plain(transformed(configured(ValueToKey, fields="a", replace_null_with_default=replace), struct, schema).key) == expected
    )


def test_a_null_in_a_required_field_is_refused() -> None:
    struct, schema = struct_of(DEFAULTED, {"c": 1})
    with pytest.raises(DataError, match='Invalid value: null used for required field: "b", schema type: STRING'):
        transformed(configured(ValueToKey, fields="b", replace_null_with_default="false"), struct, schema)


def test_schemaless_fields_that_are_missing_are_null() -> None:
    record = transformed(configured(ValueToKey, fields="a,nope"), {"a": 1, "b": 2})
    assert (record.key_schema, record.key, record.value) == (None, {"a": 1, "nope": None}, {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("value", "schema", "text"),
    [
        (*struct_of({"a": INT32_SCHEMA}, {"a": 1}), "Field does not exist: nope"),
        (None, None, "Only Map objects supported in absence of schema for [copying fields from value to key], found: null"),
        (
            [1],
            None,
            "Only Map objects supported in absence of schema for [copying fields from value to key], found: java.util.ArrayList",
        ),
        (None, INT32_SCHEMA, "Only Struct objects supported for [copying fields from value to key], found: null"),
    ],
)
def test_a_value_without_the_fields_is_refused(value: Any, schema: Schema | None, text: str) -> None:
    with pytest.raises(DataError) as caught:
        transformed(configured(ValueToKey, fields="nope"), value, schema)
    assert str(caught.value) == text


def test_schemas_may_change_from_record_to_record() -> None:
    transform = configured(ValueToKey, fields="a")
    for fields in ({"a": INT32_SCHEMA}, {"b": INT32_SCHEMA, "a": INT32_SCHEMA}, {"a": INT32_SCHEMA}):
        struct, schema = struct_of(fields, {name: index for index, name in enumerate(fields)})
        assert plain(transformed(transform, struct, schema).key) == {"a": struct["a"]}


@pytest.mark.parametrize("fields", ["", "a,a", "a,"])
def test_fields_are_named_once_each(fields: str) -> None:
    with pytest.raises(ConfigError, match="Configuration 'fields'"):
        configured(ValueToKey, fields=fields)
