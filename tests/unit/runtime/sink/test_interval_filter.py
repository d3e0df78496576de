"""The records that runs of intervals move, and their counts: each record in one interval, in whatever order runs come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import TopicPartition
from sluiceway.config.intervals import LATE, POSITIONS, Interval, IntervalRun
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.runtime.sink.interval_filter import IntervalFilter
from sluiceway.storage.intervals import (
    Counts,
    Window,
    closings,
    decode_windows,
    encode_windows,
    windows,
    with_new_partitions,
)

_HOUR = 100
_LATENESS = 20


@dataclass(frozen=True)
class Message:
    """The parts of a message that decide where it belongs."""

    place: TopicPartition
    at: int
    time: int

    def topic(self) -> str:
        return self.place.topic

    def partition(self) -> int:
        return self.place.partition

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return (0, -1) if self.time < 0 else (1, self.time)


def _log(place: TopicPartition, times: Sequence[int]) -> list[ConsumedMessage]:
    return [Message(place, offset, time) for offset, time in enumerate(times)]


def _first_at(times: Sequence[int], moment: int) -> int:
    """Return what Kafka answers for a time: the first offset whose timestamp is at or after it, -1 if there is none."""
    return next((offset for offset, time in enumerate(times) if time >= moment), -1)


def _filter(interval: Interval, of: Mapping[TopicPartition, Window], **more: str) -> IntervalFilter:
    return IntervalFilter({**IntervalRun("live", interval, 1).keys(), POSITIONS: encode_windows(of), **more})


_TIMES = st.lists(st.integers(-1, 6 * _HOUR), max_size=40)


@given(st.lists(_TIMES, min_size=1, max_size=3), st.data())
def test_each_record_belongs_to_one_interval(logs: list[list[int]], data: st.DataObject) -> None:
    places = [TopicPartition("t", number) for number in range(len(logs))]
    boundaries = range(0, 6 * _HOUR, _HOUR)
    # A boundary closes when only so many records had come. Runs come in any order, but later boundaries see no fewer records.
    seen = dict.fromkeys(places, 0)
    closed: dict[int, dict[TopicPartition, int]] = {}
    for boundary in boundaries:
        seen = {each: data.draw(st.integers(seen[each], len(logs[each.partition]))) for each in places}
        arrived = {each: logs[each.partition][: seen[each]] for each in places}
        after = {each: _first_at(arrived[each], boundary + _LATENESS) for each in places}
        found = closings(after, seen, is_over=True)
        assert found is not None
        closed[boundary] = found
    taken: list[tuple[TopicPartition, int]] = []
    for start, end in data.draw(st.permutations(list(pairwise(boundaries)))):
        first = {each: _first_at(logs[each.partition], start) for each in places}
        read = windows(first, closed[start], closed[end])
        found_filter = _filter(Interval(start, end), read)
        for each in places:
            messages = _log(each, logs[each.partition])
            for message in found_filter.take(messages[read[each].start :]):
                time = message.timestamp()[1]
                late = time < start
                assert time < end
                assert message.offset() < closed[end][each]
                assert not late or message.offset() >= closed[start][each]
                taken.append((each, message.offset()))
    assert len(taken) == len(set(taken)), "no record is in two intervals"
    last = boundaries[-1]
    for each in places:
        for offset, time in enumerate(logs[each.partition]):
            before_first = time < boundaries[0] and offset < closed[boundaries[0]][each]
            comes_later = time >= last or offset >= closed[last][each]
            assert ((each, offset) in taken) != (before_first or comes_later), (each, offset, time)


def test_the_end_of_an_interval_closes_when_records_after_it_have_come_or_its_time_is_over() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    ends = {one: 5, two: 7}
    assert closings({one: 3, two: -1}, ends, is_over=False) is None
    assert closings({one: 3, two: 4}, ends, is_over=False) == {one: 3, two: 4}
    assert closings({one: 3, two: -1}, ends, is_over=True) == {one: 3, two: 7}


def test_all_records_of_a_new_partition_came_after_a_closing_but_not_the_past_of_a_new_topic() -> None:
    known = {TopicPartition("t", 0): 3}
    found = {TopicPartition("t", 0): 9, TopicPartition("t", 1): 9, TopicPartition("other", 0): 9}
    assert with_new_partitions(known, found) == {
        TopicPartition("t", 0): 3,
        TopicPartition("t", 1): 0,
        TopicPartition("other", 0): 9,
    }
    assert with_new_partitions({}, found) == found


def test_windows_are_read_back_from_a_config() -> None:
    of = {TopicPartition("a.b", 1): Window(1, 2, 3), TopicPartition("a.b", 10): Window(0, 0, 0)}
    assert decode_windows(encode_windows(of)) == of


_PLACE = TopicPartition("t", 0)
_TEN = Interval(100, 200)


def _ten(**more: str) -> IntervalFilter:
    """The filter of an interval whose records are before offset 6; those from offset 2 on are late if they are older."""
    return _filter(_TEN, {_PLACE: Window(0, 2, 6)}, **more)


_MESSAGES = _log(_PLACE, [50, 150, 60, 250, 199, 100, 150])
"""Before, inside, late, after, inside, inside, and one that comes after the closing."""


def test_counts_are_those_before_an_offset() -> None:
    found = _ten()
    assert [message.offset() for message in found.take(_MESSAGES)] == [1, 2, 4, 5]
    counts = [Counts.of(found.metadata(_PLACE, offset)) for offset in range(7)]
    assert [each.records for each in counts] == [0, 0, 1, 2, 2, 3, 4]
    assert [each.late for each in counts] == [0, 0, 0, 1, 1, 1, 1]
    assert found.passed([_PLACE]) == {_PLACE: 6}
    assert found.finished([_PLACE]) == {_PLACE}


@pytest.mark.parametrize("committed", range(7))
def test_after_a_kill_the_counts_continue_at_the_last_commit(committed: int) -> None:
    found = _ten()
    found.take(_MESSAGES)
    again = _ten()
    again.assigned({}, {_PLACE: (committed, found.metadata(_PLACE, committed))})
    again.take(_MESSAGES[committed:])
    assert Counts.of(again.metadata(_PLACE, 6)) == Counts(4, 1)


@pytest.mark.parametrize("back_to", range(7))
def test_what_is_read_again_is_counted_once(back_to: int) -> None:
    found = _ten()
    found.take(_MESSAGES)
    found.sought({_PLACE: back_to})
    assert found.passed([_PLACE]) == {_PLACE: min(back_to, 6)}, "what was not put again must not be committed"
    assert found.finished([_PLACE]) == (frozenset() if back_to < 6 else {_PLACE})
    found.take(_MESSAGES[back_to:])
    assert Counts.of(found.metadata(_PLACE, 6)) == Counts(4, 1)


@pytest.mark.parametrize("committed", range(7))
def test_a_commit_forgets_only_offsets(committed: int) -> None:
    found = _ten()
    found.take(_MESSAGES)
    found.committed(_PLACE, committed)
    assert Counts.of(found.metadata(_PLACE, 6)) == Counts(4, 1)


def test_records_that_the_target_has_and_kafka_does_not_know_of_make_the_counts_a_least() -> None:
    found = _ten()
    found.assigned({_PLACE: 4}, {_PLACE: (2, Counts(1, 0).metadata())})
    found.take(_MESSAGES[4:])
    assert Counts.of(found.metadata(_PLACE, 6)) == Counts(3, 0, at_least=True)
    assert Counts.of("") == Counts()


def test_late_records_are_refused_if_they_belong_to_the_dead_letter_queue() -> None:
    found = _ten(**{LATE: "dlq"})
    assert [message.offset() for message in found.take(_MESSAGES)] == [1, 4, 5]
    assert [message.offset() for message in found.take_late()] == [2]
    assert found.take_late() == []
    assert Counts.of(found.metadata(_PLACE, 6)) == Counts(3, 1)


def test_a_partition_that_the_interval_does_not_know_is_left_to_the_next_one() -> None:
    found = _ten()
    assert found.take(_log(TopicPartition("t", 1), [150])) == []
    assert found.passed([TopicPartition("t", 1)]) == {}
    assert found.end(TopicPartition("t", 1)) == 0
    assert found.ends == {_PLACE: 6}


def test_a_record_without_a_time_is_a_late_one_by_its_position() -> None:
    found = _ten()
    assert [message.offset() for message in found.take(_log(_PLACE, [-1, -1, -1]))] == [2]
