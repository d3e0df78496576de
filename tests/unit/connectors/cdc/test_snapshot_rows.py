"""Markers of a snapshot's rows, and the progress while they are sent."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.ranges import Progress, Range, TableToRead
from sluiceway.connectors.cdc.snapshot_rows import SnapshotRows
from sluiceway.connectors.cdc.tables import Row

_FIRST, _SECOND = Range(0, 0, None, ("5",)), Range(0, 1, ("5",), None)
Batches = list[tuple[Range, "list[Row] | None"]]


def _progress(tables: int) -> Progress:
    return Progress([TableToRead(TableId("public", str(number)), ("k",)) for number in range(tables)])


def _marks(batches: Batches, tables: int, *, first_wins: bool = True) -> list[tuple[int, str, list[Row]]]:
    rows = SnapshotRows(_progress(tables), tables, first_wins=first_wins)
    return [(each.table, each.marker, each.rows) for each in rows.marked(batches) if each.rows]


def _whole(table: int, *rows: str) -> Batches:
    found = Range(table, 0, None, None)
    batches: Batches = [(found, [(row,)]) for row in rows]
    return [*batches, (found, None)]


def test_markers_of_tables_one_after_the_other() -> None:
    assert _marks([*_whole(0, "a", "b", "c"), *_whole(1, "d"), *_whole(2, "e", "f")], 3) == [
        (0, "first", [("a",)]),
        (0, "true", [("b",)]),
        (0, "last_in_data_collection", [("c",)]),
        (1, "last_in_data_collection", [("d",)]),
        (2, "first_in_data_collection", [("e",)]),
        (2, "last", [("f",)]),
    ]


def test_rows_that_are_read_together_are_split_where_the_marker_changes() -> None:
    found = Range(0, 0, None, None)
    assert _marks([(found, [("a",), ("b",), ("c",)]), (found, [("d",), ("e",), ("f",)]), (found, None)], 1) == [
        (0, "first", [("a",)]),
        (0, "true", [("b",), ("c",)]),
        (0, "true", [("d",), ("e",)]),
        (0, "last", [("f",)]),
    ]


@pytest.mark.parametrize(("first_wins", "marker"), [(True, "first"), (False, "last")])
def test_the_only_row_is_the_first_or_the_last_one(first_wins: bool, marker: str) -> None:
    assert _marks(_whole(0, "a"), 1, first_wins=first_wins) == [(0, marker, [("a",)])]


def test_ranges_of_a_table_arrive_in_any_order() -> None:
    batches: Batches = [(_SECOND, [("6",)]), (_FIRST, [("1",)]), (_SECOND, None), (_FIRST, [("2",)]), (_FIRST, None)]
    assert _marks(batches, 1) == [(0, "first", [("6",)]), (0, "true", [("1",)]), (0, "last", [("2",)])]


def test_a_range_is_done_when_all_its_rows_are_sent() -> None:
    progress = _progress(2)
    batches: Batches = [(_FIRST, [("1",), ("2",)]), (_FIRST, None), (_SECOND, [("6",)]), (_SECOND, [("7",)]), (_SECOND, None)]
    states = [
        (each.rows, progress.state()) for each in SnapshotRows(progress, 2, first_wins=True).marked([*batches, *_whole(1, "a")])
    ]
    assert [(rows, bool(state)) for rows, state in states] == [
        ([("1",)], False),
        ([("2",)], False),  # the second row of the first range was held until the next one came
        ([("6",)], True),
        ([("7",)], True),
        ([("a",)], True),
    ]
    assert '"finished":["public.0"]' in states[-1][1]["sluiceway_snapshot"]
