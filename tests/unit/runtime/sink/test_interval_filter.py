"""The records that runs of intervals move, and their counts: each record in one interval, in whatever order runs come."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import SchemaAndValue, TopicPartition
from sluiceway.config.intervals import LATE, POSITIONS, RERUNS, Interval, IntervalRun
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.kafka.windows import Window, decode_windows, encode_windows
from sluiceway.runtime.sink.interval_filter import IntervalFilter
from sluiceway.runtime.sink.record_time import TimeOf, field_time, kafka_time
from sluiceway.storage.intervals import (
    Counts,
    IntervalEntry,
    IntervalState,
    Ledger,
    asked_for,
    begun,
    closings,
    in_order,
    introduced,
    of_same_topics,
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

    def value(self) -> Any:
        return self.place, self.at

    def timestamp(self) -> tuple[int, int]:
        return (0, -1) if self.time < 0 else (1, self.time)


def _log(place: TopicPartition, times: Sequence[int]) -> list[ConsumedMessage]:
    return [Message(place, offset, time) for offset, time in enumerate(times)]


def _first_at(times: Sequence[int], moment: int) -> int:
    """Return what Kafka answers for a time: the first offset whose timestamp is at or after it, -1 if there is none."""
    return next((offset for offset, time in enumerate(times) if time >= moment), -1)


def _filter(interval: Interval, of: Mapping[TopicPartition, Window], time_of: TimeOf = kafka_time, **more: str) -> IntervalFilter:
    return IntervalFilter({**IntervalRun("live", interval, 1).keys(), POSITIONS: encode_windows(of), **more}, time_of)


_TIMES = st.lists(st.integers(-1, 6 * _HOUR), max_size=40)
_OWN = st.one_of(st.integers(-50, 7 * _HOUR), st.none(), st.just("no time"), st.booleans())
"""The content of a record's field: a time, or none."""


class _Times(JsonConverter):
    """Reads the times that messages have in a field, by partition and offset, which ``Message`` has as its value."""

    def __init__(self, times: Mapping[tuple[TopicPartition, int], Any]) -> None:
        self._times = times

    def to_connect_data(self, topic: str, data: Any) -> SchemaAndValue:
        return SchemaAndValue(None, {"a": {"at": self._times[data]}})


@pytest.mark.parametrize("is_field", [False, True])
@given(st.lists(_TIMES, min_size=1, max_size=3), st.data())
def test_each_record_belongs_to_one_interval(is_field: bool, logs: list[list[int]], data: st.DataObject) -> None:
    places = [TopicPartition("t", number) for number in range(len(logs))]
    converter = _Times({(each, offset): data.draw(_OWN) for each in places for offset in range(len(logs[each.partition]))})
    time_of = field_time("a.at", converter) if is_field else kafka_time
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
        found_filter = _filter(Interval(start, end), read, time_of)
        for each in places:
            messages = _log(each, logs[each.partition])
            for message in found_filter.take(messages[read[each].start :]):
                time = time_of(message)
                late = time < start
                assert time < end
                assert message.offset() < closed[end][each]
                assert not late or message.offset() >= closed[start][each]
                taken.append((each, message.offset()))
    assert len(taken) == len(set(taken)), "no record is in two intervals"
    last = boundaries[-1]
    for each in places:
        for offset, time in enumerate(map(time_of, _log(each, logs[each.partition]))):
            before_first = time < boundaries[0] and offset < closed[boundaries[0]][each]
            comes_later = time >= last or offset >= closed[last][each]
            assert ((each, offset) in taken) != (before_first or comes_later), (each, offset, time)


@dataclass
class Reruns:
    """Moves intervals of a log with ``airflow.interval.late=rerun``, and keeps the offsets that each has moved last."""

    times: Mapping[TopicPartition, Sequence[int]]
    closings: Mapping[int, Mapping[TopicPartition, int]]
    entries: dict[int, IntervalEntry] = field(default_factory=dict)
    moved: dict[int, set[tuple[TopicPartition, int]]] = field(default_factory=dict)

    def move(self, interval: Interval, within: int | None) -> None:
        known = {
            each: self.closings[each] for entry in self.entries.values() for each in (entry.interval.start, entry.interval.end)
        }
        start, end = interval.start, interval.end
        ledger = Ledger(self.entries, {**known, start: self.closings[start], end: self.closings[end]})
        entry = introduced(ledger, interval, within)
        first = {each: _first_at(times, start) for each, times in self.times.items()}
        read = decode_windows(
            encode_windows(windows(first, self.closings[start], self.closings[end], left=ledger.left_to(entry)))
        )
        new = begun(entry, interval, "r", 0, read)
        left = ledger.left_by(new)
        found = _filter(interval, read, kafka_time, **{RERUNS: json.dumps([(each.start, each.end) for each in left])})
        self.moved[start] = set()
        total = Counts()
        for each, times in self.times.items():
            taken = found.take(_log(each, times)[read[each].start :])
            self.moved[start] |= {(each, message.offset()) for message in taken}
            assert found.passed([each]).get(each, read[each].last) <= read[each].last
            total = total.plus(Counts.of(found.metadata(each, read[each].last)))
        assert total.records == len(self.moved[start])
        self.entries[start] = replace(new, state=IntervalState.DONE)
        for number, other in enumerate(left if new.attempt == 1 else ()):
            if total.left >> number & 1:
                self.entries[other.start] = replace(self.entries[other.start], rerun=1)

    def rerun(self) -> None:
        while waiting := [entry for entry in self.entries.values() if entry.rerun]:
            self.move(waiting[0].interval, None)


@given(st.lists(_TIMES, min_size=1, max_size=3), st.sampled_from([None, 0, _HOUR, 2 * _HOUR, 9 * _HOUR]), st.data())
def test_late_records_are_moved_once_by_the_rerun_of_their_interval_or_by_the_next_one(
    logs: list[list[int]], within: int | None, data: st.DataObject
) -> None:
    times = {TopicPartition("t", number): log for number, log in enumerate(logs)}
    boundaries = range(0, 6 * _HOUR, _HOUR)
    seen = dict.fromkeys(times, 0)
    closed: dict[int, dict[TopicPartition, int]] = {}
    for boundary in boundaries:
        seen = {each: data.draw(st.integers(seen[each], len(log))) for each, log in times.items()}
        closed[boundary] = dict(seen)
    all_of = [Interval(*each) for each in pairwise(boundaries)]
    order = [*data.draw(st.permutations(all_of)), *data.draw(st.lists(st.sampled_from(all_of), max_size=6))]
    reruns = Reruns(times, closed)
    known: list[Interval] = []
    for interval in order:
        reruns.move(interval, within)
        if data.draw(st.booleans()):
            reruns.rerun()
        if interval not in known:
            known.append(interval)
    reruns.rerun()
    taken = [each for moved in reruns.moved.values() for each in moved]
    assert len(taken) == len(set(taken)), "no record is in two intervals"
    last = boundaries[-1]
    where = {each: start for start, moved in reruns.moved.items() for each in moved}
    for partition, log in times.items():
        for offset, time in enumerate(log):
            before_first = time < boundaries[0] and offset < closed[boundaries[0]][partition]
            comes_later = time >= last or offset >= closed[last][partition]
            assert ((partition, offset) in where) != (before_first or comes_later), (partition, offset, time)
            if (partition, offset) not in where or time < 0:
                continue
            own = next(each for each in all_of if each.start <= time < each.end)
            found = next(each for each in all_of if each.start == where[partition, offset])
            if found != own:  # it is with the interval that has found it
                first = next(each for each in all_of if closed[each.end][partition] > offset and each.end > time)
                assert found == first
                is_known = known.index(own) < known.index(found)
                assert not is_known or within is None or own.start < found.start - within


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


@pytest.mark.parametrize("is_pattern", [False, True])
def test_all_records_of_a_topic_that_was_not_there_yet_came_after_a_closing(is_pattern: bool) -> None:
    known = asked_for(["t"], is_pattern=is_pattern)
    assert with_new_partitions(known, {TopicPartition("t", 0): 9}) == {**known, TopicPartition("t", 0): 0}
    other = TopicPartition("other", 0)
    assert with_new_partitions(known, {other: 9})[other] == (0 if is_pattern else 9)


def test_without_topics_nothing_closes_before_its_time() -> None:
    assert closings({}, {}, is_over=False) is None
    assert closings({}, {}, is_over=True) == {}


def test_the_closings_of_a_topic_that_was_created_again_do_not_count() -> None:
    one, two, other = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("other", 0)
    known = {one: 5, two: 50, other: 7, **asked_for(["t"], is_pattern=False)}
    assert of_same_topics(known, {one: 9, two: 9, other: 7}) == {other: 7}
    assert of_same_topics(known, {one: 9, two: 50, other: 7}) == known


def test_boundaries_close_in_the_order_of_their_times() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    known = {10: {one: 5, two: 5}, 30: {one: 8}}
    assert in_order(20, {one: 9, two: 9}, known) == {one: 8, two: 9}
    assert in_order(20, {one: 2, two: 2}, known) == {one: 5, two: 5}
    assert in_order(20, {one: 6, two: 6}, known) == {one: 6, two: 6}


def test_windows_are_read_back_from_a_config() -> None:
    of = {TopicPartition("a.b", 1): Window(1, 2, 3), TopicPartition("a.b", 10): Window(0, 0, 0, ((5, 7), (9, 10)))}
    assert decode_windows(encode_windows(of)) == of


_PLACE = TopicPartition("t", 0)
_TEN = Interval(100, 200)


def _ten(**more: str) -> IntervalFilter:
    """The filter of an interval whose records are before offset 6; those from offset 2 on are late if they are older."""
    return _filter(_TEN, {_PLACE: Window(0, 2, 6)}, kafka_time, **more)


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


def test_the_end_of_a_partition_is_enough_if_only_gaps_are_left() -> None:
    found = _ten()
    found.take(_MESSAGES[:3])
    found.reached({_PLACE: 5})
    assert found.finished([_PLACE]) == frozenset(), "an open transaction holds back what comes before the end"
    found.reached({_PLACE: 6, TopicPartition("t", 1): 9})
    assert found.passed([_PLACE]) == {_PLACE: 6}
    found.sought({_PLACE: 2})
    assert found.finished([_PLACE]) == frozenset(), "what is read again is not passed"


def test_late_messages_that_are_read_again_are_refused_once() -> None:
    found = _ten(**{LATE: "dlq"})
    found.take(_MESSAGES)
    found.sought({_PLACE: 2})
    found.take(_MESSAGES[2:])
    assert [message.offset() for message in found.take_late()] == [2]


def test_what_others_have_left_to_an_interval_is_taken_and_nothing_else_behind_its_end() -> None:
    found = _filter(_TEN, {_PLACE: Window(0, 0, 2, ((3, 4), (6, 8)))})
    assert [message.offset() for message in found.take(_log(_PLACE, [150] * 5))] == [0, 1, 3]
    assert found.finished([_PLACE]) == frozenset()
    assert found.end(_PLACE) == 8
    messages = _log(_PLACE, [150, 150, 150, 150, 150, 150, 50, 150, 150])
    assert [message.offset() for message in found.take(messages[5:])] == [7], "an older record is not its own"
    assert found.finished([_PLACE]) == {_PLACE}
    assert Counts.of(found.metadata(_PLACE, 8)) == Counts(4, 0)


def test_late_records_of_an_interval_that_is_moved_again_are_left_to_it() -> None:
    found = _ten(**{RERUNS: "[[0,40],[60,100]]"})
    assert [message.offset() for message in found.take(_log(_PLACE, [50, 150, 60, 50, 0, 39, 150]))] == [1, 3]
    assert Counts.of(found.metadata(_PLACE, 6)) == Counts(2, 4, left=0b11)
    again = _ten(**{RERUNS: "[[0,40],[60,100]]"})
    again.assigned({}, {_PLACE: (6, found.metadata(_PLACE, 6))})
    assert Counts.of(again.metadata(_PLACE, 6)) == Counts(2, 4, left=0b11)


def test_after_a_kill_between_two_commits_every_interval_may_have_been_left_late_records() -> None:
    found = _ten(**{RERUNS: "[[0,40],[60,100]]"})
    found.assigned({_PLACE: 4}, {_PLACE: (2, Counts(1, 0).metadata())})
    assert Counts.of(found.metadata(_PLACE, 6)) == Counts(1, 0, at_least=True, left=0b11)
