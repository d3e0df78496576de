from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.kafka import topic_writer as writer
from sluiceway.kafka.topic_writer import TopicWriter


class Producer:
    """Delivers each record, when flushed, with the error that a test has set or with its offset."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self.sent: list[tuple[str, Callable[..., None]]] = []
        self.written = 0
        self.room = 100

    def produce(self, topic: str, *, key: bytes, value: bytes, headers: list[Any], on_delivery: Callable[..., None]) -> None:
        if len(self.sent) >= self.room:
            raise BufferError("Local: Queue full")
        self.sent.append((topic, on_delivery))

    def poll(self, timeout: float) -> None:
        self.flush(timeout)

    def flush(self, timeout: float) -> None:
        if self.error is not None and self.error.fatal():
            raise KafkaException(self.error)
        for topic, delivered in self.sent:
            place = SimpleNamespace(topic=lambda t=topic: t, partition=lambda: 0, offset=lambda o=self.written: o)
            delivered(self.error, place)
            self.written += 1
        self.sent = []


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Producer]:
    """The created producers, in order."""
    producers: list[Producer] = []

    def make(_config: object) -> Producer:
        producers.append(Producer())
        return producers[-1]

    monkeypatch.setattr(writer, "producer", make)
    return producers


def test_a_write_returns_the_end_offset_of_each_partition(made: list[Producer]) -> None:
    records = TopicWriter(WorkerConfig.of({}), "c")
    assert records.write([("t", b"a", b"1"), ("t", b"b", None)]) == {TopicPartition("t", 0): 2}
    assert records.write([]) == {}


@pytest.mark.parametrize("error", [None, KafkaError(KafkaError._MSG_TIMED_OUT)], ids=["written", "timed out"])
def test_a_write_waits_for_room_in_the_producers_buffer(made: list[Producer], error: KafkaError | None) -> None:
    records = TopicWriter(WorkerConfig.of({}), "c")
    made[0].room, made[0].error = 2, error
    with nullcontext() if error is None else pytest.raises(KafkaClientError, match="_MSG_TIMED_OUT"):
        assert records.write([("t", b"a", b"1")] * 5) == {TopicPartition("t", 0): 5}


def test_a_record_that_is_not_acknowledged_raises_an_error_and_the_next_write_works(made: list[Producer]) -> None:
    records = TopicWriter(WorkerConfig.of({}), "c")
    made[0].error = KafkaError(KafkaError._MSG_TIMED_OUT)
    with pytest.raises(KafkaClientError, match="write to t") as caught:
        records.write([("t", b"a", b"1")])
    assert caught.value.code == "_MSG_TIMED_OUT"
    made[0].error = None
    assert records.write([("t", b"a", b"1")])
    assert len(made) == 1


def test_a_producer_with_a_fatal_error_is_replaced(made: list[Producer]) -> None:
    records = TopicWriter(WorkerConfig.of({}), "c")
    made[0].error = KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "test", True)
    with pytest.raises(KafkaClientError):
        records.write([("t", b"a", b"1")])
    assert records.write([("t", b"a", b"1")])
    assert len(made) == 2
    made[1].error = made[0].error
    records.close()
