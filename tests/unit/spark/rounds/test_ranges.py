"""The start of a sink's round, and the records that it reads."""

from __future__ import annotations

from sluiceway.api import TopicPartition
from sluiceway.spark.rounds.ranges import OffsetRange, RoundPlanner

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_full_partition_starts_a_round_with_all_that_is_there() -> None:
    ranges = RoundPlanner(100, 10.0).plan({A: 5, B: 0}, {A: 205, B: 3}, 0.0)
    assert ranges == [OffsetRange("t", 0, 5, 105), OffsetRange("t", 1, 0, 3)]


def test_few_records_wait_for_the_interval() -> None:
    planner = RoundPlanner(100, 10.0)
    assert planner.plan({A: 0}, {A: 1}, 0.0) == []
    assert planner.plan({A: 0}, {A: 2}, 9.9) == []
    assert planner.plan({A: 0}, {A: 3}, 10.0) == [OffsetRange("t", 0, 0, 3)]


def test_the_interval_starts_with_the_first_record_that_waits() -> None:
    planner = RoundPlanner(100, 10.0)
    assert planner.plan({A: 0}, {A: 0}, 0.0) == []
    assert planner.plan({A: 0}, {A: 1}, 20.0) == []
    assert planner.plan({A: 0}, {A: 1}, 30.0) != []
    assert planner.plan({A: 1}, {A: 2}, 31.0) == []


def test_at_once_does_not_wait() -> None:
    assert RoundPlanner(100, 10.0).plan({A: 0}, {A: 1}, 0.0, at_once=True) == [OffsetRange("t", 0, 0, 1)]


def test_a_partition_without_a_known_end_is_left_out() -> None:
    assert RoundPlanner(1, 0.0).plan({A: 0, B: 7}, {A: 1}, 0.0) == [OffsetRange("t", 0, 0, 1)]


def test_after_a_round_that_ended_early_the_next_one_does_not_wait() -> None:
    planner = RoundPlanner(100, 10.0)
    planner.ended_early()
    assert planner.plan({A: 0}, {A: 0}, 0.0) == []
    assert planner.plan({A: 0}, {A: 1}, 1.0) == [OffsetRange("t", 0, 0, 1)]
    assert planner.plan({A: 1}, {A: 2}, 2.0) == []
