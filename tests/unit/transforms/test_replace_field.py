from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.logical import date_schema, timestamp_schema
from sluiceway.errors import ConfigError, DataError, SchemaBuilderError
from sluiceway.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue
from unit.transforms.transforming import configured, schema_of, struct_of, transformed, value_of

FIELDS = {"a": INT64_SCHEMA, "b": STRING_SCHEMA, "c": Schema(Type.STRING, optional=True)}
VALUES = {"a": 1, "b": "x", "c": "y"}
NAMES = st.sampled_from(["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"exclude": "a"}, {"b": "x", "c": "y"}),
        ({"include": "b,a"}, {"a": 1, "b": "x"}),
        ({"include": "a,b", "exclude": "b"}, {"a": 1}),
        ({"include": "nope"}, {}),
        ({"renames": "a:z"}, {"z": 1, "b": "x", "c": "y"}),
        ({"renames": "b:c,c:b"}, {"a": 1, "c": "x", "b": "y"}),
        ({"renames": "nope:z"}, VALUES),
        ({"renames": " a : z "}, VALUES),
        ({"exclude": "a", "renames": "b:a"}, {"a": "x", "c": "y"}),
        ({"include": "b", "renames": "b:a"}, {"a": "x"}),
        ({"whitelist": "a", "blacklist": "b"}, VALUES),
    ],
)
def test_maps_and_structs_lose_and_rename_the_same_fields(options: dict[str, str], expected: dict[str, object]) -> None:
    replace = configured(ReplaceFieldValue, **options)
    assert value_of(replace, dict(VALUES)) == expected
    assert value_of(replace, *struct_of(FIELDS, VALUES)) == expected


def test_the_fields_of_a_struct_stay_in_their_order() -> None:
    schema = schema_of(transformed(configured(ReplaceFieldValue, renames="a:z", exclude="b"), *struct_of(FIELDS, VALUES)))
    assert [(field.name, field.schema) for field in schema.fields] == [("z", INT64_SCHEMA), ("c", FIELDS["c"])]


def test_two_fields_of_one_name_are_an_error_in_a_struct() -> None:
    with pytest.raises(SchemaBuilderError, match="field name duplication b"):
        transformed(configured(ReplaceFieldValue, renames="a:b"), *struct_of(FIELDS, VALUES))


def test_of_two_fields_of_one_name_a_map_keeps_the_one_that_java_puts_last() -> None:
    assert value_of(configured(ReplaceFieldValue, renames="a:b"), {"b": 2, "a": 1}) == {"b": 2}
    assert value_of(configured(ReplaceFieldValue, renames="c:b"), {"c": 3, "b": 2}) == {"b": 3}
    assert value_of(configured(ReplaceFieldValue, renames="name:id"), {"id": 1, "name": 2}) == {"id": 1}


def test_a_new_name_that_only_an_absent_field_would_take_is_an_error() -> None:
    replace = configured(ReplaceFieldValue, renames="a:z,q:z")
    with pytest.raises(DataError, match="q is not a valid field name"):
        transformed(replace, *struct_of(FIELDS, VALUES))


def test_a_value_that_crossing_renames_put_into_a_field_of_another_type_is_refused() -> None:
    replace = configured(ReplaceFieldValue, exclude="a", renames="a:b")
    with pytest.raises(DataError, match=r'schema with type STRING: class java\.lang\.Long for field: "b"$'):
        transformed(replace, *struct_of(FIELDS, VALUES))
    inner = Schema.struct({"x": INT64_SCHEMA})
    with pytest.raises(DataError, match="Struct schemas do not match"):
        transformed(replace, *struct_of({"a": inner, "b": Schema.struct({}, optional=True)}, {"a": Struct(inner, {"x": 1})}))
    fields = {"a": date_schema(), "b": timestamp_schema()}
    assert value_of(replace, *struct_of(fields, {"a": dt.date(2022, 1, 1)})) == {"b": dt.date(2022, 1, 1)}


def test_nulls_pass_even_with_a_schema_and_other_classes_do_not() -> None:
    replace = configured(ReplaceFieldValue, exclude="a")
    assert transformed(replace, None, Schema(Type.INT32, optional=True)).value is None
    with pytest.raises(DataError, match=r"Only Map objects .* \[field replacement\], found: java.lang.String$"):
        transformed(replace, "text")


def test_nulls_become_defaults_under_the_new_name() -> None:
    fields = {"a": Schema(Type.STRING, default="d")}
    assert value_of(configured(ReplaceFieldValue, renames="a:z"), *struct_of(fields, {})) == {"z": "d"}
    with pytest.raises(DataError, match='required field: "z"'):
        transformed(configured(ReplaceFieldValue, renames="a:z", replace_null_with_default="false"), *struct_of(fields, {}))


@pytest.mark.parametrize("renames", ["a", "a:", "a:b:c", "a:b,", ":"])
def test_renames_are_pairs(renames: str) -> None:
    with pytest.raises(ConfigError, match="Invalid rename mapping"):
        configured(ReplaceFieldValue, renames=renames)


@pytest.mark.parametrize("option", ["exclude", "include"])
def test_no_field_is_named_twice(option: str) -> None:
    with pytest.raises(ConfigError, match=f"Configuration '{option}' values must not be duplicated"):
        configured(ReplaceFieldValue, **{option: "a,a"})


def test_the_key_form_leaves_the_value_alone() -> None:
    record = transformed(configured(ReplaceFieldKey, exclude="a"), {"a": 1}, key={"a": 1, "b": 2})
    assert (record.key, record.value) == ({"b": 2}, {"a": 1})


@given(st.dictionaries(NAMES, st.integers(), max_size=4), st.sets(NAMES), st.sets(NAMES))
def test_include_and_exclude_select_the_fields(value: dict[str, int], include: set[str], exclude: set[str]) -> None:
    replace = configured(ReplaceFieldValue, include=",".join(sorted(include)), exclude=",".join(sorted(exclude)))
    before = dict(value)
    expected = {name: item for name, item in value.items() if name not in exclude and (not include or name in include)}
    assert value_of(replace, value) == expected
    assert value == before
