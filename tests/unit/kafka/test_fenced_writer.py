from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, FencedError, KafkaClientError
from sluiceway.kafka import fenced_writer as transactions
from sluiceway.kafka.fenced_writer import FencedWriter

RECORDS = [("t", b"k", b"v"), ("t", b"k2", None)]


def failure(code: int, *, fatal: bool = False, retriable: bool = False, abort: bool = False) -> KafkaException:
    return KafkaException(KafkaError(code, "test", fatal, retriable, abort))


class Producer:
    """Records calls and raises the errors that a test has planned for each method."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.plan: dict[str, list[KafkaException]] = {}
        self.sent: list[Callable[..., None]] = []
        self.dead = False  # after a fatal error every call fails

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.plan.get(name):
            error = self.plan[name].pop(0)
            self.dead = self.dead or error.args[0].fatal()
            raise error

    def init_transactions(self, timeout: float) -> None:
        self._call("init")

    def begin_transaction(self) -> None:
        self._call("begin")
        self.sent = []

    def produce(self, topic: str, *, key: bytes, value: bytes, headers: list[Any], on_delivery: Callable[..., None]) -> None:
        self._call("produce")
        self.sent.append(on_delivery)

    def commit_transaction(self, timeout: float) -> None:
        self._call("commit")
        for offset, delivered in enumerate(self.sent):
            delivered(None, SimpleNamespace(topic=lambda: "t", partition=lambda: 0, offset=lambda offset=offset: offset))

    def abort_transaction(self, timeout: float) -> None:
        self._call("abort")

    def purge(self) -> None:
        self._call("purge")

    def flush(self, timeout: float) -> None:
        if self.dead:
            raise failure(KafkaError._FENCED, fatal=True)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Producer:
    fake = Producer()
    monkeypatch.setattr(transactions, "producer", lambda _config: fake)
    monkeypatch.setattr(transactions, "_CONNECT_SECONDS", 0)
    return fake


@pytest.fixture
def writer(client: Producer) -> FencedWriter:
    writer = FencedWriter(WorkerConfig.of({}), "connect-cluster-g", "g-configs")
    writer.fence()
    client.calls.clear()
    return writer


def test_a_write_is_one_transaction_and_returns_the_end_offsets(writer: FencedWriter, client: Producer) -> None:
    assert writer.write(RECORDS) == {TopicPartition("t", 0): 2}
    assert client.calls == ["begin", "produce", "produce", "commit"]
    assert writer.active


def test_a_retriable_error_is_retried(writer: FencedWriter, client: Producer) -> None:
    client.plan = {"commit": [failure(KafkaError._TIMED_OUT, retriable=True)] * 2}
    writer.write(RECORDS)
    assert client.calls == ["begin", "produce", "produce", "commit", "commit", "commit"]


def test_retries_are_limited(writer: FencedWriter, client: Producer) -> None:
    client.plan = {"commit": [failure(KafkaError._TIMED_OUT, retriable=True)] * 100}
    with pytest.raises(KafkaClientError, match="connect-cluster-g"):
        writer.write(RECORDS)
    assert client.calls.count("commit") == 5
    assert not writer.active


def test_an_aborted_transaction_is_written_again_in_full(writer: FencedWriter, client: Producer) -> None:
    client.plan = {"commit": [failure(KafkaError._MSG_TIMED_OUT, abort=True)]}
    assert writer.write(RECORDS) == {TopicPartition("t", 0): 2}
    assert client.calls == ["begin", "produce", "produce", "commit", "abort", "begin", "produce", "produce", "commit"]


def test_a_transaction_that_is_always_aborted_is_an_error(writer: FencedWriter, client: Producer) -> None:
    client.plan = {"commit": [failure(KafkaError._MSG_TIMED_OUT, abort=True)] * 100}
    with pytest.raises(KafkaClientError, match="aborted the transaction 5 times"):
        writer.write(RECORDS)
    assert client.calls.count("abort") == 5


@pytest.mark.parametrize("step", ["begin", "produce", "commit"])
def test_a_fenced_writer_raises_at_any_step_and_must_fence_again(writer: FencedWriter, client: Producer, step: str) -> None:
    client.plan = {step: [failure(KafkaError._FENCED, fatal=True)]}
    with pytest.raises(FencedError):
        writer.write(RECORDS)
    assert not writer.active
    with pytest.raises(ConnectError, match="fence"):
        writer.write(RECORDS)
    writer.fence()
    assert writer.write(RECORDS)


def test_a_writer_that_could_not_fence_does_not_write(client: Producer) -> None:
    client.plan = {"init": [failure(KafkaError._FENCED, fatal=True)]}
    writer = FencedWriter(WorkerConfig.of({}), "id", "c")
    with pytest.raises(FencedError):
        writer.fence()
    with pytest.raises(ConnectError):
        writer.write(RECORDS)
    assert "begin" not in client.calls


def test_transactions_time_out_after_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    configs: list[Any] = []

    def producer(config: Any) -> Producer:
        configs.append(config)
        return Producer()

    monkeypatch.setattr(transactions, "producer", producer)
    FencedWriter(WorkerConfig.of({"producer.transactional.id": "x"}), "id", "c").fence()
    assert configs[0]["transaction.timeout.ms"] == "10000"
    assert configs[0]["transactional.id"] == "id"


def test_a_writer_that_is_fenced_between_two_records_is_told_so(writer: FencedWriter, client: Producer) -> None:
    """``produce`` only says that the producer is broken; its other calls say why."""
    begun = iter([None, failure(KafkaError._FENCED, fatal=True)])

    def begin() -> None:
        if (error := next(begun)) is not None:
            raise error

    client.begin_transaction = begin  # type: ignore[method-assign]
    client.plan = {"produce": [failure(KafkaError._FATAL)]}
    with pytest.raises(FencedError):
        writer.write(RECORDS)
    assert not writer.active
