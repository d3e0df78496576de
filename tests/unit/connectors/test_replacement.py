"""Rows that a run replaces which moves an interval again."""

from __future__ import annotations

import pytest

from sluiceway.api import TopicPartition
from sluiceway.config.intervals import COLUMN, POSITIONS, Interval, IntervalRun
from sluiceway.connectors.replacement import IntervalReplacement, interval_column

_ONE, _TWO, _OTHER = TopicPartition("a.b", 0), TopicPartition("a.b", 1), TopicPartition("c", 0)
_WINDOWS = '{"a.b":{"0":[0,0,5],"1":[3,4,6,[7,9]],"2":[5,5,5]},"c":{"0":[1,1,2]}}'


def _config(attempt: int, **more: str) -> dict[str, str]:
    return {**IntervalRun("live", Interval(0, 3_600_000), attempt).keys(), POSITIONS: _WINDOWS, **more}


def test_only_a_later_attempt_with_a_column_replaces_rows() -> None:
    assert IntervalReplacement.of({COLUMN: "hour"}) is None, "a connector that moves no interval"
    assert IntervalReplacement.of(_config(1, **{COLUMN: "hour"})) is None
    assert IntervalReplacement.of(_config(2)) is None
    found = IntervalReplacement.of(_config(2, **{COLUMN: "hour"}))
    assert found == IntervalReplacement("hour", "1970-01-01T00:00:00Z", {_ONE: 5, _TWO: 9, _OTHER: 2})
    assert interval_column({COLUMN: "hour"}) is None
    assert interval_column(_config(1, **{COLUMN: "hour"})) == "hour"


@pytest.mark.parametrize(
    ("offsets", "complete"),
    [
        ({_ONE: 5, _TWO: 9, _OTHER: 2}, True),
        ({_ONE: 9, _TWO: 9, _OTHER: 9}, True),
        ({_ONE: 5, _TWO: 6, _OTHER: 2}, False),
        ({_ONE: 5, _TWO: 9}, False),
        ({}, False),
    ],
)
def test_rows_are_replaced_once_all_records_were_read(offsets: dict[TopicPartition, int], complete: bool) -> None:
    found = IntervalReplacement.of(_config(3, **{COLUMN: "hour"}))
    assert found is not None
    assert found.is_complete(offsets) is complete
    assert found.is_done(dict(offsets)) is complete
    assert not found.is_done({_ONE: None, _TWO: 9, _OTHER: 2})
