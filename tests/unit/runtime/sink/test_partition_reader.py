from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, Message, TopicPartition

from sluiceway.api import TopicPartition as Partition
from sluiceway.java_plugins.fetched import FetchedMessages
from sluiceway.java_plugins.sink_task import JavaSinkTask
from sluiceway.runtime.sink.partition_reader import JavaReader

A, B = Partition("a", 0), Partition("b", 1)


class _Member(Consumer):
    """The consumer that is in the group. Notes what is called."""

    def __init__(self) -> None:
        super().__init__({"group.id": "g"})
        self.calls: list[tuple[str, Any]] = []

    def poll(self, timeout: float | None = -1) -> Message | None:
        self.calls.append(("poll", timeout))
        return None

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("assign", [(each.topic, each.partition, each.offset) for each in partitions]))

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("incremental_assign", [each.topic for each in partitions]))

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("pause", [each.topic for each in partitions]))


class _Task(JavaSinkTask):
    """Notes what it must read."""

    def __init__(self) -> None:
        self.requests: list[tuple[Sequence[object], float, int]] = []

    def read(self, changes: Sequence[object], seconds: float, most: int) -> FetchedMessages:
        self.requests.append((changes, seconds, most))
        return FetchedMessages([])


@pytest.fixture
def member() -> _Member:
    return _Member()


@pytest.fixture
def task() -> _Task:
    return _Task()


@pytest.fixture
def reader(member: _Member, task: _Task) -> JavaReader:
    return JavaReader(member, task)


def test_without_partitions_only_the_group_is_waited_for(reader: JavaReader, member: _Member, task: _Task) -> None:
    assert reader.read(0.8, 500) == ()
    assert member.calls == [("poll", 0.1)]
    assert task.requests == []


def test_the_member_fetches_nothing_and_java_starts_at_the_given_or_the_groups_offset(
    reader: JavaReader, member: _Member, task: _Task
) -> None:
    reader.assign([TopicPartition("a", 0, 7), TopicPartition("b", 1, OFFSET_INVALID)], incremental=False)
    reader.read(0.8, 500)
    assert member.calls == [("assign", [("a", 0, 0), ("b", 1, 0)]), ("pause", ["a", "b"]), ("poll", 0)]
    assert task.requests == [([["assign", [["a", 0, 7], ["b", 1, None]]]], 0.8, 500)]


def test_changes_reach_java_once_in_their_order_with_the_next_read(reader: JavaReader, member: _Member, task: _Task) -> None:
    reader.assign([TopicPartition("a", 0, 7)], incremental=True)
    reader.pause(frozenset({A}))
    reader.seek({A: 3})
    reader.resume(frozenset({A}))
    reader.pause(frozenset())
    reader.read(0, 10)
    reader.read(0, 20)
    changes = [["assign", [["a", 0, 7]]], ["pause", [["a", 0]]], ["seek", [["a", 0, 3]]], ["resume", [["a", 0]]]]
    assert task.requests == [(changes, 0, 10), ([], 0, 20)]
    assert ("incremental_assign", ["a"]) in member.calls


def test_a_lost_partition_is_unassigned_and_with_the_last_one_reading_ends(reader: JavaReader, task: _Task) -> None:
    reader.assign([TopicPartition("a", 0, 7), TopicPartition("b", 1, 8)], incremental=False)
    reader.forget(frozenset({A}))
    reader.read(0, 10)
    assert task.requests[0][0][1:] == [["unassign", [["a", 0]]]]
    reader.forget(frozenset({B}))
    reader.read(0, 10)
    assert len(task.requests) == 1
