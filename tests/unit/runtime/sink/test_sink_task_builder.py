from __future__ import annotations

from sluiceway.runtime.sink.sink_task_builder import BatchSize


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
