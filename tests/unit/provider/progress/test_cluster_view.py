"""Tests of the view of a cluster: what it measures, and how few requests and connections that takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import InternalTopicError, KafkaClientError, NotFoundError
from sluiceway.provider.progress import cluster_view
from sluiceway.provider.progress.cluster_view import ClusterView
from sluiceway.provider.triggers.conditions import LagCondition
from sluiceway.storage.memory import MemoryConfigStore, MemoryStatusStore

A0, A1, GONE = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("gone", 0)
BEGINS, ENDS = {A0: 5, A1: 30}, {A0: 100, A1: 50}
SINK = "FileStreamSink"


class Kafka:
    """A cluster with topic ``a`` of two partitions. Counts the requests by kind."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[TopicPartition, int]] = {}
        self.clients: list[dict[str, str]] = []
        self.requests: list[str] = []
        self.hidden: set[str] = set()
        self.config = MemoryConfigStore()
        self.status = MemoryStatusStore()

    def view(self, **worker: str) -> ClusterView:
        stores: Any = SimpleNamespace(config=self.config, status=self.status, offsets=None)
        return ClusterView(WorkerConfig.of({key.replace("_", "."): value for key, value in worker.items()}), stores)

    def sink(self, name: str = "c", **config: str) -> None:
        pairs = {key.replace("_", "."): value for key, value in config.items()}
        self.config.put_connector(name, {"connector.class": SINK, **pairs})

    def admin_client(self, _worker: object, own: Mapping[str, str], **_: object) -> object:
        self.clients.append(dict(own))
        return object()

    def group_offsets(self, _admin: object, group: str) -> dict[TopicPartition, int]:
        self.requests.append("group")
        if group in self.hidden:
            raise KafkaClientError("Not authorized.", code="GROUP_AUTHORIZATION_FAILED")
        return dict(self.groups.get(group, {}))

    def partition_counts(self, _admin: object) -> dict[str, int]:
        self.requests.append("topics")
        return {"a": 2}

    def partition_count(self, _admin: object, topic: str) -> int | None:
        if topic in self.hidden:
            raise KafkaClientError("Not authorized.", code="TOPIC_AUTHORIZATION_FAILED")
        return {"a": 2}.get(topic)

    def offsets(self, kind: str, known: Mapping[TopicPartition, int]) -> Callable[..., dict[TopicPartition, int]]:
        def read(_admin: object, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
            self.requests.append(kind)
            if missing := set(partitions) - known.keys():
                raise InternalTopicError(f"No such partitions: {missing}")
            return {partition: known[partition] for partition in partitions}

        return read


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    made = Kafka()
    admin = "sluiceway.kafka.admin"
    monkeypatch.setattr("sluiceway.kafka.clients.admin_client", made.admin_client)
    for name in ("group_offsets", "partition_count", "partition_counts"):
        monkeypatch.setattr(f"{admin}.{name}", getattr(made, name))
    monkeypatch.setattr(f"{admin}.begin_offsets", made.offsets("begins", BEGINS))
    monkeypatch.setattr(f"{admin}.end_offsets", made.offsets("ends", ENDS))
    return made


def test_connectors_share_an_admin_client_unless_they_log_in_as_others(kafka: Kafka) -> None:
    view = kafka.view()
    for number in range(100):
        kafka.sink(f"c{number}", topics="a")
    for number in range(2):
        kafka.sink(f"d{number}", topics="a", admin_override_client_id="other")
    for name in kafka.config.snapshot().names():
        view.progress(name)
    assert sorted(kafka.clients, key=str) == [{"client.id": "other"}, {}]


def test_many_waits_cost_one_listing_and_one_request_for_ends(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"c{number}" for number in range(20)]
    for name in names:
        kafka.sink(name, topics="a")
        kafka.groups[f"connect-{name}"] = {A0: 100, A1: 50}
    view = kafka.view()
    for name in names:
        view.progress(name)
    monkeypatch.setattr(cluster_view, "_FRESH_SECONDS", 0.0)
    kafka.requests.clear()
    view.progress(names[0])
    monkeypatch.setattr(cluster_view, "_FRESH_SECONDS", 60.0)
    assert [view.progress(name).lag for name in names] == [0] * 20
    assert sorted(kafka.requests) == ["ends", *["group"] * 20, "topics"]


def test_a_connector_that_is_no_longer_asked_about_is_no_longer_measured(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("c", "d"):
        kafka.sink(name, topics="a")
    view = kafka.view()
    view.progress("c")
    monkeypatch.setattr(cluster_view, "_WATCHED_SECONDS", 0.0)
    kafka.requests.clear()
    view.progress("d")
    assert kafka.requests.count("group") == 1


def test_a_deleted_connector_is_not_found_and_holds_up_no_other(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_view, "_FRESH_SECONDS", 0.0)
    for name in ("c", "d"):
        kafka.sink(name, topics="a")
    view = kafka.view()
    view.progress("c")
    kafka.config.remove_connector("c")
    assert view.progress("d").lag == 115
    with pytest.raises(NotFoundError):
        view.progress("c")


@pytest.mark.parametrize(
    ("worker", "config", "group"),
    [
        ({}, {}, "connect-c"),
        ({"consumer_group_id": "shared"}, {}, "shared"),
        ({"consumer_group_id": "shared"}, {"consumer_override_group_id": "own"}, "own"),
    ],
)
def test_the_lag_of_a_sink_is_that_of_the_group_that_its_tasks_use(
    kafka: Kafka, worker: dict[str, str], config: dict[str, str], group: str
) -> None:
    kafka.groups[group] = {A0: 90, A1: 50}
    kafka.sink(topics="a", **config)
    progress = kafka.view(**worker).progress("c")
    assert (progress.lag, progress.count) == (10, 140)


def test_a_lag_condition_reads_the_group_of_the_workers_consumers(kafka: Kafka) -> None:
    kafka.groups["shared"] = {A0: 100, A1: 50}
    kafka.sink(topics="a")
    answer = LagCondition("c").check(kafka.view(consumer_group_id="shared"))
    assert answer.met, answer.seen


def test_partitions_without_a_commit_count_from_their_first_available_record(kafka: Kafka) -> None:
    kafka.groups["connect-c"] = {A0: 70}
    kafka.status.put_topic("c", 0, "a")
    for config in ({"topics": "a"}, {"topics_regex": "a.*"}):
        kafka.sink(**config)
        progress = kafka.view().progress("c")
        assert (progress.lag, progress.count) == (50, 100)


def test_a_committed_topic_that_was_deleted_does_not_count(kafka: Kafka) -> None:
    kafka.groups["connect-c"] = {A0: 70, A1: 50, GONE: 9}
    kafka.sink(topics="a")
    progress = kafka.view().progress("c")
    assert (progress.lag, progress.count, len(progress.offsets)) == (30, 120, 3)


def test_a_sink_whose_topics_do_not_exist_yet_has_lag_zero(kafka: Kafka) -> None:
    kafka.sink(topics="gone")
    assert kafka.view().progress("c").lag == 0


@pytest.mark.parametrize("hidden", ["connect-c", "secret"])
def test_a_lag_that_may_not_be_read_is_an_error_and_not_zero(kafka: Kafka, hidden: str) -> None:
    kafka.hidden.add(hidden)
    kafka.sink(topics="secret")
    with pytest.raises(KafkaClientError, match="Not authorized"):
        kafka.view().progress("c")
