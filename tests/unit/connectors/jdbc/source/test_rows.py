"""Offsets of rows with equal timestamps."""

from __future__ import annotations

from sluiceway.api import SourceRecord
from sluiceway.connectors.jdbc.source.rows import hold_back_equal_times


def held(times: list[int], before: int | None, following: int | None) -> list[int | None]:
    records = [SourceRecord({}, {"timestamp": time}, "t", None) for time in times]
    hold_back_equal_times(
        records, None if before is None else {"timestamp": before}, None if following is None else {"timestamp": following}
    )
    return [record.source_offset["timestamp"] if record.source_offset else None for record in records]


def test_an_offset_has_a_timestamp_only_after_the_last_row_of_that_timestamp() -> None:
    assert held([1, 2, 2, 3], None, None) == [1, 1, 2, 3]
    assert held([1, 2, 2], None, 2) == [1, 1, 1]
    assert held([2, 2], 1, 3) == [1, 2]
    assert held([2, 2], None, 2) == [None, None]
