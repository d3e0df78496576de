from __future__ import annotations

from typing import Any

import pytest

from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Header, Schema, Struct, Type
from sluiceway.errors import ConfigError, DataError, SchemaBuilderError
from sluiceway.transforms.header_from import HeaderFromKey, HeaderFromValue
from unit.transforms.transforming import configured, plain, struct_of, transformed

HEADERS = (Header("h1", 1), Header("h2", 2), Header("h1", 3), Header("H1", 4))


DEFAULTED = {"a": Schema(Type.INT32, optional=True, default=5), "b": Schema(Type.STRING, default="d"), "c": INT32_SCHEMA}


def test_fields_are_copied_into_headers_and_the_value_stays_as_it_is() -> None:
    struct, schema = struct_of(DEFAULTED, {"c": 7}, name="N", optional=True)
    record = transformed(
        configured(HeaderFromValue, fields="c,b,c", headers="x,y,z", operation="copy"), struct, schema, headers=HEADERS
    )
    assert record.headers == (
        *HEADERS,
        Header("x", 7, INT32_SCHEMA),
        Header("y", "d", DEFAULTED["b"]),
        Header("z", 7, INT32_SCHEMA),
    )
    assert record.value is struct
    assert record.value_schema is schema


def test_a_missing_field_fails_after_the_rest_of_the_struct_is_built() -> None:
    struct, schema = struct_of({"": INT32_SCHEMA}, {"": 1})
    with pytest.raises(SchemaBuilderError, match=r"^fieldName cannot be null\.$"):
        transformed(configured(HeaderFromValue, fields="q", headers="h", operation="move"), struct, schema)
    with pytest.raises(TypeError, match="HeaderFrom: field q does not exist"):
        transformed(configured(HeaderFromValue, fields="q", headers="h", operation="copy"), struct, schema)


def test_a_struct_in_a_map_becomes_a_header_with_its_schema() -> None:
    struct, schema = struct_of({"x": INT32_SCHEMA}, {"x": 1})
    record = transformed(configured(HeaderFromValue, fields="s", headers="h", operation="copy"), {"s": struct})
    assert record.headers == (Header("h", struct, schema),)


def test_fields_are_moved_to_headers_and_nulls_in_the_rest_become_defaults() -> None:
    struct, schema = struct_of(DEFAULTED, {"c": 7}, name="N", version=2, optional=True)
    record = transformed(configured(HeaderFromValue, fields="c", headers="x", operation="move"), struct, schema)
    assert record.headers == (Header("x", 7, INT32_SCHEMA),)
    assert record.value_schema == Schema.struct({"a": DEFAULTED["a"], "b": DEFAULTED["b"]}, name="N", version=2)
    assert plain(record.value) == {"a": 5, "b": "d"}


def test_nulls_stay_if_replace_null_with_default_is_false() -> None:
    struct, schema = struct_of(DEFAULTED, {"c": 7})
    options = {"headers": "x", "replace_null_with_default": "false"}
    assert (
        transformed(configured(HeaderFromValue, fields="a", operation="copy", **options), struct, schema).headers[0].value is None
    )
    with pytest.raises(DataError, match=r"^A null value requires an optional schema but was Schema\{STRING\}$"):
        transformed(configured(HeaderFromValue, fields="b", operation="copy", **options), struct, schema)


@pytest.mark.parametrize(("operation", "left"), [("copy", {"a": 1, "b": 2}), ("move", {"b": 2})])
def test_schemaless_fields_go_into_headers_without_schema(operation: str, left: dict[str, Any]) -> None:
    value = {"a": 1, "b": 2}
    record = transformed(configured(HeaderFromValue, fields="a,nope", headers="x,y", operation=operation), value)
    assert (record.headers, record.value) == ((Header("x", 1), Header("y", None)), left)
    assert value == {"a": 1, "b": 2}, "the task's own value was changed"


def test_fields_of_the_key_come_from_the_key() -> None:
    transform = configured(HeaderFromKey, fields="k", headers="x", operation="move")
    record = transformed(transform, "v", key={"k": 1, "l": 2})
    assert (record.headers, record.key, record.value) == ((Header("x", 1),), {"l": 2}, "v")


@pytest.mark.parametrize(
    ("value", "schema", "error", "text"),
    [
        (12, None, DataError, r"Only Map objects supported in absence of schema for \[header copy\], found: java.lang.Long"),
        (None, None, DataError, r"Only Map objects supported in absence of schema for \[header copy\], found: null"),
        (3, INT32_SCHEMA, DataError, r"Only Struct objects supported for \[header copy\], found: java.lang.Integer"),
        (*struct_of({"b": INT32_SCHEMA}, {"b": 1}), TypeError, "HeaderFrom: field a does not exist"),
    ],
)
def test_values_without_the_fields_are_refused(value: Any, schema: Schema | None, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        transformed(configured(HeaderFromValue, fields="a", headers="x", operation="copy"), value, schema)


def test_a_struct_is_read_by_its_own_schema() -> None:
    transform = configured(HeaderFromValue, fields="a", headers="x", operation="move")
    for fields in ({"a": INT32_SCHEMA, "b": INT32_SCHEMA}, {"b": STRING_SCHEMA, "a": INT32_SCHEMA}):
        given = {"a": 1, "b": "s" if fields["b"] is STRING_SCHEMA else 2}
        struct = Struct(Schema.struct(fields), given)
        record = transformed(transform, struct, struct.schema)
        assert (record.headers[0].value, plain(record.value)) == (1, {"b": given["b"]})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"fields": "a", "headers": "x,y", "operation": "copy"}, "'fields' config must have the same number of elements"),
        ({"fields": "", "headers": "", "operation": "copy"}, r"Invalid value \[\] for configuration fields: Empty list"),
        (
            {"fields": "a", "headers": "x", "operation": "MOVE"},
            "Invalid value MOVE for configuration operation: String must be one of",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        configured(HeaderFromValue, **options)
