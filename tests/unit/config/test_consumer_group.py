"""The consumer group and the topics of a sink."""

from __future__ import annotations

import pytest

from sluiceway.config.connector import sink_topics
from sluiceway.config.consumer_group import sink_group
from sluiceway.config.worker import WorkerConfig

OVERRIDE, WORKER = {"consumer.override.group.id": "own"}, {"consumer.group.id": "shared"}


@pytest.mark.parametrize(
    ("worker", "config", "group"),
    [
        ({}, {}, "connect-c"),
        ({"group.id": "workers"}, {"name": "other"}, "connect-c"),
        (WORKER, {}, "shared"),
        ({}, OVERRIDE, "own"),
        (WORKER, OVERRIDE, "own"),
        (WORKER, {"consumer.override.group.id": ""}, "shared"),
        ({"consumer.group.id": ""}, {}, "connect-c"),
        ({"producer.group.id": "p", "admin.group.id": "a"}, {"admin.override.group.id": "a"}, "connect-c"),
    ],
)
def test_the_connectors_group_wins_over_the_workers_over_its_name(
    worker: dict[str, str], config: dict[str, str], group: str
) -> None:
    assert sink_group(WorkerConfig.of(worker), "c", config) == group


@pytest.mark.parametrize(
    ("config", "topics"),
    [
        ({"topics": "a, b,"}, ("a", "b")),
        ({"topics.regex": "s.*"}, ("seen",)),
        ({"topics": "${env:TOPIC}"}, ("seen",)),
        ({"topics": "a,${env:TOPIC}"}, ("a",)),
    ],
)
def test_a_sinks_topics_are_those_it_names_or_else_those_it_has_used(config: dict[str, str], topics: tuple[str, ...]) -> None:
    assert sink_topics(config, ["seen"]) == topics
