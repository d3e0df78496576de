"""Ranges of keys, and which of them are left after a crash."""

from __future__ import annotations

import json
from typing import Any

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.ranges import PROGRESS, Key, Progress, Range, RangePlanner, TableToRead, rest

_T, _U, _V = (TableId("public", name) for name in "tuv")
_KEYS = "abcdefghij"


def _boundary(_session: Any, _table: TableToRead, after: Key | None, rows: int) -> Key | None:
    left = [key for key in _KEYS if after is None or key > after[0]]
    return (left[rows - 1],) if len(left) >= rows else None


def _planned(*tables: TableToRead, bounds: tuple[int, int] = (1, 100)) -> list[tuple[int, int, Key | None, Key | None]]:
    planner: RangePlanner[None] = RangePlanner(tables, 4, lambda _session, _table: bounds, _boundary)
    found = []
    while (each := planner.next(None)) is not None:
        found.append(tuple(each))
    return found  # type: ignore[return-value]


def test_ranges_follow_each_other_and_the_last_one_has_no_end() -> None:
    assert _planned(TableToRead(_T, ("k",), 10)) == [(0, 0, None, ("d",)), (0, 1, ("d",), ("h",)), (0, 2, ("h",), None)]


def test_whole_numbers_are_divided_without_queries() -> None:
    ranges = _planned(TableToRead(_T, ("k",), 10, integer=True))
    assert ranges == [(0, 0, None, ("34",)), (0, 1, ("34",), ("68",)), (0, 2, ("68",), None)]


def test_whole_numbers_that_are_fewer_than_the_estimated_ranges_have_a_range_each() -> None:
    ranges = _planned(TableToRead(_T, ("k",), 10, integer=True), bounds=(1, 2))
    assert ranges == [(0, 0, None, ("1",)), (0, 1, ("1",), None)]


def test_small_tables_and_tables_without_key_are_one_range() -> None:
    assert _planned(TableToRead(_T, ("k",), 4), TableToRead(_U, (), 99)) == [(0, 0, None, None), (1, 0, None, None)]


def test_a_key_that_the_server_finds_behind_itself_ends_the_ranges() -> None:
    planner: RangePlanner[None] = RangePlanner([TableToRead(_T, ("k",), 10)], 4, lambda *_: None, lambda *_: ("d",))
    assert [planner.next(None) for _ in range(3)] == [Range(0, 0, None, ("d",)), Range(0, 1, ("d",), None), None]


_TABLES = [TableToRead(_T, ("k",), 10), TableToRead(_U, ("k",), 10), TableToRead(_V)]


def _left(*done: Range) -> tuple[list[tuple[TableId, Any, Any]], list[TableId]] | None:
    progress = Progress(_TABLES)
    for each in done:
        progress.finish(each)
    found = rest(progress.state(), _TABLES)
    if found is None:
        return None
    requests, whole = found
    return [(each.table, each.after, each.maximum) for each in requests], whole


def test_nothing_done_is_no_progress() -> None:
    assert Progress(_TABLES).state() == {}
    assert _left() is None


def test_ranges_that_are_not_done_are_left() -> None:
    first, second, third = Range(0, 0, None, ("d",)), Range(0, 1, ("d",), ("h",)), Range(0, 2, ("h",), None)
    others: list[tuple[TableId, Any, Any]] = [(_U, None, None)]
    assert _left(first) == ([(_T, ["d"], None), *others], [_V])
    assert _left(second) == ([(_T, None, ["d"]), (_T, ["h"], None), *others], [_V])
    assert _left(third) == ([(_T, None, ["h"]), *others], [_V])
    assert _left(first, third) == ([(_T, ["d"], ["h"]), *others], [_V])
    assert _left(third, second, first) == (others, [_V])


def test_finished_tables_are_not_left() -> None:
    assert _left(Range(2, 0, None, None), Range(1, 0, None, None)) == ([(_T, None, None)], [])


def test_bytes_are_kept() -> None:
    progress = Progress(_TABLES)
    progress.finish(Range(0, 0, None, (b"\xff", None)))
    assert json.loads(progress.state()[PROGRESS])["ranges"] == {"public.t": [[[{"hex": "ff"}, None], None]]}
    found = rest(progress.state(), _TABLES)
    assert found is not None
    assert found[0][0].after == [b"\xff", None]
