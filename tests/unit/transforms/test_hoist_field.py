from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.logical import TIMESTAMP
from sluiceway.errors import ConfigError, DataError, SchemaBuilderError
from sluiceway.transforms.hoist_field import HoistFieldKey, HoistFieldValue
from unit.transforms.transforming import configured, plain, struct_of, transformed, value_of

HOIST = configured(HoistFieldValue, field="f")


def test_a_value_with_a_schema_becomes_the_only_field_of_a_plain_required_struct() -> None:
    schema = Schema(Type.INT32, optional=True, default=9)
    record = transformed(HOIST, 5, schema)
    assert record.value_schema == Schema.struct({"f": schema})
    assert plain(record.value) == {"f": 5}


def test_a_struct_is_hoisted_whole() -> None:
    value, schema = struct_of({"a": INT64_SCHEMA}, {"a": 1})
    assert transformed(HOIST, value, schema).value["f"] is value


def test_nulls_are_hoisted_as_well() -> None:
    assert transformed(HOIST, None).value == {"f": None}
    assert plain(transformed(HOIST, None, Schema(Type.STRING, optional=True)).value) == {"f": None}
    with pytest.raises(DataError, match='null used for required field: "f", schema type: STRING'):
        transformed(HOIST, None, STRING_SCHEMA)


def test_a_value_that_does_not_fit_its_schema_is_refused() -> None:
    with pytest.raises(DataError, match=r'for schema with type STRING: class java\.lang\.Long for field: "f"'):
        transformed(HOIST, 5, STRING_SCHEMA)
    with pytest.raises(DataError, match=f'Invalid Java object for schema "{TIMESTAMP}" with type INT8'):
        transformed(HOIST, 5, Schema(Type.INT8, name=TIMESTAMP))


def test_a_struct_with_a_null_in_a_required_field_is_refused() -> None:
    schema = Schema.struct({"a": STRING_SCHEMA})
    with pytest.raises(DataError, match='null used for required field: "a"'):
        transformed(HOIST, Struct(schema), schema)
    with pytest.raises(DataError, match="Struct schemas do not match"):
        transformed(HOIST, Struct(Schema.struct({})), schema)


def test_the_field_needs_a_name_only_with_a_schema() -> None:
    hoist = configured(HoistFieldValue, field="")
    assert value_of(hoist, 5) == {"": 5}
    with pytest.raises(SchemaBuilderError, match="fieldName cannot be null"):
        transformed(hoist, "x", STRING_SCHEMA)


def test_the_key_form_leaves_the_value_alone() -> None:
    record = transformed(configured(HoistFieldKey, field="k"), "v", key="x")
    assert (record.key, record.value) == ({"k": "x"}, "v")


def test_the_field_option_is_required() -> None:
    with pytest.raises(ConfigError, match='Missing required configuration "field"'):
        configured(HoistFieldValue)


@given(st.none() | st.integers() | st.text() | st.lists(st.integers()) | st.dictionaries(st.text(), st.integers()))
def test_a_schemaless_value_is_wrapped_unchanged(value: Any) -> None:
    assert value_of(HOIST, value) == {"f": value}
