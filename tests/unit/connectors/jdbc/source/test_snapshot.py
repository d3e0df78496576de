"""Key ranges of a snapshot."""

from __future__ import annotations

import datetime as dt
import itertools

import pytest

from sluiceway.connectors.jdbc.source.offsets import Position
from sluiceway.connectors.jdbc.source.snapshot import Plan, plan_of

UTC = dt.timezone.utc


NOON = dt.datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("low", "high", "count"), [(1, 100, 4), (-5, 5, 3), (7, 7, 3), (None, None, 2), (0, 2**62, 5)])
def test_ranges_cover_every_number_once(low: int | None, high: int | None, count: int) -> None:
    plan = Plan.parse(plan_of("id", low, high, count, NOON).text)
    ranges = [plan.snapshot(number).range for number in range(count)]
    assert (ranges[0].low, ranges[-1].high) == (None, high or 0)
    assert all(one.high == other.low for one, other in itertools.pairwise(ranges))
    assert plan.follows == Position(timestamp=NOON - dt.timedelta(microseconds=1))  # rows of NOON itself are in no range
