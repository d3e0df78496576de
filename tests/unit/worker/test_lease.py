"""The lease while the cluster is unreachable, and beside Kafka Connect's own workers. A fake stands in for the cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import FencedError, InternalTopicError, KafkaClientError
from sluiceway.metrics.registry import Registry
from sluiceway.storage.factory import Stores
from sluiceway.storage.memory import MemoryConfigBackingStore
from sluiceway.storage.model import State, Status
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker import connect_workers, kafka_channel, lease
from sluiceway.worker.connect_workers import RunByConnectError
from sluiceway.worker.kafka_channel import KafkaChannels, KafkaControlChannel
from support.eventually import NEVER

WORKER = WorkerConfig.of({"group.id": "g"})


class Writer:
    """Stands in for FencedWriter: raises ``errors`` first, one for each write, and must fence again after each."""

    def __init__(self, *_: object) -> None:
        self.active = False
        self.fenced = 0
        self.written = 0
        self.errors: list[Exception] = []
        self.on_fence: Callable[[], None] = lambda: None

    def fence(self) -> None:
        self.active = True
        self.fenced += 1
        self.on_fence()

    def write(self, records: object, _headers: object = ()) -> dict[TopicPartition, int]:
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
        monkeypatch.setattr(lease, "_TAKEOVER_SECONDS", 0.1)
        monkeypatch.setattr(lease, "_TAKEOVER_POLL_SECONDS", 0.01)
        monkeypatch.setattr(lease, "FencedWriter", Writer)
        monkeypatch.setattr(connect_workers, "_POLL_SECONDS", 0.01)
        monkeypatch.setattr(connect_workers, "connect_workers", lambda *_: self.connect.pop(0) if self.connect else [])
        self.status = KafkaStatusBackingStore(WORKER)
        self.status._log = Topic()  # type: ignore[assignment]
        stores = Stores(MemoryConfigBackingStore(), self.status, None)  # type: ignore[arg-type]
        self.channels = KafkaChannels(WORKER, "me:1", stores, "me")
        self.channel = self.channels.channel("c")
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


@pytest.mark.parametrize(
    ("state", "worker_id", "age", "takeovers"),
    [
        (State.RUNNING, "other:2", 0, 1),
        (State.RUNNING, "other:2", 60_000, 0),
        (State.UNASSIGNED, "other:2", 0, 0),
        (State.RUNNING, "me:1", 0, 0),
    ],
    ids=["alive", "dead", "released", "its own"],
)
def test_a_lease_taken_from_a_driver_that_is_alive_is_counted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, state: State, worker_id: str, age: int, takeovers: int
) -> None:
    registry = Registry()
    monkeypatch.setattr(lease, "registry", registry)
    cluster.status._state.connectors["c"] = Status(state, worker_id, 5, timestamp=int(time.time() * 1000) - age)
    cluster.channel.acquire()
    counted = [bean.values["takeovers-total"] for bean in registry.beans() if bean.type == "lease-metrics"]
    assert counted == [1.0] * takeovers


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


def test_a_lost_topic_is_not_waited_for(cluster: Cluster) -> None:
    cluster.writer.errors = [InternalTopicError("the topic was deleted"), InternalTopicError("the topic was deleted")]
    with pytest.raises(InternalTopicError):
        cluster.channel.publish_tasks([0], State.RUNNING)
    assert len(cluster.writer.errors) == 1


def fenced() -> FencedError:
    return FencedError("by a newer one")


def test_a_fenced_driver_gives_up_once_it_reads_the_other_ones_status(cluster: Cluster) -> None:
    cluster.writer.errors = [fenced()]
    threading.Timer(0.05, cluster.take_over).start()
    with pytest.raises(FencedError, match="other:2 has taken connector c over"):
        cluster.channel.publish_connector(State.RUNNING)
    assert (cluster.writer.written, cluster.writer.fenced) == (0, 1)


def test_a_driver_that_was_fenced_by_one_that_never_wrote_takes_the_lease_again(cluster: Cluster) -> None:
    cluster.writer.errors = [fenced()]
    cluster.channel.publish_connector(State.RUNNING)
    assert (cluster.writer.written, cluster.writer.fenced) == (1, 2)


def test_a_driver_that_is_fenced_again_and_again_gives_up(cluster: Cluster) -> None:
    cluster.writer.errors = [fenced() for _ in range(10)]
    with pytest.raises(FencedError, match="by a newer one"):
        cluster.channel.publish_connector(State.RUNNING)
    assert cluster.writer.written == 0


def test_of_two_drivers_that_took_the_same_generation_the_one_that_wrote_first_stays(cluster: Cluster) -> None:
    cluster.writer.errors = [fenced()]
    cluster.status._state.connectors["c"] = Status(State.UNASSIGNED, "other:2", cluster.channel.generation)
    with pytest.raises(FencedError, match="other:2 has taken"):
        cluster.channel.publish_connector(State.UNASSIGNED)


# The producer of an idle connector.


def test_an_idle_producer_is_closed_and_the_next_write_fences_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_IDLE_SECONDS", NEVER)
    cluster.channel.publish_connector(State.RUNNING)
    cluster.channel.verify()
    assert 0 < cluster.channel.seconds_left <= NEVER
    monkeypatch.setattr(lease, "_IDLE_SECONDS", 0.0)
    cluster.channel.verify()
    assert cluster.channel.seconds_left == float("inf")
    cluster.channel.publish_connector(State.FAILED, "still here")
    assert (cluster.writer.written, cluster.writer.fenced) == (2, 2)


def test_a_driver_that_wakes_after_a_takeover_writes_nothing(cluster: Cluster) -> None:
    """The other driver wrote its status after this one had read the topic, and before this one fenced it."""
    cluster.channel.publish_connector(State.RUNNING)
    cluster.writer.close()
    cluster.writer.on_fence = cluster.take_over
    with pytest.raises(FencedError, match="other:2 has taken"):
        cluster.channel.publish_connector(State.RUNNING)
    assert cluster.writer.written == 1


def test_a_takeover_is_noticed_without_a_write(cluster: Cluster) -> None:
    cluster.channel.publish_connector(State.RUNNING)
    cluster.channel.verify()
    cluster.take_over()
    with pytest.raises(FencedError, match="other:2 has taken"):
        cluster.channel.verify()


def test_a_status_of_an_api_server_is_no_takeover_and_is_written_over(cluster: Cluster) -> None:
    """An API server that believes the driver dead writes the state of a paused connector, with the driver's generation."""
    cluster.channel.raise_generation()
    cluster.channel.publish_connector(State.PAUSED)
    cluster.status._state.connectors["c"] = Status(State.STOPPED, "api:8083", cluster.channel.generation)
    cluster.channel.verify()
    cluster.channel.renew_connector(State.PAUSED)
    assert cluster.writer.written == 2


def test_a_status_that_holds_is_not_written_again(cluster: Cluster) -> None:
    cluster.channel.publish_connector(State.RUNNING)
    cluster.status._state.connectors["c"] = Status(State.RUNNING, "me:1", cluster.channel.generation)
    cluster.channel.renew_connector(State.RUNNING)
    assert cluster.writer.written == 1


# Beside Kafka Connect.


def test_a_status_of_kafka_connect_is_no_takeover_whatever_its_generation(cluster: Cluster) -> None:
    cluster.status._state.connectors["c"] = Status(State.RUNNING, "10.0.0.7:8083", 60, of_connect=True)
    cluster.channel.verify()  # no worker is up
    cluster.channel.publish_connector(State.RUNNING)
    assert cluster.writer.written == 1


def test_a_status_of_kafka_connect_makes_a_driver_look_for_its_workers(cluster: Cluster) -> None:
    cluster.channels.connect_workers._asked_at = time.monotonic() - 0.5  # an answer holds for three seconds
    cluster.connect = [["10.0.0.7"]]
    cluster.channel.verify()
    cluster.status._state.tasks["c"] = {0: Status(State.RUNNING, "10.0.0.7:8083", 1, of_connect=True)}
    with pytest.raises(RunByConnectError, match=r"1 worker\(s\)"):
        cluster.channel.verify()


@pytest.mark.parametrize("write", [lambda channel: channel.publish_connector(State.RUNNING), lambda channel: channel.acquire()])
def test_a_driver_refuses_to_run_while_kafka_connect_workers_are_up(
    cluster: Cluster, write: Callable[[KafkaControlChannel], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_channel, "_CONNECT_LEAVE_SECONDS", 0.05)
    cluster.connect = [["10.0.0.7", "10.0.0.7"]] * 1000
    cluster.channels.connect_workers._asked_at = float("-inf")
    with pytest.raises(FencedError, match=r"2 worker\(s\) with group\.id=g are up, on 10\.0\.0\.7\."):
        write(cluster.channel)
    assert cluster.writer.written == 0


def test_acquire_waits_for_a_kafka_connect_worker_that_is_leaving_the_group(cluster: Cluster) -> None:
    cluster.connect = [["10.0.0.7"], ["10.0.0.7"]]
    cluster.channels.connect_workers._asked_at = float("-inf")
    cluster.channel.acquire()
    assert cluster.connect == []


def test_kafka_connect_workers_are_looked_for_once_for_all_connectors(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_workers, "_POLL_SECONDS", 60.0)
    cluster.connect = [[], ["10.0.0.7"]]
    cluster.channels.connect_workers._asked_at = float("-inf")
    for name in ("c", "d", "e"):
        channel = cluster.channels.channel(name)
        channel.acquire()
        channel.publish_connector(State.RUNNING)
        channel.verify()
    assert cluster.connect == [["10.0.0.7"]]


def test_a_record_that_kafka_refuses_for_its_size_is_an_error_at_once(cluster: Cluster) -> None:
    cluster.writer.errors = [KafkaClientError("Cannot write: Message size too large", "MSG_SIZE_TOO_LARGE")]
    with pytest.raises(KafkaClientError, match="too large"):
        cluster.channel.publish_connector(State.RUNNING)
    assert cluster.writer.errors == []
