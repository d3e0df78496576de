"""Tests of the progress that is computed from Kafka's offsets."""

from __future__ import annotations

from sluiceway.api import TopicPartition
from sluiceway.kafka.lag import PartitionLag
from sluiceway.provider.progress.connector_progress import ConnectorProgress, OffsetsSnapshot, measure
from sluiceway.provider.progress.probe_request import ProbeRequest

A0, A1, DEAD = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("dead", 0)


def test_partitions_without_a_commit_count_from_their_first_available_record() -> None:
    snapshot = OffsetsSnapshot(1.0, {"g": {A0: 70}}, begins={A1: 30, DEAD: 5}, ends={A0: 100, A1: 50, DEAD: 7})
    found = measure(ProbeRequest("c", "g", ("a",), "dead"), snapshot)
    partitions = (PartitionLag(A0, 70, 100, 30), PartitionLag(A1, None, 50, 20))
    assert found == ConnectorProgress((), 100, 50, 2, {A0: 70}, partitions)


def test_a_sink_ahead_of_its_topic_has_no_negative_lag() -> None:
    assert measure(ProbeRequest("c", "g", ("a",)), OffsetsSnapshot(1.0, {"g": {A0: 70}}, ends={A0: 10})).lag == 0


def test_the_lag_of_a_group_that_may_not_be_described_is_unknown() -> None:
    assert measure(ProbeRequest("c", "g", ("a",)), OffsetsSnapshot(1.0, {}, ends={A0: 10})) == ConnectorProgress()


def test_a_sink_by_regex_is_measured_where_it_has_committed() -> None:
    assert measure(ProbeRequest("c", "g"), OffsetsSnapshot(1.0, {"g": {A0: 4}}, ends={A0: 10, A1: 99})).lag == 6


def test_partitions_of_other_sinks_do_not_count() -> None:
    other = TopicPartition("other", 0)
    snapshot = OffsetsSnapshot(1.0, {"g": {A0: 1}, "h": {other: 1}}, ends={A0: 3, A1: 9, other: 9})
    assert measure(ProbeRequest("c", "g"), snapshot).lag == 2


def test_partitions_whose_end_is_not_known_do_not_count() -> None:
    gone = TopicPartition("gone", 0)
    found = measure(ProbeRequest("c", "g", ("a", "gone")), OffsetsSnapshot(1.0, {"g": {A0: 1, gone: 7}}, ends={A0: 3}))
    assert (found.lag, found.count) == (2, 1)
    assert measure(ProbeRequest("c", "g", ("gone",)), OffsetsSnapshot(1.0, {"g": {}})).lag is None


def test_the_count_of_a_source_is_that_of_its_topics_and_its_lag_is_unknown() -> None:
    snapshot = OffsetsSnapshot(1.0, ends={A0: 3, A1: 4, TopicPartition("b", 0): 9})
    found = measure(ProbeRequest("c", None, ("a",), "dead"), snapshot)
    assert found == ConnectorProgress((), 7, None, 0, {A0: 3, A1: 4})


def test_the_progress_of_a_source_without_active_topics_is_unknown() -> None:
    assert measure(ProbeRequest("c"), OffsetsSnapshot(1.0, ends={A0: 3})) == ConnectorProgress()
