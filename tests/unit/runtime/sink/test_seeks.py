from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from sluiceway.api import TopicPartition
from sluiceway.errors import KafkaClientError
from sluiceway.kafka.clients import ConsumedMessage, Consumer
from sluiceway.runtime.sink.seeks import Seeks

A = TopicPartition("t", 0)


class Fetching:
    """A consumer of one partition that answers seeks with ``errors`` first."""

    def __init__(self, *errors: int, position: int = OFFSET_INVALID) -> None:
        self.errors = list(errors)
        self.known = position
        self.seeks: list[int] = []
        self.now = 0.0

    def position(self, partitions: list[Any]) -> list[Position]:
        return [Position(each.topic, each.partition, self.known) for each in partitions]

    def seek(self, position: Any) -> None:
        if self.errors:
            raise KafkaException(KafkaError(self.errors.pop(0)))
        self.seeks.append(position.offset)


def seeks_of(consumer: Fetching) -> Seeks:
    return Seeks(cast(Consumer, consumer), clock=lambda: consumer.now)


def polled(seeks: Seeks, *offsets: int) -> list[int]:
    messages = [cast(ConsumedMessage, Message(topic="t", partition=0, offset=offset)) for offset in offsets]
    return [message.offset() for message in seeks.settled(messages)]


def test_a_partition_that_is_fetched_is_sought_once() -> None:
    consumer = Fetching(position=7)
    seeks = seeks_of(consumer)
    seeks.seek({A: 20})
    consumer.now = 10
    assert polled(seeks, 20, 21) == [20, 21]
    assert consumer.seeks == [20]


def test_a_seek_that_is_refused_is_repeated_at_each_poll() -> None:
    consumer = Fetching(KafkaError._STATE, KafkaError._STATE)
    seeks = seeks_of(consumer)
    seeks.seek({A: 20})
    assert polled(seeks) == []
    assert consumer.seeks == []
    assert polled(seeks) == []
    assert consumer.seeks == [20]


def test_a_seek_that_was_taken_and_forgotten_is_repeated_with_the_first_message() -> None:
    consumer = Fetching()
    seeks = seeks_of(consumer)
    seeks.seek({A: 20})
    assert polled(seeks, 0, 1) == []
    assert consumer.seeks == [20, 20]
    assert polled(seeks, 22, 23) == [22, 23]  # after a gap in the offsets
    assert consumer.seeks == [20, 20]


@pytest.mark.parametrize(
    "messages", [[(20, 21), (0, 1)], [(20, 21, 0, 1)], [(20,), (21, 0, 1)]], ids=["later", "at once", "within"]
)
def test_a_start_at_the_committed_offset_after_the_first_messages_is_undone(messages: list[tuple[int, ...]]) -> None:
    consumer = Fetching()
    seeks = seeks_of(consumer)
    seeks.seek({A: 20})
    assert [offset for poll in messages for offset in polled(seeks, *poll)] == [20, 21]
    assert consumer.seeks == [20, 22]
    assert polled(seeks, 22, 23) == [22, 23]


def test_a_start_ahead_after_the_first_messages_is_undone_and_a_gap_is_accepted() -> None:
    consumer = Fetching()
    seeks = seeks_of(consumer)
    seeks.seek({A: 20})
    assert polled(seeks, 20, 50, 51) == [20]
    assert consumer.seeks == [20, 21]
    assert polled(seeks, 21, 23, 24) == [21, 23, 24]
    assert polled(seeks, 30) == [30]
    assert consumer.seeks == [20, 21]


def test_a_partition_that_begins_before_the_offset_twice_is_read_from_there() -> None:
    consumer = Fetching()
    seeks = seeks_of(consumer)
    seeks.seek({A: 20})
    assert polled(seeks, 0, 1) == []
    assert polled(seeks, 0, 1) == [0, 1]
    assert consumer.seeks == [20, 20]


def test_a_partition_is_watched_for_a_minute() -> None:
    consumer = Fetching()
    seeks = seeks_of(consumer)
    seeks.seek({A: 20})
    assert polled(seeks, 20) == [20]
    consumer.now = 61.0
    assert polled(seeks, 21) == [21]
    assert polled(seeks, 0) == [0]


def test_a_seek_without_a_message_is_repeated_once_after_a_second() -> None:
    consumer = Fetching()
    seeks = seeks_of(consumer)
    seeks.seek({A: 20})
    for consumer.now in (0.5, 1.0, 5.0):
        assert polled(seeks) == []
    assert consumer.seeks == [20, 20]


def test_a_later_seek_replaces_an_earlier_one_and_a_lost_partition_has_none() -> None:
    consumer = Fetching(KafkaError._STATE, KafkaError._STATE)
    seeks = seeks_of(consumer)
    seeks.seek({A: 20})
    seeks.seek({A: 10})
    assert polled(seeks) == []
    assert consumer.seeks == [10]
    seeks.seek({A: 5})
    seeks.forget({A})
    assert polled(seeks, 0) == [0]


def test_other_errors_are_raised() -> None:
    with pytest.raises(KafkaClientError, match=r"^Cannot seek to offset 20 of t-0: .*_UNKNOWN_PARTITION"):
        seeks_of(Fetching(KafkaError._UNKNOWN_PARTITION)).seek({A: 20})
