from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, BigInteger, Schema, Struct, Type
from sluiceway.errors import DataError, SchemaBuilderError
from sluiceway.transforms.flatten import FlattenKey, FlattenValue
from support.schemas import field_schema
from unit.transforms.transforming import configured, plain, schema_of, struct_of, transformed, value_of

FLATTEN = configured(FlattenValue)
OPTIONAL_INT = Schema(Type.INT32, optional=True)
INNER = Schema.struct({"x": INT64_SCHEMA, "y": Schema(Type.STRING, optional=True, default="d")}, optional=True, name="I", doc="d")
OUTER = Schema.struct({"a": STRING_SCHEMA, "in": INNER}, name="O")


def test_nested_maps_are_flattened_and_empty_ones_are_dropped() -> None:
    value = {"a": 1, "b": {"c": 2, "d": {"e": None}}, "f": {}, "l": [{"g": 1}]}
    assert value_of(FLATTEN, value) == {"a": 1, "b.c": 2, "b.d.e": None, "l": [{"g": 1}]}


def test_the_delimiter_stands_between_the_names() -> None:
    assert value_of(configured(FlattenValue, delimiter="_"), {"a": {"b": 1}}) == {"a_b": 1}
    assert value_of(configured(FlattenValue, delimiter=""), {"a": {"b": 1}}) == {"ab": 1}


def test_nested_structs_are_flattened_and_fields_of_optional_ones_are_optional() -> None:
    record = transformed(FLATTEN, Struct(OUTER, {"a": "s", "in": Struct(INNER, {"x": 1})}), OUTER)
    assert plain(record.value) == {"a": "s", "in.x": 1, "in.y": "d"}
    assert record.value_schema == Schema.struct(
        {"a": STRING_SCHEMA, "in.x": Schema(Type.INT64, optional=True), "in.y": Schema(Type.STRING, optional=True, default="d")},
        name="O",
    )


def test_the_fields_of_a_null_struct_are_null() -> None:
    assert value_of(FLATTEN, Struct(OUTER, {"a": "s"}), OUTER) == {"a": "s", "in.x": None, "in.y": None}


def test_the_default_of_a_struct_becomes_those_of_its_fields_in_the_schema_only() -> None:
    plain_inner = Schema.struct({"x": OPTIONAL_INT})
    schema = Schema.struct({"in": Schema.struct({"x": OPTIONAL_INT}, optional=True, default=Struct(plain_inner, {"x": 8}))})
    record = transformed(FLATTEN, Struct(schema), schema)
    assert field_schema(schema_of(record), "in.x").default == 8
    assert record.value.get_without_default("in.x") is None


def test_an_optional_value_makes_all_fields_optional_but_not_the_result() -> None:
    record = transformed(FLATTEN, *struct_of({"a": INT64_SCHEMA}, {"a": 1}, optional=True))
    assert record.value_schema == Schema.struct({"a": Schema(Type.INT64, optional=True)})


def test_a_null_in_a_required_field_is_an_error() -> None:
    schema = Schema.struct({"in": Schema.struct({"x": INT64_SCHEMA})})
    with pytest.raises(DataError, match=r'null used for required field: "in\.x", schema type: INT64'):
        transformed(FLATTEN, Struct.of(schema, [Struct(schema.fields[0].schema)]), schema)


def test_maps_inside_structs_are_refused_by_name() -> None:
    schema = Schema.struct({"s": Schema.struct({"m": Schema.map(STRING_SCHEMA, STRING_SCHEMA)}, optional=True)})
    with pytest.raises(DataError, match=r"does not support MAP for record with schemas \(for field s.m\)\.$"):
        transformed(FLATTEN, Struct(schema), schema)


def test_the_error_names_the_first_field_that_cannot_be_flattened() -> None:
    fields = {"a.b": INT64_SCHEMA, "a": Schema.struct({"b": INT64_SCHEMA}), "m": Schema.map(STRING_SCHEMA, STRING_SCHEMA)}
    with pytest.raises(SchemaBuilderError, match=r"field name duplication a\.b"):
        transformed(FLATTEN, *struct_of(fields, {}))


def test_arrays_stay() -> None:
    assert value_of(FLATTEN, *struct_of({"l": Schema.array(STRING_SCHEMA)}, {"l": ["x"]})) == {"l": ["x"]}


def test_of_two_fields_with_the_same_name_a_map_keeps_the_last_of_javas_hash_map_and_a_struct_is_refused() -> None:
    assert value_of(FLATTEN, {"a.b": 1, "a": {"b": 2}}) == value_of(FLATTEN, {"a": {"b": 2}, "a.b": 1})
    with pytest.raises(SchemaBuilderError, match=r"field name duplication a\.b"):
        transformed(FLATTEN, *struct_of({"a.b": INT64_SCHEMA, "a": Schema.struct({"b": INT64_SCHEMA})}, {"a.b": 1}))


@pytest.mark.parametrize(("value", "name"), [(Decimal(1), "BigDecimal"), (BigInteger(1), "BigInteger")])
def test_what_has_no_schema_type_is_refused_by_name(value: Any, name: str) -> None:
    wrong = f"was passed a value of type class java.math.{name} which is not supported by Connect's data API"
    with pytest.raises(DataError, match=wrong):
        transformed(FLATTEN, {"a": {"b": value}})


def test_a_struct_without_a_schema_is_refused_by_field() -> None:
    name = "org.apache.kafka.connect.data.Struct"
    with pytest.raises(DataError, match=rf"does not support class {name} for record without schemas \(for field a.b\)\.$"):
        transformed(FLATTEN, {"a": {"b": Struct(OUTER)}})


def test_keys_have_to_be_text() -> None:
    with pytest.raises(TypeError, match=r"cannot be cast to class java\.lang\.String"):
        transformed(FLATTEN, {1: 2})
    assert value_of(FLATTEN, {None: 1, "a": {None: 2}}) == {None: 1, "a.null": 2}


def test_nulls_pass_and_other_classes_do_not() -> None:
    assert transformed(FLATTEN, None, STRING_SCHEMA).value is None
    with pytest.raises(DataError, match=r"\[flattening\], found: java.lang.String$"):
        transformed(FLATTEN, "text")
    with pytest.raises(DataError, match=r"\[flattening\], found: java.util.ArrayList$"):
        transformed(FLATTEN, ["x"], Schema.array(STRING_SCHEMA))


def test_the_key_form_leaves_the_value_alone() -> None:
    record = transformed(configured(FlattenKey), {"a": {"b": 1}}, key={"a": {"b": 2}})
    assert (record.key, record.value) == ({"a.b": 2}, {"a": {"b": 1}})


NAMES = st.text("abc", min_size=1, max_size=3)
TREES = st.recursive(st.integers() | st.none(), lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)


def _leaves(prefix: str, tree: Any) -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {prefix: tree}
    return {
        name: leaf for key, item in tree.items() for name, leaf in _leaves(f"{prefix}.{key}" if prefix else key, item).items()
    }


@given(st.dictionaries(NAMES, TREES, max_size=4))
def test_every_leaf_is_found_under_its_path(tree: dict[str, Any]) -> None:
    assert value_of(FLATTEN, tree) == _leaves("", tree)


@given(st.dictionaries(NAMES, TREES, max_size=4))
def test_structs_and_maps_flatten_alike(tree: dict[str, Any]) -> None:
    schema = _schema(tree)
    assert value_of(FLATTEN, _struct(schema, tree), schema) == _leaves("", tree)


def _schema(tree: Any) -> Schema:
    if isinstance(tree, dict):
        return Schema.struct({name: _schema(item) for name, item in tree.items()})
    return Schema(Type.INT64, optional=True)


def _struct(schema: Schema, tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    return Struct.of(schema, [_struct(field.schema, tree[field.name]) for field in schema.fields])
