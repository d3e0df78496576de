from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.errors import ConfigError, DataError
from sluiceway.transforms.extract_field import ExtractFieldKey, ExtractFieldValue
from sluiceway.transforms.util.field_path import SingleFieldPath
from support.schemas import field_schema
from unit.transforms.transforming import configured, plain, struct_of, transformed

INNER = Schema.struct({"x": Schema(Type.INT32, optional=True, default=4), "a.b": STRING_SCHEMA}, optional=True)
OUTER = Schema.struct({"in": INNER, "n": INT64_SCHEMA})


def nested(path: str, **options: str) -> ExtractFieldValue:
    return configured(ExtractFieldValue, field=path, field_syntax_version="v2", **options)


def test_the_field_and_its_schema_replace_the_record_value() -> None:
    record = transformed(configured(ExtractFieldValue, field="n"), *struct_of({"n": INT64_SCHEMA}, {"n": 7}))
    assert (record.value, record.value_schema) == (7, INT64_SCHEMA)


def test_a_missing_field_is_null_in_a_map_and_an_error_in_a_struct() -> None:
    extract = configured(ExtractFieldValue, field="nope")
    assert transformed(extract, {"a": 1}).value is None
    with pytest.raises(ValueError, match="Unknown field: nope"):
        transformed(extract, *struct_of({"n": INT64_SCHEMA}, {"n": 7}))


def test_a_null_passes_with_the_schema_of_the_field() -> None:
    record = transformed(configured(ExtractFieldValue, field="n"), None, OUTER)
    assert (record.value, record.value_schema) == (None, INT64_SCHEMA)
    assert transformed(configured(ExtractFieldValue, field="n"), None).value is None
    with pytest.raises(DataError, match="Cannot look up fields on non-struct type"):
        transformed(configured(ExtractFieldValue, field="n"), None, STRING_SCHEMA)


def test_dots_select_nested_fields_only_in_syntax_v2() -> None:
    value = {"a": {"b": 1}, "a.b": 2}
    assert transformed(configured(ExtractFieldValue, field="a.b"), value).value == 2
    assert transformed(nested("a.b"), value).value == 1
    assert transformed(nested("`a.b`"), value).value == 2


def test_a_path_leads_through_structs() -> None:
    value = Struct(OUTER, {"in": Struct(INNER, {"x": 1, "a.b": "s"}), "n": 1})
    record = transformed(nested("in.`a.b`"), value, OUTER)
    assert (record.value, record.value_schema) == ("s", STRING_SCHEMA)


def test_a_missing_step_of_a_path_gives_null() -> None:
    assert transformed(nested("a.b"), {"a": None}).value is None
    assert transformed(nested("a.b"), {}).value is None
    assert transformed(nested("in.x"), Struct(OUTER, {"n": 1}), OUTER).value is None


def test_only_maps_have_fields() -> None:
    with pytest.raises(DataError, match=r"\[nested field access\], found: java.lang.String"):
        transformed(nested("a.b"), {"a": "text"})
    with pytest.raises(DataError, match=r"\[field extraction\], found: java.lang.Integer"):
        transformed(configured(ExtractFieldValue, field="a"), 5, Schema(Type.INT32))


def test_a_null_field_becomes_its_default_unless_told_otherwise() -> None:
    value = Struct(OUTER, {"in": Struct(INNER, {"a.b": "s"}), "n": 1})
    assert transformed(nested("in.x"), value, OUTER).value == 4
    assert transformed(nested("in.x", replace_null_with_default="false"), value, OUTER).value is None


def test_a_null_at_the_top_becomes_its_default_too() -> None:
    fields = {"a": Schema(Type.STRING, default="d")}
    assert transformed(configured(ExtractFieldValue, field="a"), *struct_of(fields, {})).value == "d"
    keep = configured(ExtractFieldValue, field="a", replace_null_with_default="false")
    assert transformed(keep, *struct_of(fields, {})).value is None


def test_the_default_of_a_struct_on_the_path_always_applies() -> None:
    inner = Schema.struct({"x": Schema(Type.INT32, optional=True)})
    outer = Schema.struct({"in": Schema.struct({"x": Schema(Type.INT32, optional=True)}, default=Struct(inner, {"x": 8}))})
    assert transformed(nested("in.x", replace_null_with_default="false"), Struct(outer), outer).value == 8


def test_the_key_form_leaves_the_value_alone() -> None:
    record = transformed(configured(ExtractFieldKey, field="k"), {"k": 1}, key={"k": 2})
    assert (record.key, record.value) == (2, {"k": 1})


def test_an_unknown_version_of_the_syntax_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value V3 for configuration field\.syntax\.version"):
        configured(ExtractFieldValue, field="a", field_syntax_version="V3")


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", ["a"]),
        ("a.b", ["a", "b"]),
        ("a.", ["a", ""]),
        (".a", ["", "a"]),
        ("..", ["", "", ""]),
        ("`a.b`.c", ["a.b", "c"]),
        ("``", [""]),
        ("a`b", ["a`b"]),
        ("`a`b`", ["a`b"]),
        ("`a.b\\`.c`", ["a.b`.c"]),
        ("`a\\`b`", ["a\\`b"]),
        ("a\\.b", ["a\\", "b"]),
    ],
)
def test_paths_are_parsed_as_in_connect(text: str, steps: list[str]) -> None:
    assert list(SingleFieldPath(text, nested=True).steps) == steps


@pytest.mark.parametrize(("text", "position"), [("`q", 0), ("a.`q", 2), ("`a.b`x", 0), ("`a\\`", 0)])
def test_an_unpaired_backtick_is_refused(text: str, position: int) -> None:
    with pytest.raises(ConfigError, match=f"adding a backslash before backtick at position {position} to escape it"):
        SingleFieldPath(text, nested=True)


def test_an_empty_path_is_refused_when_it_is_used() -> None:
    with pytest.raises(ValueError, match="The field path is empty"):
        transformed(nested(""), {"a": 1})
    assert transformed(nested(""), None).value is None


@pytest.mark.parametrize("extract", [configured(ExtractFieldValue, field="n"), nested("n")])
def test_a_struct_of_another_schema_has_null_where_its_own_has_no_field(extract: ExtractFieldValue) -> None:
    record = transformed(extract, Struct(INNER, {"x": 1}), OUTER)
    assert (record.value, record.value_schema) == (None, field_schema(OUTER, "n"))


NAME = st.text("ab.` ", min_size=1, max_size=4).filter(lambda name: not name.endswith("\\"))


@given(st.lists(NAME, min_size=1, max_size=4), st.integers())
def test_quoted_names_lead_to_any_depth(names: list[str], leaf: int) -> None:
    assume(not any(name.endswith("`") for name in names))
    value: Any = leaf
    schema = INT64_SCHEMA
    for name in reversed(names):
        value = {name: value}
        schema = Schema.struct({name: schema})
    path = ".".join("`" + name.replace("`.", "\\`.") + "`" for name in names)
    assert transformed(nested(path), value).value == leaf
    assert nested(path).resolve(schema).schema == INT64_SCHEMA


def test_a_struct_field_keeps_its_struct() -> None:
    value = Struct(OUTER, {"in": Struct(INNER, {"x": 1, "a.b": "s"}), "n": 1})
    assert plain(transformed(configured(ExtractFieldValue, field="in"), value, OUTER).value) == {"x": 1, "a.b": "s"}
