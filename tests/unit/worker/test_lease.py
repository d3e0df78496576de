"""The lease while the cluster is unreachable, and beside Kafka Connect's own workers. A fake stands in for the cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import FencedError, InternalTopicError, KafkaClientError
from sluiceway.storage.factory import Stores
from sluiceway.storage.memory import MemoryConfigBackingStore
from sluiceway.storage.model import State, Status
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker import lease
from sluiceway.worker.kafka_channel import KafkaControlChannel

WORKER = WorkerConfig.of({"group.id": "g"})


class Writer:
    """Stands in for FencedWriter: raises ``errors`` first, one for each write, and must fence again after each."""

    def __init__(self, *_: object) -> None:
        self.active = False
        self.fenced = 0
        self.written = 0
        self.errors: list[Exception] = []

    def fence(self) -> None:
        self.active = True
        self.fenced += 1

    def write(self, records: object) -> dict[TopicPartition, int]:
        if self.errors:
            self.active = False
            raise self.errors.pop(0)
        self.written += 1
        return {}

    def close(self) -> None:
        self.active = False


class Topic:
    """Stands in for the reader of the status topic."""

    def read_to_end(self, timeout: float) -> None: ...

    def wait_for(self, ends: object) -> None: ...


class Cluster:
    """A driver's control channel on fakes; ``connect`` holds the group members that each request for them returns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connect: list[list[str]] = []
        monkeypatch.setattr(lease, "_RETRY_SECONDS", (0.01, 0.02))
        monkeypatch.setattr(lease, "FencedWriter", Writer)
        monkeypatch.setattr(lease, "connect_workers", lambda *_: self.connect.pop(0) if self.connect else [])
        self.status = KafkaStatusBackingStore(WORKER)
        self.status._log = Topic()  # type: ignore[assignment]
        self.channel = KafkaControlChannel("c", WORKER, "me:1", Stores(MemoryConfigBackingStore(), self.status, None))  # type: ignore[arg-type]
        self.writer: Writer = self.channel._lease._writer  # type: ignore[assignment]
        self.status._state.connectors["c"] = Status(State.RUNNING, "before:1", 4)
        self.channel.acquire()

    def take_over(self) -> None:
        self.status._state.connectors["c"] = Status(State.RUNNING, "other:2", 6)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def unreachable() -> KafkaClientError:
    return KafkaClientError("the brokers are down", "_ALL_BROKERS_DOWN")


def test_a_new_lease_increases_the_generation_by_one(cluster: Cluster) -> None:
    assert cluster.channel.generation == 5


def test_a_write_waits_for_an_unreachable_cluster_and_takes_the_lease_again(cluster: Cluster) -> None:
    cluster.writer.errors = [unreachable(), unreachable(), unreachable()]
    cluster.channel.publish_connector(State.RUNNING)
    assert (cluster.writer.written, cluster.writer.fenced) == (1, 4)


def test_a_lease_that_another_driver_took_meanwhile_is_not_taken_again(cluster: Cluster) -> None:
    cluster.writer.errors = [unreachable()]
    cluster.take_over()
    with pytest.raises(FencedError, match="other:2 has taken connector c over"):
        cluster.channel.publish_connector(State.RUNNING)
    assert (cluster.writer.written, cluster.writer.fenced) == (0, 1)


def test_a_driver_that_must_stop_does_not_wait_for_the_cluster(cluster: Cluster) -> None:
    cluster.writer.errors = [unreachable(), unreachable()]
    cluster.channel.stop_waiting()
    with pytest.raises(KafkaClientError):
        cluster.channel.publish_connector(State.UNASSIGNED)
    assert len(cluster.writer.errors) == 1


def test_a_write_fails_once_the_cluster_has_been_unreachable_too_long(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_CLUSTER_DOWN_SECONDS", 0.05)
    cluster.writer.errors = [unreachable() for _ in range(1000)]
    with pytest.raises(KafkaClientError):
        cluster.channel.publish_connector(State.RUNNING)


@pytest.mark.parametrize("error", [FencedError("by a newer one"), InternalTopicError("the topic was deleted")])
def test_errors_that_waiting_cannot_repair_are_raised_at_once(cluster: Cluster, error: Exception) -> None:
    cluster.writer.errors = [error, error]
    with pytest.raises(type(error)):
        cluster.channel.publish_tasks([0], State.RUNNING)
    assert len(cluster.writer.errors) == 1


@pytest.mark.parametrize("write", [lambda channel: channel.publish_connector(State.RUNNING), lambda channel: channel.acquire()])
def test_a_driver_refuses_to_run_while_kafka_connect_workers_are_up(
    cluster: Cluster, write: Callable[[KafkaControlChannel], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "_CONNECT_LEAVE_SECONDS", 0.05)
    cluster.connect = [["10.0.0.7", "10.0.0.7"]] * 1000
    with pytest.raises(FencedError, match=r"2 worker\(s\) with group\.id=g are up, on 10\.0\.0\.7\."):
        write(cluster.channel)
    assert cluster.writer.written == 0


def test_acquire_waits_for_a_kafka_connect_worker_that_is_leaving_the_group(cluster: Cluster) -> None:
    cluster.connect = [["10.0.0.7"], ["10.0.0.7"]]
    cluster.channel.acquire()
    assert cluster.connect == []
