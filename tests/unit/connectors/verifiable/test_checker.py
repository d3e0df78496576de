from __future__ import annotations

import random

import pytest

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.numbering import Seen, TopicRecord, from_topic, numbered
from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA, Schema, Struct
from sluiceway.errors import DataError


def of_one_task(*numbers: int) -> list[tuple[int, int]]:
    return [(0, number) for number in numbers]


def test_each_number_once_and_in_order_is_exactly_once() -> None:
    verdict = check((task, number) for number in range(1000) for task in (0, 1))
    assert (verdict.total, verdict.lost, verdict.duplicated, verdict.reordered) == (2000, 0, 0, 0)
    assert verdict.exactly_once
    assert [task.task for task in verdict.tasks] == [0, 1]


def test_nothing_at_all_is_not_exactly_once() -> None:
    assert not check([]).exactly_once


def test_gaps_are_lost_and_named() -> None:
    (task,) = check(of_one_task(1, 2, 5, 6, 9)).tasks
    assert (task.lost, task.gaps, task.last) == (5, ((0, 0), (3, 4), (7, 8)), 9)
    assert "5 lost (0, 3-4, 7-8)" in str(task)


def test_what_is_missing_at_the_end_is_lost_if_it_is_known_to_have_been_sent() -> None:
    assert check(of_one_task(0, 1)).lost == 0
    verdict = check(of_one_task(0, 1), sent={0: 4, 7: 1})
    assert [(task.task, task.lost, task.gaps) for task in verdict.tasks] == [(0, 3, ((2, 4),)), (7, 2, ((0, 1),))]


def test_a_batch_sent_again_is_duplicated_and_not_reordered() -> None:
    (task,) = check(of_one_task(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6)).tasks
    assert (task.duplicated, task.largest_repeat, task.lost, task.reordered) == (4, 2, 0, 0)
    assert "4 duplicated (at most 2 in a row)" in str(task)


def test_a_record_that_comes_late_is_reordered_and_not_lost() -> None:
    (task,) = check(of_one_task(0, 1, 3, 2, 4)).tasks
    assert (task.reordered, task.lost, task.duplicated) == (1, 0, 0)
    late = check(Seen(0, number, ("t", 0)) for number in (0, 1, 3, 2, 4))
    assert late.reordered == 1
    assert not late.exactly_once


def test_order_between_partitions_is_not_judged() -> None:
    halves = [Seen(0, number, ("t", number % 2)) for number in [*range(0, 100, 2), *range(1, 100, 2)]]
    assert check(halves).exactly_once
    assert check([(0, seen.seqno) for seen in halves]).reordered == 49


def test_repeats_in_a_row_are_counted_within_each_partition() -> None:
    seen = [Seen(0, number, ("t", place)) for number, place in [(0, 0), (1, 1), (0, 0), (2, 1), (2, 1), (3, 0), (0, 0)]]
    (task,) = check(seen).tasks
    assert (task.duplicated, task.largest_repeat) == (3, 1)


def test_numbers_far_apart_are_judged_without_memory_for_what_lies_between() -> None:
    (task,) = check(of_one_task(0, 10**12)).tasks
    assert (task.lost, task.gaps) == (10**12 - 1, ((1, 10**12 - 1),))


def test_gaps_that_span_much_are_named_with_what_lies_between() -> None:
    (task,) = check(of_one_task(0, 10**6, 10**12)).tasks
    assert task.gaps == ((1, 10**6 - 1), (10**6 + 1, 10**12 - 1))


def test_of_many_gaps_the_first_are_named() -> None:
    (task,) = check(of_one_task(*range(0, 200, 2))).tasks
    assert task.lost == 99
    assert len(task.gaps) == 10
    assert "17, 19, ...)" in str(task)


def test_another_first_number_can_be_given() -> None:
    assert check(of_one_task(5, 6), first=5).exactly_once
    with pytest.raises(DataError, match="numbered 4"):
        check(of_one_task(4), first=5)


def test_the_verdict_agrees_with_plain_counting() -> None:
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


def test_the_text_has_a_line_for_each_task_and_the_sums() -> None:
    assert str(check([(0, 0), (1, 1), (1, 1)])).splitlines() == [
        "task 0: 1 records, numbers 0 to 0: 0 lost, 0 duplicated, 0 reordered",
        "task 1: 2 records, numbers 0 to 1: 1 lost (0), 1 duplicated (at most 1 in a row), 0 reordered",
        "all: 3 records of 2 task(s): 1 lost, 1 duplicated, 0 reordered",
    ]


STRUCT = Schema.struct({"task": INT32_SCHEMA, "seqno": INT64_SCHEMA})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (3, 7),
        ("3", "7"),
        (b"3", b"7"),
        (None, {"task": 3, "seqno": 7}),
        (None, Struct(STRUCT, {"task": 3, "seqno": 7})),
        (b"anything", b'{"task":3,"seqno":7,"payload":"x"}'),
        (b'{"schema":{},"payload":3}', b'{"schema":{},"payload":7}'),
        (None, b'{"schema":{},"payload":{"task":3,"seqno":7}}'),
    ],
)
def test_numbers_are_found_in_every_form_of_a_record(key: object, value: object) -> None:
    assert numbered(key, value) == (3, 7)


@pytest.mark.parametrize(("key", "value"), [(None, 7), (3, None), ("a", "b"), (3, -1), (3, True), (3, 1.0), (3, b"\xff")])
def test_other_records_are_refused(key: object, value: object) -> None:
    with pytest.raises(DataError, match="Is another writer on this topic"):
        numbered(key, value)


def test_a_topic_is_read_with_the_place_of_each_record_and_errors_name_it() -> None:
    assert list(from_topic([TopicRecord("t", 4, b"3", b"7")])) == [Seen(3, 7, ("t", 4))]
    with pytest.raises(DataError, match="t-4: "):
        list(from_topic([TopicRecord("t", 4, None, b"x")]))
