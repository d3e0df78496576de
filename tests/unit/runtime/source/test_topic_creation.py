from __future__ import annotations

from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, ConnectError, KafkaClientError
from sluiceway.runtime.source import topic_creation
from sluiceway.runtime.source.topic_creation import TopicCreation, TopicCreationGroup, topic_groups
from sluiceway.storage.model import TaskId

DEFAULT = {"topic.creation.default.partitions": "2", "topic.creation.default.replication.factor": "-1"}


def grouped(names: str, **more: str) -> dict[str, str]:
    return {**DEFAULT, "topic.creation.groups": names, **{f"topic.creation.{key}": value for key, value in more.items()}}


def test_without_settings_there_are_no_groups() -> None:
    assert topic_groups({"name": "c", "topic": "t"}) == []


def test_groups_inherit_partitions_and_replication_but_no_topic_configs() -> None:
    config = grouped(
        "a",
        **{
            "default.cleanup.policy": "delete",
            "a.include": "x.*, y",
            "a.exclude": "xx",
            "a.retention.ms": "5",
            "a.partitions": "7",
        },
    )
    assert topic_groups(config) == [
        TopicCreationGroup("a", 7, -1, {"retention.ms": "5"}, ("x.*", "y"), ("xx",)),
        TopicCreationGroup("default", 2, -1, {"cleanup.policy": "delete"}),
    ]


@pytest.mark.parametrize(
    ("topic", "taken"), [("x", True), ("xab", True), ("axb", False), ("xx", False), ("y", True), ("yy", False), ("", False)]
)
def test_patterns_match_whole_names(topic: str, taken: bool) -> None:
    assert TopicCreationGroup("a", 1, 1, {}, ("x.*", "y"), ("xx",)).matches(topic) is taken


def test_a_group_without_patterns_matches_nothing() -> None:
    assert not TopicCreationGroup("a", 1, 1).matches("t")


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"topic.creation.default.partitions": "1"}, "topic.creation.default.replication.factor"),
        ({"topic.creation.groups": "a"}, "topic.creation.default.partitions"),
        ({**DEFAULT, "topic.creation.default.partitions": "0"}, "topic.creation.default.partitions"),
        ({**DEFAULT, "topic.creation.default.replication.factor": "-2"}, "topic.creation.default.replication.factor"),
        (grouped("a", **{"a.partitions": "x"}), "topic.creation.a.partitions"),
        (grouped("a", **{"a.include": "("}), "topic.creation.a.include"),
    ],
)
def test_invalid_settings_are_rejected_with_their_key(config: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        topic_groups(config)


class Cluster:
    def __init__(self, *topics: str) -> None:
        self.topics = set(topics)
        self.made: list[tuple[Any, ...]] = []
        self.error: ConnectError | None = None

    def partition_count(self, _admin: Any, topic: str) -> int | None:
        return 1 if topic in self.topics else None

    def create_topic(self, _admin: Any, *what: Any) -> bool:
        if self.error is not None:
            raise self.error
        self.made.append(what)
        return True


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster("there")
    monkeypatch.setattr(topic_creation, "admin_client", lambda *_, **__: object())
    monkeypatch.setattr(topic_creation, "partition_count", made.partition_count)
    monkeypatch.setattr(topic_creation, "create_topic", made.create_topic)
    return made


def creation(config: dict[str, str], **worker: str) -> TopicCreation:
    return TopicCreation(TaskId("c", 0), config, WorkerConfig.of({key.replace("_", "."): each for key, each in worker.items()}))


def test_a_topic_is_created_by_the_first_matching_group_or_the_default(cluster: Cluster) -> None:
    made = creation(grouped("b,a", **{"a.include": ".*", "a.partitions": "1", "b.include": "b.*", "b.partitions": "5"}))
    for topic in ("b1", "a1", "there"):
        made.ensure(topic)
    assert cluster.made == [("b1", 5, -1, {}), ("a1", 1, -1, {})]
    creation(DEFAULT).ensure("d")
    assert cluster.made[-1] == ("d", 2, -1, {})


@pytest.mark.parametrize(("config", "worker"), [({}, {}), (DEFAULT, {"topic_creation_enable": "false"})])
def test_no_topic_is_created_unless_configured(cluster: Cluster, config: dict[str, str], worker: dict[str, str]) -> None:
    creation(config, **worker).ensure("new")
    assert cluster.made == []


def test_a_failure_names_task_topic_and_group_and_gives_advice(cluster: Cluster) -> None:
    cluster.error = KafkaClientError("no such right (TOPIC_AUTHORIZATION_FAILED).", "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(ConnectError, match=r"c-0.*'new'.*'default'.*no such right.*restart the task"):
        creation(DEFAULT).ensure("new")
