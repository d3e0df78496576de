"""Changes of a table's columns, and rows that are fitted to them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sluiceway.connectors.delta.types import column_type as delta_type
from sluiceway.connectors.iceberg.types import column_type as iceberg_type
from sluiceway.connectors.iceberg.types import widens
from sluiceway.connectors.tables.evolution import Evolution, column_schema
from sluiceway.errors import DataError


class Store:
    """The part of a store that evolution needs."""

    arrow_type = staticmethod(iceberg_type)
    widens = staticmethod(widens)
    column_name = staticmethod(str)


STORE: Any = Store()


def changes(table: dict[str, Any], rows: dict[str, Any], **more: Any) -> list[str]:
    evolution = Evolution(STORE, case_insensitive=more.get("insensitive", False), id_columns=more.get("ids", ()))
    return [str(change) for change in evolution.changes(schema(table), schema(rows))]


def schema(fields: dict[str, Any]) -> pa.Schema:
    """Return a schema; a name that ends with ``!`` is required."""
    return pa.schema([pa.field(name.rstrip("!"), type_, nullable=not name.endswith("!")) for name, type_ in fields.items()])


LONG, INT, TEXT = pa.int64(), pa.int32(), pa.string()


@pytest.mark.parametrize(
    ("table", "rows", "expected"),
    [
        ({"a": LONG}, {"a": LONG}, []),
        ({"a": LONG}, {"a": INT}, []),
        ({"a": INT}, {"a": LONG}, ["widen a int64"]),
        ({"a": INT}, {"a": pa.int8()}, []),
        ({"a": pa.float32()}, {"a": pa.float64()}, ["widen a double"]),
        ({"a": pa.decimal128(9, 2)}, {"a": pa.decimal128(12, 2)}, ["widen a decimal128(12, 2)"]),
        ({"a": pa.decimal128(9, 2)}, {"a": pa.decimal128(12, 3)}, []),
        ({"a": LONG}, {"a": TEXT}, []),
        ({"a": LONG}, {"a": LONG, "select": pa.int16()}, ["add select int32"]),
        ({"a!": LONG}, {"a": LONG}, ["make optional a int64"]),
        ({"a!": LONG, "b!": TEXT}, {"a!": LONG}, ["make optional b string"]),
        ({"a": pa.struct([("x", INT)])}, {"a": pa.struct([("x", LONG), ("y", TEXT)])}, ["widen a.x int64", "add a.y string"]),
        ({"a": pa.list_(INT)}, {"a": pa.list_(LONG)}, ["widen a.element int64"]),
        ({"a": pa.map_(TEXT, INT)}, {"a": pa.map_(TEXT, LONG)}, ["widen a.value int64"]),
        ({"a": LONG}, {"a": LONG, "b": pa.null()}, []),
    ],
)
def test_changes_that_rows_need(table: dict[str, Any], rows: dict[str, Any], expected: list[str]) -> None:
    assert changes(table, rows) == expected


def test_id_columns_stay_required() -> None:
    assert changes({"id!": LONG}, {"id": LONG}, ids=("id",)) == []


def test_columns_are_found_without_regard_to_case_if_that_is_wanted() -> None:
    assert changes({"Id": LONG}, {"iD": LONG}) == ["add iD int64"]
    assert changes({"Id": LONG}, {"iD": LONG}, insensitive=True) == []


def fit(rows: pa.Table, table: pa.Schema) -> list[dict[str, Any]]:
    return Evolution(STORE, case_insensitive=False, id_columns=()).fit(rows, table).to_pylist()


def test_rows_get_the_tables_columns() -> None:
    rows = pa.table({"b": pa.array([1, None], INT), "a": pa.array([{"x": 1}, None], pa.struct([("x", INT)])), "c": [1, 2]})
    table = schema({"a": pa.struct([("y", TEXT), ("x", LONG)]), "b": TEXT, "d": pa.list_(LONG)})
    assert fit(rows, table) == [{"a": {"y": None, "x": 1}, "b": "1", "d": None}, {"a": None, "b": None, "d": None}]


def test_a_value_that_does_not_fit_is_a_data_error() -> None:
    with pytest.raises(DataError, match="Field a of type string does not fit column a of type int64"):
        fit(pa.table({"a": ["x"]}), schema({"a": LONG}))


def test_a_required_column_without_a_value_is_a_data_error() -> None:
    with pytest.raises(DataError, match="Column a of the table is required, but 1 records have no value"):
        fit(pa.table({"a": pa.array([1, None], LONG)}), schema({"a!": LONG}))


def test_columns_of_a_new_table() -> None:
    rows = schema({"id": LONG, "n!": pa.int8(), "at": pa.timestamp("ms", "UTC"), "none": pa.null(), "s": pa.struct([("x", INT)])})
    found = column_schema(STORE, rows, force_optional=False, required=["id"])
    expected = {"id!": LONG, "n!": INT, "at": pa.timestamp("us", "UTC"), "s": pa.struct([("x", INT)])}
    assert found.equals(schema(expected))
    assert all(field.nullable for field in column_schema(STORE, rows, force_optional=True))


def test_types_of_the_formats() -> None:
    assert iceberg_type(pa.time32("ms")) == pa.time64("us")
    assert delta_type(pa.time32("ms")) == INT
    assert delta_type(pa.int8()) == pa.int8()
    for of in (iceberg_type, delta_type):
        assert of(pa.list_(pa.timestamp("ms", "UTC"))) == pa.list_(pa.timestamp("us", "UTC"))
        with pytest.raises(DataError):
            of(pa.decimal256(50, 2))
