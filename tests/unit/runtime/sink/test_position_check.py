from __future__ import annotations

import threading

import pytest

from sluiceway.api import TopicPartition
from sluiceway.runtime.sink.position_check import PositionCheck
from sluiceway.runtime.sink.sink_task_builder import BatchSize
from sluiceway.runtime.sink.task_consumer import call_with_timeout

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_quick_task_soon_gets_as_many_records_as_it_may() -> None:
    made = BatchSize(500, 30.0)
    sizes = []
    while made.size < 500:
        sizes.append(made.size)
        made.took(made.size, 0.01)
    assert sizes == [10, 20, 40, 80, 160, 320]
    made.took(500, 0.01)
    assert made.size == 500


def test_a_task_that_takes_a_record_a_second_never_gets_more_than_it_can_do_in_time() -> None:
    made = BatchSize(500, 3.0)
    for _ in range(20):
        made.took(made.size, made.size * 1.0)
        assert made.size <= 3
    assert made.size == 3


def test_a_task_whose_every_call_is_slow_keeps_its_batches() -> None:
    made = BatchSize(500, 30.0)
    for _ in range(10):
        made.took(made.size, 5.0)
    assert made.size == 500


def test_a_batch_has_a_record_however_slow_the_task_and_no_more_than_the_setting_allows() -> None:
    made = BatchSize(500, 1.0)
    made.took(10, 1000.0)
    assert made.size == 1
    assert BatchSize(2, 1.0).size == 2


def test_small_batches_of_a_quiet_topic_do_not_count() -> None:
    made = BatchSize(500, 30.0)
    made.took(0, 0.0)
    made.took(3, 0.0)
    assert made.size == 10


class Begins:
    def __init__(self, **begins: int) -> None:
        self.asked = 0
        self.now = 0.0
        self.begin = 0
        self.positions = PositionCheck(self._beginning_offset, lambda: self.now)

    def _beginning_offset(self, _partition: TopicPartition) -> int:
        self.asked += 1
        return self.begin


def test_reading_on_where_it_stopped_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    begins = Begins()
    begins.positions.expect({A: 5})
    begins.positions.read({A: 5, B: 70}, {A: 9, B: 80})
    begins.positions.read({A: 9, B: 80}, {A: 10, B: 81})
    assert (caplog.records, begins.asked) == ([], 0)


def test_a_gap_is_no_news_unless_the_partition_begins_after_it(caplog: pytest.LogCaptureFixture) -> None:
    begins = Begins()
    begins.positions.expect({A: 5})
    begins.positions.read({A: 7}, {A: 8})  # compacted
    assert caplog.records == []
    begins.now, begins.begin = 61.0, 100
    begins.positions.read({A: 100}, {A: 110})
    assert "Offset 8 of t-0" in caplog.text
    assert "92 offsets were deleted before they were read" in caplog.text


def test_a_compacted_topic_is_asked_about_once_a_minute() -> None:
    begins = Begins()
    begins.positions.expect({A: 0})
    for start in range(2, 200, 2):
        begins.positions.read({A: start}, {A: start + 1})
    assert begins.asked == 1
    begins.now = 61.0
    begins.positions.read({A: 500}, {A: 501})
    assert begins.asked == 2


def test_going_back_is_told_with_the_number_of_records_that_may_come_again(caplog: pytest.LogCaptureFixture) -> None:
    begins = Begins()
    begins.positions.expect({A: 100})
    begins.positions.read({A: 0}, {A: 10})
    assert "Offset 100 of t-0" in caplog.text
    assert "Continuing at 0" in caplog.text
    assert "up to 100 records may be repeated" in caplog.text


def test_partitions_that_were_given_up_are_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    begins = Begins()
    begins.positions.expect({A: 100})
    begins.positions.forget([A])
    begins.positions.read({A: 0}, {A: 10})
    assert caplog.records == []


def test_a_call_that_blocks_is_given_up_in_time_and_one_that_does_not_answers() -> None:
    never = threading.Event()
    with pytest.raises(TimeoutError, match="The commit took longer than"):
        call_with_timeout(0.05, never.wait, "The commit")
    never.set()
    assert call_with_timeout(10.0, lambda: 7, "Seven") == 7
    with pytest.raises(ValueError, match="own"):
        call_with_timeout(10.0, lambda: int("own"), "It")
