from __future__ import annotations

import pytest

from sluiceway.api import TopicPartition
from sluiceway.runtime.sink.position_check import PositionCheck

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Begins:
    def __init__(self, **begins: int) -> None:
        self.asked = 0
        self.now = 0.0
        self.begin = 0
        self.positions = PositionCheck(self._beginning_offset, lambda: self.now)

    def _beginning_offset(self, _partition: TopicPartition) -> int:
        self.asked += 1
        return self.begin


def test_expected_offsets_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    begins = Begins()
    begins.positions.expect({A: 5})
    begins.positions.read({A: 5, B: 70}, {A: 9, B: 80})
    begins.positions.read({A: 9, B: 80}, {A: 10, B: 81})
    assert (caplog.records, begins.asked) == ([], 0)


def test_a_gap_is_logged_only_if_the_partition_begins_after_it(caplog: pytest.LogCaptureFixture) -> None:
    begins = Begins()
    begins.positions.expect({A: 5})
    begins.positions.read({A: 7}, {A: 8})  # compacted
    assert caplog.records == []
    begins.now, begins.begin = 61.0, 100
    begins.positions.read({A: 100}, {A: 110})
    assert "Offset 8 of t-0" in caplog.text
    assert "92 offsets were deleted before they were read" in caplog.text


def test_the_beginning_offset_is_read_at_most_once_a_minute() -> None:
    begins = Begins()
    begins.positions.expect({A: 0})
    for start in range(2, 200, 2):
        begins.positions.read({A: start}, {A: start + 1})
    assert begins.asked == 1
    begins.now = 61.0
    begins.positions.read({A: 500}, {A: 501})
    assert begins.asked == 2


def test_a_jump_back_is_logged_with_the_number_of_records_that_may_be_repeated(caplog: pytest.LogCaptureFixture) -> None:
    begins = Begins()
    begins.positions.expect({A: 100})
    begins.positions.read({A: 0}, {A: 10})
    assert "Offset 100 of t-0" in caplog.text
    assert "Continuing at 0" in caplog.text
    assert "up to 100 records may be repeated" in caplog.text


def test_revoked_partitions_are_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    begins = Begins()
    begins.positions.expect({A: 100})
    begins.positions.forget([A])
    begins.positions.read({A: 0}, {A: 10})
    assert caplog.records == []
