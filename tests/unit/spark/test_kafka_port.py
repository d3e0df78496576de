"""The lease while the cluster is away, and beside Kafka Connect's own workers; the cluster is played by the test."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import FencedError, InternalTopicError, KafkaClientError
from sluiceway.kafka.kafka_based_log import LogRecord
from sluiceway.runtime.task import Order, TaskSpec
from sluiceway.storage.codec import encode_logger_level
from sluiceway.storage.factory import Stores
from sluiceway.storage.memory import MemoryConfigBackingStore
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker import kafka_channel as kafka_port
from sluiceway.worker.kafka_channel import KafkaControl, KafkaPort

WORKER = WorkerConfig.of({"group.id": "g"})


class Lease:
    """The transactional writer: fails with ``errors`` first, one for each write, and has to fence after each."""

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
    """The status topic as it was read."""

    def read_to_end(self, timeout: float) -> None: ...

    def wait_for(self, ends: object) -> None: ...


class Cluster:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connect: list[list[str]] = []
        monkeypatch.setattr(kafka_port, "_RETRY", (0.01, 0.02))
        monkeypatch.setattr(kafka_port, "FencedWriter", Lease)
        monkeypatch.setattr(kafka_port, "admin_client", lambda _worker: None)
        monkeypatch.setattr(kafka_port, "connect_workers", lambda *_: self.connect.pop(0) if self.connect else [])
        self.status = KafkaStatusBackingStore(WORKER)
        self.status._log = Topic()  # type: ignore[assignment]
        self.port = KafkaPort("c", WORKER, "me:1", Stores(MemoryConfigBackingStore(), self.status, None))  # type: ignore[arg-type]
        self.lease: Lease = self.port._lease  # type: ignore[assignment]
        self.status._state.connectors["c"] = Status(State.RUNNING, "before:1", 4)
        self.port.acquire()

    def taken_over(self) -> None:
        self.status._state.connectors["c"] = Status(State.RUNNING, "other:2", 6)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def away() -> KafkaClientError:
    return KafkaClientError("the brokers are down", "_ALL_BROKERS_DOWN")


def test_a_driver_counts_on_from_the_generation_before(cluster: Cluster) -> None:
    assert cluster.port.generation == 5


def test_a_cluster_that_is_away_is_waited_for_and_the_lease_taken_back(cluster: Cluster) -> None:
    cluster.lease.errors = [away(), away(), away()]
    cluster.port.publish_connector(State.RUNNING)
    assert (cluster.lease.written, cluster.lease.fenced) == (1, 4)


def test_a_lease_that_another_driver_took_meanwhile_is_not_taken_back(cluster: Cluster) -> None:
    cluster.lease.errors = [away()]
    cluster.taken_over()
    with pytest.raises(FencedError, match="other:2 has taken connector c over"):
        cluster.port.publish_connector(State.RUNNING)
    assert (cluster.lease.written, cluster.lease.fenced) == (0, 1)


def test_a_driver_that_is_to_end_waits_for_no_cluster(cluster: Cluster) -> None:
    cluster.lease.errors = [away(), away()]
    cluster.port.hurry()
    with pytest.raises(KafkaClientError):
        cluster.port.publish_connector(State.UNASSIGNED)
    assert len(cluster.lease.errors) == 1


def test_a_cluster_that_stays_away_is_given_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_port, "_CLUSTER_AWAY", 0.05)
    cluster.lease.errors = [away() for _ in range(1000)]
    with pytest.raises(KafkaClientError):
        cluster.port.publish_connector(State.RUNNING)


@pytest.mark.parametrize("error", [FencedError("by a newer one"), InternalTopicError("the topic was deleted")])
def test_what_waiting_does_not_mend_is_not_waited_for(cluster: Cluster, error: Exception) -> None:
    cluster.lease.errors = [error, error]
    with pytest.raises(type(error)):
        cluster.port.publish_tasks([0], State.RUNNING)
    assert len(cluster.lease.errors) == 1


@pytest.mark.parametrize("write", [lambda port: port.publish_connector(State.RUNNING), lambda port: port.acquire()])
def test_nothing_is_run_while_kafka_connect_workers_are_up(
    cluster: Cluster, write: Callable[[KafkaPort], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_port, "_CONNECT_LEAVES", 0.05)
    cluster.connect = [["10.0.0.7", "10.0.0.7"]] * 1000
    with pytest.raises(FencedError, match=r"2 worker\(s\) with group\.id=g are up, on 10\.0\.0\.7\."):
        write(cluster.port)
    assert cluster.lease.written == 0


def test_a_kafka_connect_worker_that_is_just_leaving_is_waited_for(cluster: Cluster) -> None:
    cluster.connect = [["10.0.0.7"], ["10.0.0.7"]]
    cluster.port.acquire()
    assert cluster.connect == []


# A task's own look at the topics.


class Tail:
    """The config and status topics from the task's start on; gives ``records`` once."""

    def __init__(self, *_: object) -> None:
        self.records: list[LogRecord] = []

    def poll(self, _timeout: float) -> list[LogRecord]:
        found, self.records = self.records, []
        return found

    def close(self) -> None: ...


@pytest.fixture
def levels() -> Iterator[None]:
    yield
    for name in ("sluiceway", "org.a"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.usefixtures("levels")
def test_a_task_hears_of_log_levels_that_are_set_for_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_port, "TopicTail", Tail)
    worker = WorkerConfig.of({"config.storage.topic": "configs", "status.storage.topic": "statuses"})
    spec = TaskSpec(id=TaskId("c", 0), config={}, worker=worker, worker_id="me:1", generation=1, sink=False)
    control = KafkaControl(spec, {}, Order.RUN)
    tail: Tail = control._tail  # type: ignore[assignment]

    def record(topic: str, logger: str, level: str) -> LogRecord:
        key, value = encode_logger_level(logger, level)
        return LogRecord(topic, 0, 0, 0, key, value)

    tail.records = [
        record("configs", "connector.c", "DEBUG"),
        record("configs", "org.a", "LOUD"),
        record("configs", "connector.d", "TRACE"),
        record("statuses", "connector.c", "ERROR"),
        record("configs", "org.a", "WARN"),
    ]
    assert control.order() is Order.RUN
    assert logging.getLogger("sluiceway").level == logging.DEBUG
    assert logging.getLogger("org.a").level == logging.WARNING
