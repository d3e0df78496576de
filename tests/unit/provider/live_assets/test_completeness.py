"""When all records of a partition of time have been moved, against topics of which everything is known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api.task import TopicPartition
from sluiceway.kafka.lag import PartitionBounds
from sluiceway.provider.live_assets.completeness import (
    log_has_passed,
    records_between,
    sink_has_passed,
    source_has_passed,
)

LATENESS = 2
TIMES = st.lists(st.integers(0, 12), max_size=12)  # of a partition's records; None of them is a transaction's marker
LOGS = st.lists(st.lists(st.none() | st.integers(0, 12), max_size=8), min_size=1, max_size=3)


def bounds(log: list[int | None], boundary: int, begin: int = 0) -> PartitionBounds:
    at = next((offset for offset, time in enumerate(log) if offset >= begin and time is not None and time >= boundary), -1)
    return PartitionBounds(begin, len(log), at)


@given(logs=LOGS, data=st.data(), boundary=st.integers(0, 12), is_over=st.booleans())
def test_a_sink_has_passed_if_nothing_before_is_left_and_nothing_can_come(
    logs: list[list[int | None]], data: st.DataObject, boundary: int, is_over: bool
) -> None:
    partitions = [TopicPartition("t", number) for number in range(len(logs))]
    committed = {
        partition: data.draw(st.integers(0, len(log)))
        for partition, log in zip(partitions, logs, strict=True)
        if data.draw(st.booleans())
    }

    def has_records(partition: TopicPartition, offset: int) -> bool:
        return any(time is not None for time in logs[partition.partition][offset:])

    given_bounds = {partition: bounds(log, boundary) for partition, log in zip(partitions, logs, strict=True)}
    passed = sink_has_passed(given_bounds, committed, is_over=is_over, has_records=has_records)

    def is_left(partition: TopicPartition, log: list[int | None]) -> bool:
        closing = given_bounds[partition].at if given_bounds[partition].at >= 0 else len(log)
        return any(time is not None for time in log[committed.get(partition, 0) : closing])

    closes = all(each.at >= 0 or is_over for each in given_bounds.values())
    left = any(is_left(partition, log) for partition, log in zip(partitions, logs, strict=True))
    if passed:
        assert closes
        assert not left
    elif closes and not left:
        # Only markers before a later record, which the sink has not read: it passes with its next commit.
        assert any(each.at > committed.get(partition, 0) for partition, each in given_bounds.items())


def test_topics_that_are_not_there_yet_are_not_complete() -> None:
    assert not sink_has_passed({}, {}, is_over=True, has_records=lambda *_: False)
    assert not source_has_passed({}, is_over=True, is_running=True)


def test_deleted_records_need_no_commit() -> None:
    partition = TopicPartition("t", 0)
    assert sink_has_passed({partition: PartitionBounds(7, 7, -1)}, {}, is_over=True, has_records=lambda *_: True)
    assert sink_has_passed({partition: PartitionBounds(7, 9, 7)}, {}, is_over=False, has_records=lambda *_: True)


def test_a_source_has_passed_by_its_records_or_by_the_clock_while_it_runs() -> None:
    idle, moved = PartitionBounds(0, 5, -1), PartitionBounds(0, 5, 3)
    both = {TopicPartition("t", 0): idle, TopicPartition("t", 1): moved}
    assert source_has_passed({TopicPartition("t", 1): moved}, is_over=False, is_running=False)
    assert source_has_passed(both, is_over=True, is_running=True)
    assert not source_has_passed(both, is_over=True, is_running=False)
    assert not source_has_passed(both, is_over=False, is_running=True)


def test_a_database_log_has_passed_by_the_commit_times_of_all_its_offsets() -> None:
    assert [log_has_passed(times, 10) for times in ([], [9], [10], [10, 3])] == [False, False, True, False]


def test_records_are_counted_between_the_closings() -> None:
    one, two, new = (TopicPartition("t", number) for number in range(3))
    before = {one: PartitionBounds(0, 9, 2), two: PartitionBounds(0, 4, -1)}
    after = {one: PartitionBounds(0, 9, 6), two: PartitionBounds(0, 4, -1), new: PartitionBounds(1, 9, 4)}
    assert records_between(before, after) == 4 + 0 + 3
