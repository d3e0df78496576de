"""Selecting tables."""

from __future__ import annotations

import pytest

from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.tables import TableSelection


def test_tables_that_sinks_create_are_left_out_unless_a_list_names_them() -> None:
    dialect, tables = dialect_of("postgresql"), [TableId(None, "a", "x"), TableId(None, "a", "SLUICEWAY_offsets")]
    chosen = [
        TableSelection(),
        TableSelection(exclude=("y",)),
        TableSelection(include=(".*",)),
        TableSelection(whitelist=('"SLUICEWAY_offsets"',)),
    ]
    assert [len(each.select(tables, dialect)) for each in chosen] == [1, 1, 2, 1]


@pytest.mark.parametrize(
    ("selection", "missing"),
    [
        (TableSelection(), []),
        (TableSelection(whitelist=("x", "b.x", "y", "c.x")), ["y", "c.x"]),
        (TableSelection(include=(r"d\.b\..*", "x", "xx", r"e\..*")), ["xx", r"e\..*"]),
        (TableSelection(blacklist=("nothing",), exclude=("nothing",)), []),
        (TableSelection(whitelist=("x",), blacklist=("x",)), []),
    ],
)
def test_names_and_expressions_that_fit_no_table_are_found(selection: TableSelection, missing: list[str]) -> None:
    tables = [TableId("d", "a", "x"), TableId("d", "b", "x"), TableId("d", "b", "y.z")]
    assert selection.missing(tables, dialect_of("postgresql")) == missing


def test_tables_are_selected_by_names_patterns_and_expressions() -> None:
    dialect, tables = dialect_of("postgresql"), [TableId("d", "a", "x"), TableId("d", "b", "x"), TableId("d", "b", "y.z")]
    chosen = [
        TableSelection(whitelist=("b.x",)),
        TableSelection(blacklist=("x",)),
        TableSelection(schema="b%"),
        TableSelection(include=(r"d\.b\..*",), exclude=(r".*z",)),
        TableSelection(whitelist=('b."y.z"',)),
    ]
    assert [[str(table) for table in each.select(tables, dialect)] for each in chosen] == [
        ["d.b.x"],
        ["d.b.y.z"],
        ["d.b.x", "d.b.y.z"],
        ["d.b.x"],
        ["d.b.y.z"],
    ]
