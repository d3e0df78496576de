from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_INVALID, Message

from sluiceway.api import TopicPartition
from sluiceway.kafka import clients
from sluiceway.runtime.sink.task_consumer import TaskConsumer, call_with_timeout
from unit.runtime.fake_consumer import FakeConsumer

A = TopicPartition("t", 0)


class Listener:
    """Lets an assignment start where the group has committed."""

    def on_partitions_assigned(self, _partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {}

    def on_partitions_revoked(self, _partitions: frozenset[TopicPartition]) -> None: ...

    def on_partitions_lost(self, _partitions: frozenset[TopicPartition]) -> None: ...


class PausingConsumer(FakeConsumer):
    """Knows a position from the first message on, as librdkafka does, and gives no messages of a paused partition."""

    position_known = False

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self.paused: list[Any] = []

    def consume(self, number: int, _timeout: float) -> list[Any]:
        read = [] if self.paused else super().consume(number, _timeout)
        self.position_known = self.position_known or bool(read)
        return read

    def position(self, partitions: list[Any]) -> list[Any]:
        for each in partitions:
            each.offset = 1 if self.position_known else OFFSET_INVALID
        return partitions

    def seek(self, position: Any) -> None:
        super().seek(position)
        self.position_known = False

    def pause(self, partitions: list[Any]) -> None:
        self.paused += partitions

    def resume(self, partitions: list[Any]) -> None:
        resumed = {(each.topic, each.partition) for each in partitions}
        self.paused = [each for each in self.paused if (each.topic, each.partition) not in resumed]


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> TaskConsumer:
    monkeypatch.setattr(PausingConsumer, "messages", [Message(topic="t", partition=0, offset=offset) for offset in range(2)])
    monkeypatch.setattr(clients, "consumer", PausingConsumer)
    made = TaskConsumer({}, 10)
    made.subscribe(["t"], Listener())
    return made


def offsets(consumer: TaskConsumer) -> list[int]:
    return [message.offset() for message in consumer.poll(0)]


def test_a_partition_assigned_during_a_pause_is_paused_with_its_first_message_which_is_read_again(consumer: TaskConsumer) -> None:
    fake = FakeConsumer.made[-1]
    assert isinstance(fake, PausingConsumer)
    consumer.pause()
    consumer.idle(0)
    assert consumer.assignment == {A}
    assert fake.paused == []  # librdkafka may be about to start fetching it
    consumer.idle(0)
    assert len(fake.paused) == 1
    consumer.resume()
    assert offsets(consumer) == [0, 1]


def test_a_task_that_pauses_a_new_partition_gets_its_messages_after_the_resume(consumer: TaskConsumer) -> None:
    assert offsets(consumer) == []  # the assignment
    consumer.pause_for_task(frozenset({A}))
    assert offsets(consumer) == []
    assert offsets(consumer) == []
    consumer.resume_for_task(frozenset({A}))
    assert offsets(consumer) == [0, 1]


def test_partitions_that_the_task_resumes_stay_paused_while_the_worker_pauses_all(consumer: TaskConsumer) -> None:
    assert offsets(consumer) == []  # the assignment
    assert offsets(consumer) == [0, 1]
    consumer.pause_for_task(frozenset({A}))
    consumer.pause()
    consumer.resume_for_task(frozenset({A}))
    assert cast(PausingConsumer, FakeConsumer.made[-1]).paused
    consumer.resume()
    assert not cast(PausingConsumer, FakeConsumer.made[-1]).paused


def test_a_partition_that_the_task_paused_stays_paused_when_the_worker_resumes(consumer: TaskConsumer) -> None:
    assert offsets(consumer) == []  # the assignment
    assert offsets(consumer) == [0, 1]
    consumer.pause_for_task(frozenset({A}))
    consumer.pause()
    consumer.resume()
    assert cast(PausingConsumer, FakeConsumer.made[-1]).paused


def test_a_call_that_blocks_times_out_and_another_returns_its_result() -> None:
    never = threading.Event()
    with pytest.raises(TimeoutError, match="The commit took longer than"):
        call_with_timeout(0.05, never.wait, "The commit")
    never.set()
    assert call_with_timeout(10.0, lambda: 7, "Seven") == 7
    with pytest.raises(ValueError, match="own"):
        call_with_timeout(10.0, lambda: int("own"), "It")


def joined(consumer: TaskConsumer, callback: str, positions: list[Any]) -> bool:
    """Return whether the consumer counts as a member after one of librdkafka's callbacks."""
    fake = FakeConsumer.made[-1]
    fake.callbacks[callback](fake, positions)
    return consumer.joined


@pytest.mark.parametrize(
    ("callback", "strategy", "member"),
    [
        ("on_lost", "cooperative-sticky", False),
        ("on_lost", "range", False),
        ("on_revoke", "range", False),
        ("on_revoke", "cooperative-sticky", True),
    ],
)
def test_a_member_that_lost_all_partitions_has_not_joined_until_the_next_assignment(
    monkeypatch: pytest.MonkeyPatch, callback: str, strategy: str, member: bool
) -> None:
    monkeypatch.setattr(clients, "consumer", FakeConsumer)
    consumer = TaskConsumer({"partition.assignment.strategy": strategy}, 10)
    consumer.subscribe(["t"], Listener())
    consumer.poll(0)
    assert consumer.joined
    assert joined(consumer, callback, [clients.TopicPartitionOffset(*A)]) is member
    assert joined(consumer, "on_assign", [])
