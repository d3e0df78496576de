"""How far connectors are: which consumer group is asked, what the lag is, and how many connections that takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from sluiceway.api import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import InternalTopicError
from sluiceway.provider.progress.meter import Admins, Meter
from sluiceway.provider.triggers.conditions import LagCondition


def test_connectors_share_an_admin_client_unless_they_log_in_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, str]] = []

    def admin_client(worker: object, own: Mapping[str, str]) -> object:
        made.append(dict(own))
        return object()

    monkeypatch.setattr("sluiceway.kafka.clients.admin_client", admin_client)
    worker = WorkerConfig.of({})
    admins = Admins(worker)
    for number in range(100):
        Meter(worker, f"c{number}", {"topics": "t"}, admins)
    for number in range(2):
        Meter(worker, f"d{number}", {"topics": "t", "admin.override.client.id": "other"}, admins)
    admins.client({})
    assert made == [{}, {"client.id": "other"}]


A0, A1, GONE = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("gone", 0)
BEGINS, ENDS = {A0: 5, A1: 30}, {A0: 100, A1: 50}


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[TopicPartition, int]]:
    """The committed offsets by consumer group, on a cluster with topic ``a`` of two partitions."""
    known: dict[str, dict[TopicPartition, int]] = {}

    def asked(offsets: Mapping[TopicPartition, int], places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        if missing := set(places) - offsets.keys():
            raise InternalTopicError(f"No such partitions: {missing}")
        return {place: offsets[place] for place in places}

    admin = "sluiceway.kafka.admin"
    monkeypatch.setattr("sluiceway.kafka.clients.admin_client", lambda _worker, _own: object())
    monkeypatch.setattr(f"{admin}.group_offsets", lambda _admin, group: dict(known.get(group, {})))
    monkeypatch.setattr(f"{admin}.partition_count", lambda _admin, topic: {"a": 2}.get(topic))
    monkeypatch.setattr(f"{admin}.beginning_offsets", lambda _admin, places: asked(BEGINS, places))
    monkeypatch.setattr(f"{admin}.end_offsets", lambda _admin, places: asked(ENDS, places))
    return known


@pytest.mark.parametrize(
    ("worker", "config", "group"),
    [
        ({}, {}, "connect-c"),
        ({"consumer.group.id": "shared"}, {}, "shared"),
        ({"consumer.group.id": "shared"}, {"consumer.override.group.id": "own"}, "own"),
    ],
)
def test_a_sinks_lag_is_that_of_the_group_that_its_tasks_read_in(
    groups: dict[str, dict[TopicPartition, int]], worker: dict[str, str], config: dict[str, str], group: str
) -> None:
    groups[group] = {A0: 90, A1: 50}
    position = Meter(WorkerConfig.of(worker), "c", {"topics": "a", **config}).read()
    assert (position.lag, position.count) == (10, 140)


def test_a_lag_condition_sees_the_group_of_the_workers_consumers(groups: dict[str, dict[TopicPartition, int]]) -> None:
    class View:
        def position(self, name: str) -> object:
            return Meter(WorkerConfig.of({"consumer.group.id": "shared"}), name, {"topics": "a"}).read()

    groups["shared"] = {A0: 100, A1: 50}
    answer = LagCondition("c").check(View())  # type: ignore[arg-type]
    assert answer.met, answer.seen


def test_partitions_without_a_commit_count_from_their_first_record(groups: dict[str, dict[TopicPartition, int]]) -> None:
    groups["connect-c"] = {A0: 70}
    for config, seen in (({"topics": "a"}, []), ({"topics.regex": "a.*"}, ["a"])):
        position = Meter(WorkerConfig.of({}), "c", config).read(seen)
        assert (position.lag, position.count) == (50, 100)


def test_a_committed_topic_that_was_deleted_does_not_count(groups: dict[str, dict[TopicPartition, int]]) -> None:
    groups["connect-c"] = {A0: 70, A1: 50, GONE: 9}
    position = Meter(WorkerConfig.of({}), "c", {"topics": "a"}).read()
    assert (position.lag, position.count, len(position.offsets)) == (30, 120, 3)


def test_a_sink_whose_topics_do_not_exist_yet_has_nothing_left(groups: dict[str, dict[TopicPartition, int]]) -> None:
    assert Meter(WorkerConfig.of({}), "c", {"topics": "gone"}).read().lag == 0
