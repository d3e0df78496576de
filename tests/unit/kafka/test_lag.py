"""The lag of a consumer group."""

from __future__ import annotations

from sluiceway.api import TopicPartition
from sluiceway.kafka.lag import Lag, PartitionLag, existing, group_lag, partitions_of

A0, A1, B0, GONE = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("gone", 0)


def test_lag_is_the_distance_from_the_committed_offset_to_the_end() -> None:
    lag = group_lag(["a"], {A0: 70, A1: 50}, {}, {A1: 50, A0: 100})
    assert lag == Lag((PartitionLag(A0, 70, 100, 30), PartitionLag(A1, 50, 50, 0)))
    assert lag.total == 30


def test_a_partition_without_a_committed_offset_counts_from_its_first_available_record() -> None:
    lag = group_lag(["a"], {A0: 70}, {A1: 30}, {A0: 100, A1: 50})
    assert lag.partitions[1] == PartitionLag(A1, None, 50, 20)
    assert lag.total == 50


def test_offset_0_is_a_committed_offset() -> None:
    assert group_lag(["a"], {A0: 0}, {A0: 30}, {A0: 100}).total == 100


def test_partitions_of_other_topics_count_only_if_the_group_has_committed_them() -> None:
    assert group_lag([], {A0: 4}, {}, {A0: 10, A1: 99, B0: 9}).total == 6
    assert group_lag(["b"], {A0: 4}, {}, {A0: 10, A1: 99, B0: 9}).total == 15


def test_a_partition_that_does_not_exist_any_more_does_not_count() -> None:
    assert group_lag(["a", "gone"], {A0: 4, GONE: 7}, {}, {A0: 10}).total == 6


def test_a_group_ahead_of_its_topic_has_no_negative_lag() -> None:
    assert group_lag(["a"], {A0: 70, A1: 1}, {}, {A0: 10, A1: 3}).total == 2


def test_without_a_known_partition_there_is_no_total() -> None:
    assert group_lag(["a"], {}, {}, {}).total is None


def test_only_partitions_that_exist_are_asked_for() -> None:
    counts = {"a": 2, "other": 1}
    assert partitions_of(["a", "gone"], counts) == [A0, A1]
    assert existing([A1, TopicPartition("a", 2), GONE], counts) == {A1}
