"""The rows that a commit changed, from the rows before and after it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sluiceway.connectors.tables.source.net_changes import CHANGE, net_changes

TYPES: list[Any] = [("a", pa.int64()), ("b", pa.string()), ("f", pa.float64()), ("l", pa.list_(pa.int32()))]
COLUMNS = pa.schema(TYPES)


def table(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in rows], schema=COLUMNS)


BEFORE = table((1, "x", 0.5, [1]), (2, None, float("nan"), None), (3, "z", None, [3]), (4, "w", 1.0, []))


def found(after: pa.Table, ids: list[str], *, images: bool) -> list[tuple[Any, ...]]:
    rows = net_changes(BEFORE, after, ids, images=images).to_pylist()
    return [(row[CHANGE], row["a"], row["b"]) for row in rows]


@pytest.mark.parametrize("images", [True, False])
def test_rows_that_are_the_same_are_left_out(images: bool) -> None:
    assert found(BEFORE.take(pa.array([3, 1, 0, 2])), ["a"], images=images) == []


def test_changes_of_every_kind() -> None:
    after = table((5, "new", None, None), (1, "x", 0.5, [1, 2]), (2, "now", float("nan"), None), (4, "w", None, []))
    assert found(after, ["a"], images=False) == [
        ("delete", 3, "z"),
        ("update_postimage", 1, "x"),
        ("update_postimage", 2, "now"),
        ("update_postimage", 4, "w"),
        ("insert", 5, "new"),
    ]
    assert found(after, ["a"], images=True)[1:5] == [
        ("update_preimage", 1, "x"),
        ("update_postimage", 1, "x"),
        ("update_preimage", 2, None),
        ("update_postimage", 2, "now"),
    ]


def test_rows_are_identified_by_several_columns() -> None:
    after = table((1, "y", 0.5, [1]), (3, "z", None, [4]))
    assert found(after, ["a", "b"], images=False) == [
        ("delete", 1, "x"),
        ("delete", 2, None),
        ("delete", 4, "w"),
        ("update_postimage", 3, "z"),
        ("insert", 1, "y"),
    ]


def test_all_rows_may_be_new_or_deleted() -> None:
    assert [row[0] for row in found(BEFORE.slice(0, 0), ["a"], images=True)] == ["delete"] * 4
    assert net_changes(BEFORE.slice(0, 0), BEFORE, ["a"], images=True).column(CHANGE).to_pylist() == ["insert"] * 4
