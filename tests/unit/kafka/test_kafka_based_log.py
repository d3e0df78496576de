from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, InternalTopicError
from sluiceway.kafka import kafka_based_log as log_module
from sluiceway.kafka.kafka_based_log import KafkaBasedLog, LogRecord, TopicTail
from support.eventually import LIMIT


class Message:
    """The parts of a confluent_kafka message that the reader uses."""

    def __init__(self, partition: int, offset: int, error: int | None = None) -> None:
        self._partition, self._offset, self._error = partition, offset, error

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000 + self._offset

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"v"

    def error(self) -> KafkaError | None:
        return None if self._error is None else KafkaError(self._error)


class Reader:
    """A consumer that returns the messages that a test feeds to it."""

    def __init__(self) -> None:
        self.waiting: list[Message] = []
        self.fed = threading.Event()
        self.closed = threading.Event()
        self.timeouts: list[float] = []

    def feed(self, *messages: Message) -> None:
        self.waiting += messages
        self.fed.set()

    def assign(self, partitions: list[Any]) -> None:
        self.assigned = {each.partition: each.offset for each in partitions}

    def poll(self, timeout: float) -> Message | None:
        self.timeouts.append(timeout)
        self.fed.wait(timeout)
        return self.waiting.pop(0) if self.waiting else None

    def consume(self, count: int, timeout: float) -> list[Message]:
        taken, self.waiting = self.waiting, []
        self.fed.clear()
        return taken

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A topic with two partitions and end offsets set by a test, read with a fake consumer."""
    state = SimpleNamespace(ends={0: 0, 1: 0}, id="first")

    reader = Reader()
    state.reader = reader

    def consumer(config: dict[str, Any]) -> Reader:
        state.error_cb = config["error_cb"]
        return reader

    monkeypatch.setattr(log_module, "consumer", consumer)
    monkeypatch.setattr(log_module, "topic_id", lambda _admin, _topic: state.id)
    monkeypatch.setattr(log_module, "_RESTART_SECONDS", 0.01)
    monkeypatch.setattr(log_module, "beginning_offsets", lambda _admin, partitions: dict.fromkeys(partitions, 0))
    monkeypatch.setattr(
        log_module,
        "end_offsets",
        lambda _admin, _partitions, **_: {TopicPartition("t", partition): end for partition, end in state.ends.items()},
    )
    return state


@pytest.fixture
def records() -> list[LogRecord]:
    return []


@pytest.fixture
def topic(kafka: Any, records: list[LogRecord]) -> Any:
    topic = KafkaBasedLog(WorkerConfig.of({}), "t", 2, "id", records.append, admin=SimpleNamespace())  # type: ignore[arg-type]
    yield topic
    topic.stop()


def test_starting_reads_every_partition_to_its_end(kafka: Any, topic: KafkaBasedLog, records: list[LogRecord]) -> None:
    kafka.ends = {0: 2, 1: 1}
    kafka.reader.feed(Message(0, 0), Message(1, 0), Message(0, 1))
    topic.start()
    assert [record[1:4] for record in records] == [(0, 0, 1000), (1, 0, 1000), (0, 1, 1001)]
    assert kafka.reader.assigned == {0: 0, 1: 0}


def test_a_new_topic_that_the_broker_learns_of_meanwhile_is_read(
    kafka: Any, topic: KafkaBasedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beginning_offsets(_admin: object, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        kafka.id = "first"
        return dict.fromkeys(partitions, 0)

    monkeypatch.setattr(log_module, "beginning_offsets", beginning_offsets)
    kafka.id = None
    topic.start()
    kafka.id = "second"
    with pytest.raises(InternalTopicError, match="another topic has its name"):
        topic.read_to_end()


def test_the_end_of_partition_event_reaches_an_end_after_transaction_markers(kafka: Any, topic: KafkaBasedLog) -> None:
    kafka.ends = {0: 4, 1: 0}
    kafka.reader.feed(Message(0, 0), Message(0, 4, KafkaError._PARTITION_EOF))
    topic.start(timeout=5)


def test_an_end_that_is_not_reached_raises_an_error_with_the_offsets(kafka: Any, topic: KafkaBasedLog) -> None:
    kafka.ends = {0: 4, 1: 0}
    kafka.reader.feed(Message(0, 0))
    with pytest.raises(ConnectError, match=r"'t' could not be read to its end.*\{0: \(1, 4\)\}"):
        topic.start(timeout=0.3)


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._AUTO_OFFSET_RESET])
def test_a_lost_topic_is_remembered_and_raised_by_every_later_read(kafka: Any, topic: KafkaBasedLog, code: int) -> None:
    topic.start()
    kafka.reader.feed(Message(0, 0, code))
    kafka.ends = {0: 1, 1: 0}
    for _ in range(2):
        with pytest.raises(InternalTopicError, match="'t'"):
            topic.read_to_end(timeout=5)
    assert kafka.reader.closed.is_set()


def test_reading_waits_for_an_unreachable_broker(kafka: Any, topic: KafkaBasedLog, records: list[LogRecord]) -> None:
    topic.start()
    kafka.ends = {0: 1, 1: 0}
    kafka.reader.feed(Message(0, -1, KafkaError._TRANSPORT), Message(0, -1, KafkaError._ALL_BROKERS_DOWN), Message(0, 0))
    topic.read_to_end(timeout=5)
    assert len(records) == 1


def test_a_topic_that_ends_before_the_offset_read_is_lost(kafka: Any, topic: KafkaBasedLog) -> None:
    kafka.ends = {0: 1, 1: 0}
    kafka.reader.feed(Message(0, 0))
    topic.start()
    kafka.ends = {0: 0, 1: 0}
    with pytest.raises(InternalTopicError, match="created again"):
        topic.read_to_end(timeout=5)


@pytest.mark.parametrize("now", [None, "second"], ids=["deleted", "created again"])
def test_an_error_of_a_lost_topic_is_verified(kafka: Any, topic: KafkaBasedLog, now: str | None) -> None:
    topic.start()
    kafka.id = now
    kafka.error_cb(KafkaError(KafkaError._UNKNOWN_PARTITION))
    assert kafka.reader.closed.wait(LIMIT)
    with pytest.raises(InternalTopicError, match="'t' was deleted, truncated or created again"):
        topic.check()


def test_reading_continues_if_the_topic_still_exists(kafka: Any, topic: KafkaBasedLog, records: list[LogRecord]) -> None:
    topic.start()
    kafka.error_cb(KafkaError(KafkaError._UNKNOWN_PARTITION))
    kafka.ends = {0: 1, 1: 0}
    kafka.reader.feed(Message(0, 0))
    topic.read_to_end(timeout=5)
    topic.check()
    assert len(records) == 1


def test_a_topic_with_another_id_is_lost(kafka: Any, topic: KafkaBasedLog) -> None:
    topic.start()
    kafka.id = "second"
    with pytest.raises(InternalTopicError, match="another topic has its name"):
        topic.read_to_end(timeout=5)


def test_records_read_while_the_ends_are_requested_are_not_a_loss(
    kafka: Any, topic: KafkaBasedLog, records: list[LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.start()

    def slow_ends(_admin: Any, places: list[TopicPartition], **_: Any) -> dict[TopicPartition, int]:
        kafka.reader.feed(Message(0, 0))
        while not records:
            threading.Event().wait(0.001)
        while topic._positions[places[0]] == 0:
            threading.Event().wait(0.001)
        return dict.fromkeys(places, 0)

    monkeypatch.setattr(log_module, "end_offsets", slow_ends)
    topic.read_to_end(timeout=5)
    assert len(records) == 1


def test_an_error_in_the_callback_stops_the_reading_and_is_raised(kafka: Any) -> None:
    def fail(record: LogRecord) -> None:
        raise ValueError("bug")

    topic = KafkaBasedLog(WorkerConfig.of({}), "t", 2, "id", fail, admin=SimpleNamespace())  # type: ignore[arg-type]
    kafka.ends = {0: 1, 1: 0}
    kafka.reader.feed(Message(0, 0))
    with pytest.raises(ConnectError, match="ValueError: bug"):
        topic.start(timeout=5)


def test_a_callback_must_not_wait_for_its_own_topic(kafka: Any) -> None:
    errors: list[ConnectError] = []

    def wait(_record: LogRecord) -> None:
        try:
            reading.read_to_end(timeout=5)
        except ConnectError as error:
            errors.append(error)

    reading = KafkaBasedLog(WorkerConfig.of({}), "t", 2, "id", wait, admin=SimpleNamespace())  # type: ignore[arg-type]
    kafka.ends = {0: 1, 1: 0}
    kafka.reader.feed(Message(0, 0))
    reading.start(timeout=5)
    reading.stop()
    assert "must not wait" in str(errors)


def test_stop_closes_the_consumer_and_wakes_waiting_threads(kafka: Any, topic: KafkaBasedLog) -> None:
    topic.start()
    kafka.ends = {0: 9, 1: 0}
    errors: list[ConnectError] = []

    def wait() -> None:
        try:
            topic.read_to_end(timeout=30)
        except ConnectError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    topic.stop()
    waiting.join(timeout=LIMIT)
    assert kafka.reader.closed.is_set()
    assert "has been stopped" in str(errors)
    topic.stop()


def test_a_tail_returns_available_records_and_raises_when_its_topic_is_lost(kafka: Any) -> None:
    tail = TopicTail(WorkerConfig.of({}), "id", {TopicPartition("t", 0): 5})
    assert kafka.reader.assigned == {0: 5}
    assert tail.poll() == []
    kafka.reader.feed(Message(0, 5), Message(0, -1, KafkaError._TRANSPORT), Message(0, 6))
    assert [record.offset for record in tail.poll()] == [5, 6]
    kafka.reader.feed(Message(0, 7, KafkaError.OFFSET_OUT_OF_RANGE))
    with pytest.raises(InternalTopicError):
        tail.poll()


def test_a_tail_raises_when_the_client_reports_a_missing_partition(kafka: Any) -> None:
    tail = TopicTail(WorkerConfig.of({}), "id", {TopicPartition("t", 0): 5})
    kafka.error_cb(KafkaError(KafkaError._UNKNOWN_PARTITION))
    with pytest.raises(InternalTopicError, match="Topic 't'"):
        tail.poll()


def test_a_tail_waits_at_least_the_millisecond_that_librdkafka_can_wait(kafka: Any) -> None:
    tail = TopicTail(WorkerConfig.of({}), "id", {TopicPartition("t", 0): 5})
    for timeout in (0.0, 0.0004, 0.002):
        tail.poll(timeout)
    assert kafka.reader.timeouts == [0.0, 0.001, 0.002]
