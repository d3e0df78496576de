"""Tests of the view of a cluster: what it measures, and how few requests and connections that takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import InternalTopicError, NotFoundError
from sluiceway.provider.progress import cluster_view, probe
from sluiceway.provider.progress.cluster_view import ClusterView
from sluiceway.provider.triggers.conditions import LagCondition
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from support.offsets import A0, A1, DEAD, GONE, OffsetsAdmin


class Cluster:
    """A Connect cluster of sinks on that Kafka cluster."""

    def __init__(self, kafka: OffsetsAdmin) -> None:
        self.kafka = kafka
        self.config = MemoryConfigBackingStore()
        self.status = MemoryStatusBackingStore()

    def view(self, **worker: str) -> ClusterView:
        stores: Any = SimpleNamespace(config=self.config, status=self.status, offsets=None)
        return ClusterView(WorkerConfig.of({key.replace("_", "."): value for key, value in worker.items()}), stores)

    def sink(self, name: str = "c", **config: str) -> None:
        pairs = {key.replace("_", "."): value for key, value in config.items()}
        self.config.put_connector(name, {"connector.class": "FileStreamSink", **pairs})


@pytest.fixture
def cluster(kafka: OffsetsAdmin) -> Cluster:
    return Cluster(kafka)


def test_connectors_share_an_admin_client_unless_they_log_in_as_others(cluster: Cluster) -> None:
    view = cluster.view()
    for number in range(100):
        cluster.sink(f"c{number}", topics="a")
    for number in range(2):
        cluster.sink(f"d{number}", topics="a", admin_override_client_id="other")
    for name in cluster.config.snapshot().names():
        view.progress(name)
    assert sorted(cluster.kafka.clients, key=str) == [{"client.id": "other"}, {}]


def test_many_waits_cost_one_listing_and_one_request_for_ends(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"c{number}" for number in range(20)]
    for name in names:
        cluster.sink(name, topics="a")
        cluster.kafka.groups[f"connect-{name}"] = {A0: 100, A1: 50}
    view = cluster.view()
    for name in names:
        view.progress(name)
    monkeypatch.setattr(cluster_view, "_FRESH_SECONDS", 0.0)
    cluster.kafka.requests.clear()
    view.progress(names[0])
    monkeypatch.setattr(cluster_view, "_FRESH_SECONDS", 60.0)
    assert [view.progress(name).lag for name in names] == [0] * 20
    assert sorted(cluster.kafka.requests) == ["ends", *["group"] * 20, "topics"]


def test_a_connector_without_recent_callers_is_not_measured(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("c", "d"):
        cluster.sink(name, topics="a")
    view = cluster.view()
    view.progress("c")
    monkeypatch.setattr(cluster_view, "_WATCHED_SECONDS", 0.0)
    cluster.kafka.requests.clear()
    assert view.progress("d").lag == 115
    assert sorted(cluster.kafka.requests) == ["begins", "ends", "group", "topics"]


def test_a_failure_of_one_connector_does_not_affect_the_others(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_view, "_FRESH_SECONDS", 0.0)
    cluster.kafka.counts["broken"] = 1  # listed, but without a leader
    cluster.sink("c", topics="broken")
    cluster.sink("d", topics="a")
    view = cluster.view()
    for _ in range(2):
        with pytest.raises(InternalTopicError):
            view.progress("c")
        assert view.progress("d").lag == 115


def test_a_deleted_connector_is_not_found_and_holds_up_no_other(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_view, "_FRESH_SECONDS", 0.0)
    for name in ("c", "d"):
        cluster.sink(name, topics="a")
    view = cluster.view()
    view.progress("c")
    cluster.config.remove_connector("c")
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
    cluster: Cluster, worker: dict[str, str], config: dict[str, str], group: str
) -> None:
    cluster.kafka.groups[group] = {A0: 90, A1: 50}
    cluster.sink(topics="a", **config)
    progress = cluster.view(**worker).progress("c")
    assert (progress.lag, progress.count) == (10, 140)


def test_a_lag_condition_reads_the_group_of_the_workers_consumers(cluster: Cluster) -> None:
    cluster.kafka.groups["shared"] = {A0: 100, A1: 50}
    cluster.sink(topics="a")
    answer = LagCondition("c").check(cluster.view(consumer_group_id="shared"))
    assert answer.met, answer.seen


def test_partitions_without_a_commit_count_from_their_first_available_record(cluster: Cluster) -> None:
    cluster.kafka.groups["connect-c"] = {A0: 70}
    cluster.status.put_topic("c", 0, "a")
    for config in ({"topics": "a"}, {"topics_regex": "a.*"}):
        cluster.sink(**config)
        progress = cluster.view().progress("c")
        assert (progress.lag, progress.count) == (50, 100)


def test_a_committed_topic_that_was_deleted_does_not_count(cluster: Cluster) -> None:
    cluster.kafka.groups["connect-c"] = {A0: 70, A1: 50, GONE: 9}
    cluster.sink(topics="a")
    progress = cluster.view().progress("c")
    assert (progress.lag, progress.count, len(progress.offsets)) == (30, 120, 2)


def test_in_a_large_cluster_a_group_is_asked_for_the_topics_of_its_connector(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.kafka.groups["connect-c"] = {A0: 70, A1: 50, DEAD: 1}
    cluster.sink(topics="a")
    assert len(cluster.view().progress("c").offsets) == 3
    monkeypatch.setattr(probe, "_MOST_ASKED", 2)
    assert len(cluster.view().progress("c").offsets) == 2


def test_a_sink_whose_topics_do_not_exist_yet_has_lag_zero(cluster: Cluster) -> None:
    cluster.sink(topics="gone")
    assert cluster.view().progress("c").lag == 0
