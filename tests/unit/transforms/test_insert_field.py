from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import SourceRecord
from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Type
from sluiceway.data.logical import TIMESTAMP
from sluiceway.data.numbers import Int32
from sluiceway.errors import ConfigError, DataError, SchemaBuilderError
from sluiceway.transforms.insert_field import InsertFieldKey, InsertFieldValue
from support.schemas import field_schema
from unit.transforms.transforming import configured, plain, schema_of, source_record, struct_of, transformed, value_of

ALL = {
    "topic_field": "t!",
    "partition_field": "p",
    "offset_field": "o?",
    "timestamp_field": "ts",
    "static_field": "s",
    "static_value": "x",
}


def test_a_struct_gets_the_fields_at_its_end_in_one_fixed_order() -> None:
    insert = configured(InsertFieldValue, **dict(reversed(ALL.items())))
    record = transformed(insert, *struct_of({"a": INT64_SCHEMA}, {"a": 1}), timestamp=1650000000123)
    moment = dt.datetime(2022, 4, 15, 5, 20, 0, 123000, tzinfo=dt.timezone.utc)
    assert plain(record.value) == {"a": 1, "t": "orders", "p": 3, "o": 42, "ts": moment, "s": "x"}
    assert list(record.value) == ["a", "t", "p", "o", "ts", "s"]
    schemas = {field.name: (field.schema.type, field.schema.optional) for field in schema_of(record).fields}
    assert schemas["t"] == (Type.STRING, False)
    assert schemas["p"] == (Type.INT32, True)
    assert schemas["o"] == (Type.INT64, True)
    assert field_schema(schema_of(record), "ts").name == TIMESTAMP


def test_a_map_gets_them_typed_as_java_has_them() -> None:
    record = transformed(configured(InsertFieldValue, **ALL), {"a": 1}, timestamp=5)
    assert record.value == {"a": 1, "t": "orders", "p": 3, "o": 42, "ts": 5, "s": "x"}
    assert type(record.value["p"]) is Int32
    assert type(record.value["ts"]) is int


def test_missing_metadata_is_null_in_a_struct_and_absent_from_a_map() -> None:
    insert = configured(InsertFieldValue, timestamp_field="ts!", partition_field="p")
    assert value_of(insert, {"a": 1}) == {"a": 1, "p": 3}
    record = insert.apply(source_record(*struct_of({"a": INT64_SCHEMA}, {"a": 1})))
    assert isinstance(record, SourceRecord)
    assert plain(record.value) == {"a": 1, "ts": None, "p": None}


@pytest.mark.parametrize(
    ("spec", "name", "optional"), [("x", "x", True), ("x?", "x", True), ("x!", "x", False), ("x!?", "x!", True)]
)
def test_only_the_last_character_says_whether_a_field_is_required(spec: str, name: str, optional: bool) -> None:
    schema = schema_of(transformed(configured(InsertFieldValue, topic_field=spec), *struct_of({}, {})))
    assert [(field.name, field.schema.optional) for field in schema.fields] == [(name, optional)]


def test_an_existing_field_is_overwritten_in_a_map_and_an_error_in_a_struct() -> None:
    insert = configured(InsertFieldValue, topic_field="a")
    assert value_of(insert, {"a": 1}) == {"a": "orders"}
    with pytest.raises(SchemaBuilderError, match=r"field name duplication a$"):
        transformed(insert, *struct_of({"a": INT64_SCHEMA}, {"a": 1}))


def test_an_empty_field_name_is_refused_by_the_schema() -> None:
    with pytest.raises(SchemaBuilderError, match="fieldName cannot be null"):
        transformed(configured(InsertFieldValue, topic_field="!"), *struct_of({}, {}))


def test_a_record_of_a_source_has_no_offset() -> None:
    insert = configured(InsertFieldValue, offset_field="o")
    for value, schema in (({"a": 1}, None), struct_of({"a": INT64_SCHEMA}, {"a": 1})):
        with pytest.raises(DataError, match=r"Only SinkRecord supported for \[field insertion\], found: org.*SourceRecord$"):
            insert.apply(source_record(value, schema))


def test_nulls_pass_and_other_classes_do_not() -> None:
    insert = configured(InsertFieldValue, topic_field="t")
    assert transformed(insert, None, Schema(Type.STRING, optional=True)).value is None
    with pytest.raises(DataError, match=r"Only Map objects supported in absence of schema for .*, found: java.lang.Long$"):
        transformed(insert, 5)
    with pytest.raises(DataError, match=r"Only Struct objects supported for .*, found: java.lang.Byte$"):
        transformed(insert, 5, Schema(Type.INT8))


def test_the_schema_keeps_its_name_but_neither_optional_nor_default() -> None:
    value, schema = struct_of({"a": INT64_SCHEMA}, {"a": 1}, name="N", version=2, doc="d", parameters={"k": "v"}, optional=True)
    updated = schema_of(transformed(configured(InsertFieldValue, topic_field="t"), value, schema))
    assert (updated.name, updated.version, updated.doc, updated.parameters) == ("N", 2, "d", {"k": "v"})
    assert not updated.optional


def test_nulls_of_all_fields_become_their_defaults_unless_told_otherwise() -> None:
    fields = {"a": Schema(Type.INT32, optional=True, default=5), "b": Schema(Type.STRING, optional=True)}
    assert value_of(configured(InsertFieldValue, topic_field="t"), *struct_of(fields, {})) == {"a": 5, "b": None, "t": "orders"}
    keep = configured(InsertFieldValue, topic_field="t", replace_null_with_default="false")
    assert value_of(keep, *struct_of(fields, {})) == {"a": None, "b": None, "t": "orders"}


def test_a_null_that_may_not_be_kept_is_an_error() -> None:
    keep = configured(InsertFieldValue, topic_field="t", replace_null_with_default="false")
    with pytest.raises(DataError, match='null used for required field: "b", schema type: STRING'):
        transformed(keep, *struct_of({"b": Schema(Type.STRING, default="d")}, {}))


def test_the_key_form_leaves_the_value_alone() -> None:
    record = transformed(configured(InsertFieldKey, topic_field="t"), {"a": 1}, key={"k": 1})
    assert (record.key, record.value) == ({"k": 1, "t": "orders"}, {"a": 1})


def test_options_that_insert_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match="No field insertion configured"):
        configured(InsertFieldValue)
    with pytest.raises(ConfigError, match="No value specified for static field: s"):
        configured(InsertFieldValue, static_field="s")


@given(st.dictionaries(st.text(min_size=1), st.none() | st.integers() | st.text()))
def test_the_input_is_never_changed_and_all_of_it_is_kept(value: dict[str, Any]) -> None:
    before = dict(value)
    result = value_of(configured(InsertFieldValue, topic_field="t"), value)
    assert value == before
    assert result == {**before, "t": "orders"}


def test_a_struct_with_another_schema_than_the_record_keeps_its_own() -> None:
    value, _ = struct_of({"a": INT64_SCHEMA}, {"a": 1})
    other = Schema.struct({"b": STRING_SCHEMA})
    assert value_of(configured(InsertFieldValue, topic_field="t"), value, other) == {"a": 1, "t": "orders"}
