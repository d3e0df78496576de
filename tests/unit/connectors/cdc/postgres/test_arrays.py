"""Arrays of PostgreSQL, by the type of their elements, in Debezium's form or as the elements are."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.connectors.cdc.columns import UNAVAILABLE, Column, FieldType
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.source import SOURCE
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.data import Type

_CONFIG = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.password": "x", "database.dbname": "d"}

# name: kind, base, and two texts of elements
_ELEMENTS: dict[str, tuple[str, str, str, str]] = {
    "int2": ("b", "", "1", "-2"),
    "int4": ("b", "", "1", "-2"),
    "int8": ("b", "", "1", "-2"),
    "oid": ("b", "", "1", "2"),
    "float4": ("b", "", "1.5", "NaN"),
    "float8": ("b", "", "1.5", "NaN"),
    "numeric": ("b", "", "1.50", "-2"),
    "bool": ("b", "", "t", "f"),
    "text": ("b", "", "a", "b c"),
    "varchar": ("b", "", "a", "b"),
    "bpchar": ("b", "", "a", "b"),
    "char": ("b", "", "a", "b"),
    "citext": ("b", "", "a", "B"),
    "bytea": ("b", "", r"\\x00", r"\\xff"),
    "uuid": ("b", "", "6f1c9b1e-3c55-4a3a-9d35-6a3a1a1a1a1a", "6f1c9b1e-3c55-4a3a-9d35-6a3a1a1a1a1b"),
    "json": ("b", "", "{}", "[1]"),
    "jsonb": ("b", "", "{}", "[1]"),
    "inet": ("b", "", "::1", "10.0.0.0/8"),
    "cidr": ("b", "", "::1", "10.0.0.0/8"),
    "macaddr": ("b", "", "08:00:2b:01:02:03", "08:00:2b:01:02:04"),
    "date": ("b", "", "2020-01-01", "infinity"),
    "time": ("b", "", "01:02:03", "24:00:00"),
    "timetz": ("b", "", "01:02:03+02", "00:00:00+00"),
    "timestamp": ("b", "", "2020-01-01 00:00:00", "infinity"),
    "timestamptz": ("b", "", "2020-01-01 00:00:00+00", "infinity"),
    "hstore": ("b", "", r"\"a\"=>\"1\"", ""),
    "ltree": ("b", "", "a.b", "c"),
    "int4range": ("r", "", "[1,2)", "empty"),
    "daterange": ("r", "", "[2020-01-01,2020-01-02)", "empty"),
    "tsvector": ("b", "", "'a' 'b'", "'c'"),
    "mood": ("e", "", "ok", "sad"),
    "line": ("b", "", "{1,-1,0}", "{0,1,0}"),
    "circle": ("b", "", "<(1,2),3>", "<(0,0),1>"),
    "lseg": ("b", "", "[(0,0),(1,1)]", "[(0,0),(2,2)]"),
    "path": ("b", "", "((0,0),(1,1))", "[(0,0),(1,1)]"),
    "box": ("b", "", "(1,1),(0,0)", "(2,2),(0,0)"),
    "polygon": ("b", "", "((0,0),(1,1),(1,0))", "((0,0),(2,2),(1,0))"),
    "point": ("b", "", "(1,2)", "(3,4)"),
    "money": ("b", "", "$1.00", "-$2.50"),
    "interval": ("b", "", "1 day", "00:00:01"),
    "name": ("b", "", "a", "b"),
    "xml": ("b", "", "<a/>", "<b/>"),
    "varbit": ("b", "", "101", "1"),
    "bit": ("b", "", "1", "0"),
    "comp": ("c", "", "(1,q)", "(2,)"),
    "own_range": ("r", "", "[1.5,2)", "empty"),
    "int4multirange": ("m", "", "{[1,2)}", "{}"),
    "tsquery": ("b", "", "'a' & 'b'", "'c'"),
    "pg_lsn": ("b", "", "16/B374D848", "0/0"),
    "d_text": ("d", "text", "a", "b"),
    "d_int4": ("d", "int4", "1", "2"),
    "d_numeric": ("d", "numeric", "1.5", "2"),
    "d_comp": ("d", "comp", "(1,q)", "(2,)"),
    "d_mood": ("d", "mood", "ok", "sad"),
    "d_d_text": ("d", "d_text", "a", "b"),
}
_OIDS = {name: 100 + index for index, name in enumerate(_ELEMENTS)}
_ARRAY = 1000  # is added to the oid of an element
_OMITTED = {"point", "money", "interval", "name", "xml", "varbit"}
_UNKNOWN = {"comp", "own_range", "int4multirange", "tsquery", "pg_lsn", *(name for name in _ELEMENTS if name.startswith("d_"))}
_REQUIRED = {"tsvector", "mood", "line", "circle", "lseg", "path", "box", "polygon"}
_NEVER = {"comp", "int4multirange", "tsquery", "pg_lsn", "d_comp"}
"""Types that have no form but the bytes of their text."""
_KNOWN = sorted(_ELEMENTS.keys() - _OMITTED - _UNKNOWN - {"bit"})


def _query(statement: str) -> list[tuple[Any, ...]]:
    if "pg_enum" in statement:
        return [(_OIDS["mood"], label) for label in ("sad", "ok")]
    elements = [(_OIDS[name], name, kind, _OIDS.get(base, 0), -1, 0, ",") for name, (kind, base, _, _) in _ELEMENTS.items()]
    arrays = [(_OIDS[name] + _ARRAY, f"_{name}", "b", 0, -1, _OIDS[name], ";" if name == "box" else ",") for name in _ELEMENTS]
    return [*elements, *arrays, (2000, "d_array", "d", _OIDS["int4"] + _ARRAY, -1, 0, ",")]


def _registry(**more: str) -> TypeRegistry:
    return TypeRegistry(_query, postgres_config({**_CONFIG, **{k.replace("_", "."): v for k, v in more.items()}}).settings)


def _array(element: str, **more: str) -> FieldType | None:
    return _registry(**more).resolve(_OIDS[element] + _ARRAY, -1)[1]


def _scalar(element: str, **more: str) -> FieldType:
    found = _registry(**more).resolve(_OIDS[element], -1)[1]
    assert found is not None
    return found


def _text(element: str, *values: str | None) -> str:
    delimiter = ";" if element == "box" else ","
    return "{" + delimiter.join("NULL" if value is None else f'"{value}"' for value in values) + "}"


def _plain(value: Any) -> Any:
    return value.values_ if hasattr(value, "values_") else value


@pytest.mark.parametrize("element", _KNOWN)
def test_elements_are_those_of_snapshots(element: str) -> None:
    array, scalar, (first, second) = _array(element), _scalar(element), _ELEMENTS[element][2:]
    assert array is not None
    assert array.schema.type is Type.ARRAY
    items = array.schema.value_schema
    assert items is not None
    assert items == scalar.schema.replace(optional=element not in _REQUIRED)
    convert = scalar.snapshot or scalar.convert
    plain = [value.replace(r"\\", "\\").replace(r"\"", '"') for value in (first, second)]
    found = array.convert(_text(element, first, second))
    assert [str(_plain(each)) for each in found] == [str(_plain(convert(value))) for value in plain]
    assert array.convert("{}") == []


@pytest.mark.parametrize("element", _KNOWN)
def test_a_null_among_required_elements_makes_the_array_null(element: str) -> None:
    array = _array(element)
    assert array is not None
    found = array.convert(_text(element, None, _ELEMENTS[element][2]))
    assert found is None if element in _REQUIRED else found[0] is None


@pytest.mark.parametrize("element", _KNOWN)
def test_inner_arrays_are_null(element: str) -> None:
    array = _array(element)
    assert array is not None
    inner = _text(element, _ELEMENTS[element][2])
    text = "{" + (";" if element == "box" else ",").join((inner, inner)) + "}"
    assert array.convert(text) == (None if element in _REQUIRED else [None, None])


@pytest.mark.parametrize("element", sorted(_OMITTED))
@pytest.mark.parametrize("unknown", ["false", "true"])
def test_debezium_leaves_out_arrays_of_some_types_always(element: str, unknown: str) -> None:
    assert _array(element, include_unknown_datatypes=unknown) is None


@pytest.mark.parametrize("element", sorted(_UNKNOWN))
def test_arrays_of_unknown_types_are_left_out_or_have_the_bytes_of_their_elements(element: str) -> None:
    assert _array(element) is None
    array = _array(element, include_unknown_datatypes="true")
    assert array is not None
    items = array.schema.value_schema
    assert items is not None
    assert (items.type, items.optional) == (Type.BYTES, False)
    first, second = _ELEMENTS[element][2:]
    assert array.convert(_text(element, first, second)) == [first.encode(), second.encode()]
    assert array.convert(_text(element, first, None)) is None
    as_text = _array(element, include_unknown_datatypes="true", binary_handling_mode="hex")
    assert as_text is not None
    assert as_text.convert(_text(element, first)) == [first.encode().hex()]


@pytest.mark.parametrize("element", sorted(_ELEMENTS.keys() - _NEVER))
def test_correct_arrays_have_all_types_and_optional_elements(element: str) -> None:
    array = _array(element, sluiceway_cdc_compat="correct")
    scalar = _scalar(element, sluiceway_cdc_compat="correct")
    assert array is not None
    assert array.schema.value_schema == scalar.schema.replace(optional=True)
    first = _ELEMENTS[element][2]
    found = array.convert(_text(element, first, None))
    plain = first.replace(r"\\", "\\").replace(r"\"", '"')
    assert str(_plain(found[0])) == str(_plain(scalar.convert(plain)))
    assert found[1] is None


def test_bits_are_a_single_value_that_is_null() -> None:
    array = _array("bit")
    assert array is not None
    assert array.schema.type is Type.BOOLEAN
    assert array.convert("{1,0}") is None


def test_a_domain_over_an_array_is_the_array() -> None:
    field = _registry().resolve(2000, -1)[1]
    assert field is not None
    assert field.convert("{1,NULL}") == [1, None]


_UNAVAILABLE: dict[str, Any] = {
    **{name: ["éa"] for name in ("text", "varchar", "bpchar", "json", "jsonb")},
    **{name: [-61, -87, 97] for name in ("int4", "int8", "date")},  # Java's bytes have signs
    "bytea": ["éa".encode()],
}


@pytest.mark.parametrize("element", _KNOWN)
@pytest.mark.parametrize("optional", [True, False])
def test_a_toasted_array_has_the_placeholder_or_is_null(element: str, optional: bool) -> None:
    config = postgres_config({**_CONFIG, "unavailable.value.placeholder": "éa"})
    registry = TypeRegistry(_query, config.settings)
    field = registry.resolve(_OIDS[element] + _ARRAY, -1)[1]
    table = config.common.schemas(SOURCE).build(TableId("s", "t"), [Column(name="a", field=field, optional=optional)], [])
    value = table.value([UNAVAILABLE]).values_[0]
    if element == "uuid":
        assert value[0][14] == "3"  # the version of a name's UUID
    else:
        assert value == _UNAVAILABLE.get(element, None if optional else [])


@pytest.mark.parametrize(
    ("element", "more", "value"),
    [
        ("text", {}, "~"),
        ("json", {}, "~"),
        ("xml", {}, "~"),
        ("citext", {}, "~"),
        ("tsvector", {}, "~"),
        ("bytea", {}, b"~"),
        ("bytea", {"binary_handling_mode": "hex"}, "~"),
        ("bytea", {"binary_handling_mode": "base64"}, "fg=="),
        ("hstore", {}, '{"~":"~"}'),
        ("hstore", {"hstore_handling_mode": "map"}, {"~": "~"}),
        ("numeric", {}, None),
        ("varbit", {}, None),
        ("path", {}, None),
        ("comp", {"include_unknown_datatypes": "true"}, b"~"),
        ("date", {"sluiceway_cdc_compat": "correct"}, None),
    ],
    ids=str,
)
def test_a_toasted_value_has_the_placeholder_in_its_type(element: str, more: dict[str, str], value: Any) -> None:
    assert _scalar(element, unavailable_value_placeholder="~", **more).unavailable == value
