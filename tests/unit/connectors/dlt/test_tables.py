"""The types of columns: what is in a row is in its record, whatever came before it."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway.columns.arrays import to_values
from sluiceway.columns.arrow_schema import arrow_fields
from sluiceway.connectors.dlt import kinds
from sluiceway.connectors.dlt.tables import Table
from sluiceway.data import Type
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.errors import ConnectError, DataError

UTC = dt.timezone.utc
AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


def table(stored: dict[str, Any] | None = None, *, structs: bool = False, micros: bool = True) -> Table:
    return Table("t", stored or {}, structs=structs, micros=micros)


def rows_of(made: Table, *pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all rows as their records have them, without null fields."""
    return [
        {name: value for name, value in row.items() if value is not None}
        for page in pages
        for row in made.of_rows(page).to_pylist()
    ]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "bool"),
        (1, "bigint"),
        (2**63, "wei"),
        (10**80, "text"),
        (0.5, "double"),
        ("a", "text"),
        (b"a", "binary"),
        (AT, "timestamp"),
        (AT.date(), "date"),
        (AT.time(), "time"),
        (decimal.Decimal("1.5"), "decimal(38,9)"),
        (decimal.Decimal("1e-20"), "text"),
        (decimal.Decimal("NaN"), "text"),
        ({"a": 1}, "json"),
        ([1], "json"),
        ({}, "json"),
    ],
)
def test_a_new_column_has_the_type_of_its_values(value: Any, kind: str) -> None:
    made = table()
    made.of_rows([{"a": None}, {"a": value}])
    assert made.columns == {"a": kind}


def test_schemas_are_connects() -> None:
    made = table(micros=False)
    made.of_rows([{"d": AT.date(), "c": AT.time(), "t": AT, "n": decimal.Decimal(1), "j": [1]}])
    assert [field.schema.name for field in made.schema.fields] == [DATE, TIME, TIMESTAMP, DECIMAL, "io.debezium.data.Json"]
    made = table()
    made.of_rows([{"c": AT.time(), "t": AT}])
    names = ["io.debezium.time.MicroTime", "io.debezium.time.MicroTimestamp"]
    assert [(field.schema.name, field.schema.type) for field in made.schema.fields] == [(name, Type.INT64) for name in names]


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (1, "x", {"a__v_text": "x"}),
        (1, "7", {"a": 7}),
        (1, 2.0, {"a": 2}),
        (1, 2.5, {"a__v_double": 2.5}),
        (1, 2**70, {"a__v_wei": 2**70}),
        (1, True, {"a__v_bool": True}),
        (0.5, 1, {"a": 1.0}),
        (0.5, 2**53 + 1, {"a__v_bigint": 2**53 + 1}),
        (0.5, "1.5", {"a": 1.5}),
        ("x", 1, {"a": "1"}),
        ("x", AT, {"a": AT.isoformat()}),
        ("x", [1], {"a": "[1]"}),
        ("x", b"ab", {"a": "YWI="}),
        (True, 1, {"a__v_bigint": 1}),
        (b"x", "y", {"a__v_text": "y"}),
        (AT, "2026-01-02T03:04:05.678901Z", {"a": AT}),
        (AT, AT.replace(tzinfo=None), {"a": AT}),
        (AT, AT.astimezone(dt.timezone(dt.timedelta(hours=5))), {"a": AT}),
        (AT, "soon", {"a__v_text": "soon"}),
        (AT.date(), AT, {"a__v_timestamp": AT}),
        (AT.date(), "2026-01-02", {"a": dt.date(2026, 1, 2)}),
        (AT.time(), "03:04:05", {"a": dt.time(3, 4, 5)}),
        (decimal.Decimal("1.5"), "2.25", {"a": decimal.Decimal("2.25")}),
        (decimal.Decimal("1.5"), 1, {"a": decimal.Decimal(1)}),
        (decimal.Decimal("1.5"), decimal.Decimal("1e-12"), {"a__v_text": "1E-12"}),
        ([1], "x", {"a": '"x"'}),
        (1, [1], {"a__v_json": "[1]"}),
    ],
)
def test_a_value_of_another_type_is_not_lost(first: Any, then: Any, expected: dict[str, Any]) -> None:
    made = table()
    made.of_rows([{"a": first}])
    [found] = made.of_rows([{"a": then}]).to_pylist()
    shown = {name: value for name, value in found.items() if value is not None}
    wanted = {name: micros(value) if isinstance(value, (dt.datetime, dt.time)) else value for name, value in expected.items()}
    assert shown == wanted


def micros(value: Any) -> int:
    if isinstance(value, dt.time):
        value = dt.datetime.combine(dt.date(1970, 1, 1), value, UTC)
    return int((value - dt.datetime(1970, 1, 1, tzinfo=UTC)) / dt.timedelta(microseconds=1))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**80), 2**80),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.datetimes(timezones=st.just(UTC)),
    st.dates(),
    st.times(),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**30), max_value=10**30),
    st.lists(st.integers() | st.text(st.characters(exclude_categories=["Cs"])), max_size=2),
    st.dictionaries(st.sampled_from("xyz"), st.integers(-5, 5) | st.none() | st.lists(st.integers(0, 3), max_size=2), max_size=2),
)
PAGES = st.lists(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), VALUES, min_size=1), min_size=1, max_size=4), max_size=3)


@settings(deadline=None)
@given(PAGES, st.booleans(), st.booleans())
def test_every_value_is_in_its_row_once_and_a_restart_gives_the_same_schema(
    pages: list[list[dict[str, Any]]], structs: bool, micros: bool
) -> None:
    made = table(structs=structs, micros=micros)
    for page in pages:
        if not any(value is not None for row in page for value in row.values()) and not made.columns:
            continue
        try:
            batch = made.of_rows(page)
        except DataError:
            assert not made.columns  # nothing but empty lists and objects so far
            continue
        batch.validate(full=True)
        assert batch.schema == pa.schema(arrow_fields(made.schema))
        values = to_values(made.schema, batch.to_struct_array())
        assert len(values) == len(page)
        for row, value in zip(page, batch.to_pylist(), strict=True):
            for name in row:
                there = [each for column, each in value.items() if column.partition("__v_")[0] == name and each is not None]
                empty = structs and isinstance(row[name], (list, dict))
                assert len(there) == (row[name] is not None) or (empty and len(there) <= 1)
    again = table(json.loads(json.dumps(made.stored())), structs=structs, micros=micros)
    assert again.schema == made.schema


def test_hints_type_columns_before_there_is_a_value() -> None:
    made = table()
    made.declare(
        {
            "at": {"data_type": "timestamp"},
            "price": {"data_type": "decimal", "precision": 10, "scale": 2},
            "id": {"data_type": "bigint", "primary_key": True},
            "untyped": {"nullable": True},
        }
    )
    assert made.columns == {"at": "timestamp", "price": "decimal(10,2)", "id": "bigint"}
    assert made.keys == ["id"]
    [row] = made.of_rows([{"at": "2026-01-01T00:00:00Z", "price": 1.5, "id": 1}]).to_pylist()
    assert row == {"at": 1767225600000000, "price": decimal.Decimal("1.50"), "id": 1}


def test_a_key_that_no_row_has_is_an_error() -> None:
    made = table()
    made.declare({"nr": {"primary_key": True}})
    with pytest.raises(DataError, match="no column nr, which is in its primary key"):
        made.of_rows([{"id": 1}])


@pytest.mark.parametrize("stored", [{"a": "int"}, {"a": {"type": "x"}}, {"a": 1}, {"a": None}])
def test_a_stored_type_that_is_none_is_an_error(stored: dict[str, Any]) -> None:
    with pytest.raises(ConnectError, match="column a of table t"):
        table(stored)


ARROW: dict[str, tuple[Any, str]] = {
    "i8": (pa.array([1], pa.int8()), "bigint"),
    "u32": (pa.array([1], pa.uint32()), "bigint"),
    "u64": (pa.array([2**64 - 1], pa.uint64()), "wei"),
    "f32": (pa.array([0.5], pa.float32()), "double"),
    "large": (pa.array(["a"], pa.large_string()), "text"),
    "dictionary": (pa.array(["a"]).dictionary_encode(), "text"),
    "fixed": (pa.array([b"ab"], pa.binary(2)), "binary"),
    "money": (pa.array([decimal.Decimal("1.25")], pa.decimal128(12, 2)), "decimal(12,2)"),
    "day": (pa.array([AT.date()], pa.date64()), "date"),
    "clock": (pa.array([AT.time()], pa.time64("ns")), "time"),
    "naive": (pa.array([AT.replace(tzinfo=None)], pa.timestamp("us")), "timestamp"),
    "nanos": (pa.array([1767225600000000123], pa.timestamp("ns", "UTC")), "timestamp"),
    "seconds": (pa.array([1767225600], pa.timestamp("s", "Europe/Berlin")), "timestamp"),
    "nested": (pa.array([[{"x": 1}]]), "json"),
    "map": (pa.array([[("k", 1)]], pa.map_(pa.utf8(), pa.int64())), "json"),
}


def test_arrow_columns_are_dlts_types() -> None:
    made = table()
    [row] = made.of_arrow(pa.table({**{name: each for name, (each, _) in ARROW.items()}, "null": pa.nulls(1)})).to_pylist()
    assert made.columns == {name: kind for name, (_, kind) in ARROW.items()}
    assert row["u64"] == 2**64 - 1
    assert row["naive"] == micros(AT)
    assert row["nanos"] == 1767225600000000
    assert (row["nested"], row["map"], row["large"]) == ('[{"x":1}]', '{"k":1}', "a")


def test_arrow_columns_of_other_types_than_before_are_not_lost() -> None:
    made = table()
    made.of_rows([{"a": 1, "b": 0.5, "c": decimal.Decimal("1.5"), "d": "x", "e": 1}])
    page = pa.table({"a": [0.5], "b": [2], "c": [7], "d": [1], "e": pa.array(["9"])})
    [row] = made.of_arrow(page).to_pylist()
    assert {name: value for name, value in row.items() if value is not None} == {
        "a__v_double": 0.5,
        "b": 2.0,
        "c": decimal.Decimal(7),
        "d": "1",
        "e": 9,
    }


def test_arrow_columns_without_a_counterpart_are_an_error() -> None:
    with pytest.raises(DataError, match="Column a has the Arrow type duration"):
        table().of_arrow(pa.table({"a": pa.array([1], pa.duration("s"))}))


def test_structs_grow() -> None:
    made = table(structs=True)
    pages: list[list[dict[str, Any]]] = [
        [{"a": {}, "b": []}, {"c": 1}],
        [{"a": {"x": 1}, "b": [{"y": "s"}]}],
        [{"a": {"x": 2.5, "z": [1]}, "b": [{"w": True}, None]}],
        [{"a": "text"}],
    ]
    found = rows_of(made, *pages)
    assert found == [
        {},
        {"c": 1},
        {"a": {"x": 1}, "b": [{"y": "s"}]},
        {"a": {"x": 2.5, "z": [1]}, "b": [{"y": None, "w": True}, None]},
        {"a__v_text": "text"},
    ]


def test_arrow_structs_stay() -> None:
    made = table(structs=True)
    array = pa.array([{"x": [1]}], pa.struct([("x", pa.list_(pa.int32()))]))
    assert made.of_arrow(pa.table({"a": array})).to_pylist() == [{"a": {"x": [1]}}]
    assert made.of_rows([{"a": {"x": [2**40]}}]).to_pylist() == [{"a": {"x": [2**40]}}]


def test_kinds_of_hints() -> None:
    assert kinds.kind_of_hint("decimal", None, None) == "decimal(38,9)"
    assert kinds.kind_of_hint("decimal", 5, 10) == "decimal(10,10)"
    assert kinds.kind_of_hint("None", None, None) is None
