from __future__ import annotations

from sluiceway.runtime.sink.sink_task_builder import BatchSize


def test_a_fast_task_soon_gets_the_largest_batches() -> None:
    made = BatchSize(500, 30.0)
    sizes = []
    while made.size < 500:
        sizes.append(made.size)
        made.took(made.size, 0.01)
    assert sizes == [10, 20, 40, 80, 160, 320]
    made.took(500, 0.01)
    assert made.size == 500


def test_a_task_of_one_record_a_second_never_gets_more_than_it_can_put_in_time() -> None:
    made = BatchSize(500, 3.0)
    for _ in range(20):
        made.took(made.size, made.size * 1.0)
        assert made.size <= 3
    assert made.size == 3


def test_a_slow_put_within_the_limit_does_not_shrink_batches() -> None:
    made = BatchSize(500, 30.0)
    for _ in range(10):
        made.took(made.size, 5.0)
    assert made.size == 500


def test_the_batch_size_is_at_least_one_and_at_most_the_setting() -> None:
    made = BatchSize(500, 1.0)
    made.took(10, 1000.0)
    assert made.size == 1
    assert BatchSize(2, 1.0).size == 2


def test_batches_below_the_size_do_not_change_it() -> None:
    made = BatchSize(500, 30.0)
    made.took(0, 0.0)
    made.took(3, 0.0)
    assert made.size == 10
