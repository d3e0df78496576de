from __future__ import annotations

from typing import Any

import pytest

from sluiceway.data import INT32_SCHEMA, Schema, Type
from sluiceway.errors import ConfigError, DataError
from sluiceway.transforms.set_schema_metadata import SetSchemaMetadataKey, SetSchemaMetadataValue
from unit.transforms.transforming import configured, plain, struct_of, transformed

FIELDS = {"a": Schema(Type.INT32, optional=True, default=5)}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"schema_name": "n"}, ("n", 3)),
        ({"schema_version": " 7 "}, ("N", 7)),
        ({"schema_name": ""}, ("", 3)),
        ({"schema_name": "n", "schema_version": "-1"}, ("n", -1)),
    ],
)
def test_name_and_version_are_set_and_everything_else_kept(options: dict[str, str], expected: tuple[Any, Any]) -> None:
    struct, schema = struct_of(FIELDS, {"a": 1}, name="N", version=3, doc="d", optional=True, parameters={"p": "q"})
    record = transformed(configured(SetSchemaMetadataValue, **options), struct, schema)
    name, version = expected
    assert record.value_schema == Schema.struct(FIELDS, name=name, version=version, doc="d", optional=True, parameters={"p": "q"})
    assert record.value.schema is record.value_schema
    assert plain(record.value) == {"a": 1}
    assert struct.schema is schema


@pytest.mark.parametrize(("replace", "expected"), [("true", 5), ("false", None)])
def test_nulls_become_defaults_unless_told_otherwise(replace: str, expected: Any) -> None:
    struct, schema = struct_of(FIELDS, {})
    options = {"schema_name": "n", "replace_null_with_default": replace}
    assert plain(transformed(configured(SetSchemaMetadataValue, **options), struct, schema).value) == {"a": expected}


def test_the_schema_of_a_null_is_updated_and_a_schemaless_null_passes() -> None:
    transform = configured(SetSchemaMetadataValue, schema_name="n")
    record = transformed(transform, None, Schema.struct(FIELDS, optional=True))
    assert (record.value, record.value_schema and record.value_schema.name) == (None, "n")
    assert transformed(transform, None).value_schema is None


@pytest.mark.parametrize(
    ("value", "schema", "text"),
    [
        ({"a": 1}, None, r"^Schema required for \[updating schema metadata\]$"),
        (1, INT32_SCHEMA, "^Cannot list fields on non-struct type$"),
        (None, Schema(Type.INT32, optional=True), "^Cannot list fields on non-struct type$"),
    ],
)
def test_only_structs_have_metadata_to_set(value: Any, schema: Schema | None, text: str) -> None:
    with pytest.raises(DataError, match=text):
        transformed(configured(SetSchemaMetadataValue, schema_name="n"), value, schema)


def test_the_key_form_changes_the_key() -> None:
    struct, schema = struct_of(FIELDS, {"a": 1})
    record = transformed(configured(SetSchemaMetadataKey, schema_name="k"), struct, schema, key=struct, key_schema=schema)
    assert (record.key_schema and record.key_schema.name, record.value_schema) == ("k", schema)


@pytest.mark.parametrize(
    ("options", "why"), [({}, "Neither schema name nor version configured"), ({"schema_version": "x"}, "INT")]
)
def test_options_without_name_and_version_are_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        configured(SetSchemaMetadataValue, **options)
