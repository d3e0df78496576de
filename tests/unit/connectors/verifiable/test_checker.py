from __future__ import annotations

import random

import pytest

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.numbering import NumberedRecord
from sluiceway.errors import DataError


def of_one_task(*numbers: int) -> list[tuple[int, int]]:
    return [(0, number) for number in numbers]


def test_each_number_once_and_in_order_is_exactly_once() -> None:
    verdict = check((task, number) for number in range(1000) for task in (0, 1))
    assert (verdict.total, verdict.lost, verdict.duplicated, verdict.reordered) == (2000, 0, 0, 0)
    assert verdict.exactly_once
    assert [task.task for task in verdict.tasks] == [0, 1]


def test_no_records_are_not_exactly_once() -> None:
    assert not check([]).exactly_once


def test_missing_numbers_are_lost_and_reported() -> None:
    (task,) = check(of_one_task(1, 2, 5, 6, 9)).tasks
    assert (task.lost, task.gaps, task.last) == (5, ((0, 0), (3, 4), (7, 8)), 9)
    assert "5 lost (0, 3-4, 7-8)" in str(task)


def test_records_missing_at_the_end_are_lost_if_they_were_sent() -> None:
    assert check(of_one_task(0, 1)).lost == 0
    verdict = check(of_one_task(0, 1), sent={0: 4, 7: 1})
    assert [(task.task, task.lost, task.gaps) for task in verdict.tasks] == [(0, 3, ((2, 4),)), (7, 2, ((0, 1),))]


def test_a_repeated_batch_is_duplicated_and_not_reordered() -> None:
    (task,) = check(of_one_task(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6)).tasks
    assert (task.duplicated, task.largest_repeat, task.lost, task.reordered) == (4, 2, 0, 0)
    assert "4 duplicated (at most 2 in a row)" in str(task)


def test_a_late_record_is_reordered_and_not_lost() -> None:
    (task,) = check(of_one_task(0, 1, 3, 2, 4)).tasks
    assert (task.reordered, task.lost, task.duplicated) == (1, 0, 0)
    late = check(NumberedRecord(0, number, ("t", 0)) for number in (0, 1, 3, 2, 4))
    assert late.reordered == 1
    assert not late.exactly_once


def test_order_between_partitions_is_not_checked() -> None:
    halves = [NumberedRecord(0, number, ("t", number % 2)) for number in [*range(0, 100, 2), *range(1, 100, 2)]]
    assert check(halves).exactly_once
    assert check([(0, seen.seqno) for seen in halves]).reordered == 49


def test_repeats_in_a_row_are_counted_within_each_partition() -> None:
    seen = [NumberedRecord(0, number, ("t", place)) for number, place in [(0, 0), (1, 1), (0, 0), (2, 1), (2, 1), (3, 0), (0, 0)]]
    (task,) = check(seen).tasks
    assert (task.duplicated, task.largest_repeat) == (3, 1)


def test_numbers_far_apart_need_no_memory_for_the_numbers_between() -> None:
    (task,) = check(of_one_task(0, 10**12)).tasks
    assert (task.lost, task.gaps) == (10**12 - 1, ((1, 10**12 - 1),))


def test_large_gaps_are_reported_with_the_records_between() -> None:
    (task,) = check(of_one_task(0, 10**6, 10**12)).tasks
    assert task.gaps == ((1, 10**6 - 1), (10**6 + 1, 10**12 - 1))


def test_only_the_first_of_many_gaps_are_reported() -> None:
    (task,) = check(of_one_task(*range(0, 200, 2))).tasks
    assert task.lost == 99
    assert len(task.gaps) == 10
    assert "17, 19, ...)" in str(task)


def test_numbers_may_start_above_zero() -> None:
    assert check(of_one_task(5, 6), first=5).exactly_once
    with pytest.raises(DataError, match="sequence number 4"):
        check(of_one_task(4), first=5)


def test_the_verdict_agrees_with_a_simple_count() -> None:
    choose = random.Random(5)  # noqa: S311 (repeatable)
    for _ in range(50):
        numbers = [choose.randrange(200_000) // 3 for _ in range(300)]
        (task,) = check(of_one_task(*numbers)).tasks
        missing = sorted(set(range(max(numbers) + 1)) - set(numbers))
        firsts = [number for at, number in enumerate(numbers) if number not in numbers[:at]]
        late = sum(number < max(firsts[: at + 1]) for at, number in enumerate(firsts))
        assert (task.lost, task.duplicated, task.reordered) == (len(missing), len(numbers) - len(set(numbers)), late)
        assert [number for low, high in task.gaps for number in range(low, high + 1)] == missing[
            : sum(high - low + 1 for low, high in task.gaps)
        ]


def test_the_report_has_a_line_for_each_task_and_the_sums() -> None:
    assert str(check([(0, 0), (1, 1), (1, 1)])).splitlines() == [
        "task 0: 1 records, numbers 0 to 0: 0 lost, 0 duplicated, 0 reordered",
        "task 1: 2 records, numbers 0 to 1: 1 lost (0), 1 duplicated (at most 1 in a row), 0 reordered",
        "all: 3 records of 2 task(s): 1 lost, 1 duplicated, 0 reordered",
    ]
