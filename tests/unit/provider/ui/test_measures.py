"""What is asked of Kafka about connectors, and what its answers say."""

from __future__ import annotations

import pytest

from sluiceway.api import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.lag import PartitionLag
from sluiceway.provider.progress.measures import Measure, Reading, measure
from sluiceway.provider.progress.subjects import Subject, subject
from sluiceway.storage.model import ConnectorEntry

A0, A1, DEAD = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("dead", 0)
SINK = {"connector.class": "FileStreamSink", "topics": "a, b"}
SOURCE = {"connector.class": "FileStreamSource", "topic": "a"}
DLQ = {"errors.deadletterqueue.topic.name": "dead"}


def _seen(name: str) -> list[str]:
    return ["a", "dead"]


@pytest.mark.parametrize(
    ("config", "asked"),
    [
        (SINK, Subject("c", "connect-c", ("a", "b"))),
        ({**SINK, **DLQ}, Subject("c", "connect-c", ("a", "b"), "dead")),
        ({**SINK, "consumer.override.group.id": "own"}, Subject("c", "own", ("a", "b"))),
        ({**SINK, "consumer.override.group.id": "${env:GROUP}"}, Subject("c")),
        ({**SINK, "consumer.override.bootstrap.servers": "far:9092"}, Subject("c")),
        ({"connector.class": "FileStreamSink", "topics.regex": "."}, Subject("c", "connect-c", ("a", "dead"))),
        ({**SOURCE, **DLQ}, Subject("c", None, ("a",), "dead")),
        ({**SOURCE, "producer.override.bootstrap.servers": "far:9092"}, Subject("c")),
        ({**SOURCE, "errors.deadletterqueue.topic.name": "${env:DEAD}"}, Subject("c", None, ("a", "dead"))),
    ],
)
def test_a_config_says_what_to_ask(config: dict[str, str], asked: Subject) -> None:
    assert subject(ConnectorEntry("c", config), WorkerConfig.of({}), _seen) == asked


def test_a_sinks_group_is_the_one_that_its_tasks_read_in() -> None:
    worker = WorkerConfig.of({"consumer.group.id": "shared"})
    assert subject(ConnectorEntry("c", SINK), worker, _seen).group == "shared"
    assert subject(ConnectorEntry("c", {**SINK, "consumer.override.group.id": "own"}), worker, _seen).group == "own"


def test_a_sinks_lag_counts_partitions_without_a_commit_from_their_first_record() -> None:
    reading = Reading(1.0, {"g": {A0: 70}}, begins={A1: 30, DEAD: 5}, ends={A0: 100, A1: 50, DEAD: 7})
    found = measure(Subject("c", "g", ("a",), "dead"), reading)
    assert found == Measure({A0: 70}, 50, 2, (PartitionLag(A0, 70, 100, 30), PartitionLag(A1, None, 50, 20)))


def test_a_sink_ahead_of_its_topic_has_no_negative_lag() -> None:
    assert measure(Subject("c", "g", ("a",)), Reading(1.0, {"g": {A0: 70}}, ends={A0: 10})).lag == 0


def test_a_sink_whose_group_may_not_be_asked_has_no_lag_rather_than_none_left() -> None:
    assert measure(Subject("c", "g", ("a",)), Reading(1.0, {}, ends={A0: 10})) == Measure()


def test_a_sink_by_regex_is_measured_where_it_has_committed() -> None:
    assert measure(Subject("c", "g"), Reading(1.0, {"g": {A0: 4}}, ends={A0: 10, A1: 99})).lag == 6


def test_a_source_is_as_far_as_its_topics_and_has_no_lag() -> None:
    found = measure(Subject("c", None, ("a",), "dead"), Reading(1.0, ends={A0: 3, A1: 4, TopicPartition("b", 0): 9}))
    assert found == Measure({A0: 3, A1: 4}, None, 0)


def test_of_a_source_that_was_seen_at_no_topic_nothing_is_known() -> None:
    assert measure(Subject("c"), Reading(1.0, ends={A0: 3})) == Measure()
