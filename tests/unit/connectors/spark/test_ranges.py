"""Windows and plans of ranges, and positions in offsets."""

from __future__ import annotations

import pytest

from sluiceway.connectors.spark.ranges import (
    SPLITS_PER_SLOT,
    RoundPlan,
    Window,
    offset_of,
    plan_in,
    position_in,
    split_partition,
)
from sluiceway.errors import ConnectError


@pytest.mark.parametrize(
    "window", [Window(1, 10, 10), Window(-5, 1000, 40), Window(7, 7, 1), Window(1, 10**12, 3), Window(0, 99, 500)]
)
@pytest.mark.parametrize(("slots", "rows"), [(1, 1), (4, 3), (3, 1000)])
def test_the_ranges_of_all_rounds_cover_each_value_once(window: Window, slots: int, rows: int) -> None:
    if window.high > 10**6 and slots * rows < window.count:
        rows = window.count
    covered = window.low - 1
    rest: Window | None = window
    while rest is not None:
        bounds = rest.bounds(slots, rows)
        assert bounds[0] == covered
        assert len(bounds) - 1 <= slots * SPLITS_PER_SLOT
        assert all(low < high for low, high in RoundPlan("x", slots, tuple(bounds)).ranges)
        covered = bounds[-1]
        rest = rest.after(covered, (len(bounds) - 1) * rows)
    assert covered == window.high


def test_few_rows_make_few_splits() -> None:
    assert len(Window(1, 1000, 1000).bounds(8, 500)) == 3


@pytest.mark.parametrize(("count", "splits"), [(50, 1), (250, 3), (1000, 12), (10**6, 3 * SPLITS_PER_SLOT)])
def test_all_slots_have_as_many_splits(count: int, splits: int) -> None:
    assert len(Window(1, count, count).bounds(3, 100)) - 1 == splits


@pytest.mark.parametrize("position", [0, -1, 123_456_789, 1_763_000_000_123_456])
@pytest.mark.parametrize("timestamp", [True, False])
def test_a_position_is_read_from_its_offset(position: int, timestamp: bool) -> None:
    assert position_in(offset_of(position, timestamp=timestamp), timestamp=timestamp) == position


def test_an_offset_of_the_jdbc_source_without_nanoseconds_is_read() -> None:
    assert position_in({"timestamp": 1_500}, timestamp=True) == 1_500_000


def test_no_offset_is_no_position() -> None:
    assert position_in(None, timestamp=False) is None
    assert offset_of(None, timestamp=True) == {}


def test_a_text_is_no_position() -> None:
    with pytest.raises(ConnectError, match="'7' is no position"):
        position_in({"incrementing": "7"}, timestamp=False)


def test_a_plan_is_read_from_its_offset() -> None:
    plan = RoundPlan("a", 2, (0, 5, 10))
    assert plan.text() == "a:2:0,5,10"
    assert plan_in({"incrementing": 0, "round": plan.text()}) == plan
    assert plan.ranges == [(0, 5), (5, 10)]
    assert plan_in({"incrementing": 3}) is None
    for text in ("a:2:1", "a:0:1,2", "a:1,2", "nonsense"):
        with pytest.raises(ConnectError, match="not a round's plan"):
            plan_in({"round": text})


def test_a_split_has_a_partition_of_its_own() -> None:
    assert split_partition({"table": "t"}, 2) == {"table": "t", "split": 2}
