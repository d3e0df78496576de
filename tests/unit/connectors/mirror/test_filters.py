from __future__ import annotations

import pytest

from sluiceway.connectors.mirror.filters import DefaultConfigPropertyFilter, DefaultTopicFilter, TopicSelection
from sluiceway.connectors.mirror.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from sluiceway.errors import ConfigError


def topics(**config: str) -> DefaultTopicFilter:
    made = DefaultTopicFilter()
    made.configure({key.replace("_", "."): value for key, value in config.items()})
    return made


@pytest.mark.parametrize(
    ("wanted", "exclude", "taken"),
    [
        ("", "", []),
        ("a,b.*", "", ["a", "b", "bb"]),
        (".*", "x|y", ["a", "ab", "b", "bb", "xy", "a b", "c"]),
        ("a|b", "b", ["a"]),
        ("a b", "", ["a b"]),
        (" ab , c ", "", ["ab", "c"]),
        ("(?i)AB,C", "", ["ab"]),
    ],
)
def test_topics_are_matched_as_a_whole_and_exclusion_wins(wanted: str, exclude: str, taken: list[str]) -> None:
    made = topics(topics=wanted, topics_exclude=exclude)
    names = ["a", "ab", "b", "bb", "x", "xy", "y", "a b", "c"]
    assert [name for name in names if made.should_replicate_topic(name)] == taken


def test_by_default_everything_but_internal_topics_and_replicas_is_taken() -> None:
    made = topics()
    names = ["orders", "mm2-x.internal", "orders.replica", "__consumer_offsets"]
    assert [name for name in names if made.should_replicate_topic(name)] == ["orders"]


def test_a_pattern_that_is_none_is_refused_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value \[ for configuration topics.exclude"):
        topics(topics_exclude="a,[")


def test_settings_of_brokers_and_clusters_are_left_out_by_default() -> None:
    made = DefaultConfigPropertyFilter()
    made.configure({})
    assert made.should_replicate_config_property("retention.ms")
    assert not made.should_replicate_config_property("min.insync.replicas")
    assert not made.should_replicate_source_default("retention.ms")


def test_defaults_may_be_taken_from_the_source() -> None:
    made = DefaultConfigPropertyFilter()
    made.configure({"use.defaults.from": "source", "config.properties.exclude": "retention.*"})
    assert made.should_replicate_source_default("segment.bytes")
    assert not made.should_replicate_config_property("retention.ms")
    assert made.should_replicate_config_property("min.insync.replicas")


def selection(policy: ReplicationPolicy | None = None, *, heartbeats: bool = True, **config: str) -> TopicSelection:
    policy = policy or DefaultReplicationPolicy()
    policy.configure({"source.cluster.alias": "A"})
    return TopicSelection(policy, topics(**config), "B", heartbeats=heartbeats)


@pytest.mark.parametrize(
    ("topic", "copied"),
    [("t", True), ("C.t", True), ("B.t", False), ("C.B.t", False), ("C.D.t", True), (".t", False), ("x-internal", True)],
)
def test_what_came_from_the_target_by_whatever_way_is_not_copied(topic: str, copied: bool) -> None:
    assert (topic in selection(topics=".*", topics_exclude="")) is copied


def test_names_that_say_nothing_of_their_source_are_copied() -> None:
    assert "t" in selection(IdentityReplicationPolicy(), topics=".*")


def test_heartbeats_are_copied_whatever_the_filter_says_unless_that_is_switched_off() -> None:
    assert "heartbeats" in selection(topics="t")
    assert "C.heartbeats" in selection(topics="t")
    assert "B.heartbeats" not in selection(topics="t")
    assert "heartbeats" not in selection(topics="t", heartbeats=False)
    assert "heartbeats" in selection(topics="heart.*", heartbeats=False)
