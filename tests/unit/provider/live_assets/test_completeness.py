"""When all records of a partition of time have been moved, against topics of which everything is known."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api.task import TopicPartition
from sluiceway.provider.live_assets.completeness import (
    PartitionPast,
    log_has_passed,
    records_between,
    sink_has_passed,
    source_has_passed,
)


class Log(NamedTuple):
    """The times of records; None for a marker of a transaction. Those from ``stable`` on are in an open transaction."""

    times: list[int | None]
    stable: int

    def past(self, moment: int) -> PartitionPast:
        stable = self.times[: self.stable]
        at = next((offset for offset, time in enumerate(stable) if time is not None and time >= moment), -1)
        return PartitionPast(0, len(self.times), self.stable, at)


@st.composite
def logs(draw: st.DrawFn) -> list[Log]:
    times = draw(st.lists(st.lists(st.none() | st.integers(0, 12), max_size=8), min_size=1, max_size=3))
    return [Log(each, len(each) if draw(st.booleans()) else draw(st.integers(0, len(each)))) for each in times]


@given(logs=logs(), data=st.data(), moment=st.integers(0, 12))
def test_a_sink_has_passed_if_nothing_before_is_left_and_nothing_can_come(
    logs: list[Log], data: st.DataObject, moment: int
) -> None:
    partitions = [TopicPartition("t", number) for number in range(len(logs))]
    committed = {
        partition: data.draw(st.integers(0, log.stable))
        for partition, log in zip(partitions, logs, strict=True)
        if data.draw(st.booleans())
    }

    def has_records(partition: TopicPartition, offset: int) -> bool:
        log = logs[partition.partition]
        return any(time is not None for time in log.times[offset : log.stable])

    past = {partition: log.past(moment) for partition, log in zip(partitions, logs, strict=True)}
    passed = sink_has_passed(past, committed, has_records)

    def is_left(partition: TopicPartition, log: Log) -> bool:
        found = past[partition]
        may_come = found.at < 0 and any(time is not None for time in log.times[log.stable :])
        return may_come or any(time is not None for time in log.times[committed.get(partition, 0) : found.closing])

    left = any(is_left(partition, log) for partition, log in zip(partitions, logs, strict=True))
    if passed:
        assert not left
    elif not left:
        # Only markers are before a later record that the sink has not read, or in what may be a transaction.
        assert any(each.at > committed.get(partition, 0) or each.is_open for partition, each in past.items())


def test_topics_that_are_not_there_yet_are_not_complete() -> None:
    assert not sink_has_passed({}, {}, lambda *_: False)
    assert not source_has_passed({}, is_running=True)


def test_deleted_records_need_no_commit() -> None:
    partition = TopicPartition("t", 0)
    for committed in ({}, {partition: 3}):
        assert sink_has_passed({partition: PartitionPast(7, 7, 7, -1)}, committed, lambda *_: True)
        assert sink_has_passed({partition: PartitionPast(7, 9, 9, 7)}, committed, lambda *_: True)


def test_a_source_has_passed_by_its_records_or_while_it_runs() -> None:
    idle, moved, open_ = PartitionPast(0, 5, 5, -1), PartitionPast(0, 5, 5, 3), PartitionPast(0, 5, 2, -1)
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    assert source_has_passed({one: moved}, is_running=False)
    assert source_has_passed({one: moved, two: idle}, is_running=True)
    assert not source_has_passed({one: moved, two: idle}, is_running=False)
    assert not source_has_passed({one: moved, two: open_}, is_running=True)


def test_a_database_log_has_passed_by_the_commit_times_of_all_its_offsets() -> None:
    assert [log_has_passed(times, 10) for times in ([], [9], [10], [10, 3])] == [False, False, True, False]


def test_records_are_counted_between_the_closings() -> None:
    one, two, new = (TopicPartition("t", number) for number in range(3))
    before = {one: PartitionPast(0, 9, 9, 2), two: PartitionPast(0, 4, 4, -1)}
    after = {one: PartitionPast(0, 9, 9, 6), two: PartitionPast(0, 4, 4, -1), new: PartitionPast(1, 9, 9, 4)}
    assert records_between(before, after) == 4 + 0 + 3
