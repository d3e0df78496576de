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
        ("[a-c&&[^b]]", "", ["a", "c"]),
    ],
)
def test_patterns_match_whole_names_and_exclusion_wins(wanted: str, exclude: str, taken: list[str]) -> None:
    made = topics(topics=wanted, topics_exclude=exclude)
    names = ["a", "ab", "b", "bb", "x", "xy", "y", "a b", "c"]
    assert [name for name in names if made.should_replicate_topic(name)] == taken


def test_defaults_select_all_topics_except_internal_topics_and_replicas() -> None:
    made = topics()
    names = ["orders", "mm2-x.internal", "orders.replica", "__consumer_offsets"]
    assert [name for name in names if made.should_replicate_topic(name)] == ["orders"]


def test_an_invalid_pattern_is_refused_with_its_key() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value \[ for configuration topics.exclude"):
        topics(topics_exclude="a,[")


def test_settings_of_brokers_and_clusters_are_excluded_by_default() -> None:
    made = DefaultConfigPropertyFilter()
    made.configure({})
    assert made.should_replicate_config_property("retention.ms")
    assert not made.should_replicate_config_property("min.insync.replicas")
    assert not made.should_replicate_source_default("retention.ms")


def test_defaults_may_be_copied_from_the_source() -> None:
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
def test_topics_copied_from_the_target_over_any_clusters_are_not_copied_back(topic: str, copied: bool) -> None:
    assert (topic in selection(topics=".*", topics_exclude="")) is copied


def test_topics_of_unknown_origin_are_copied() -> None:
    assert "t" in selection(IdentityReplicationPolicy(), topics=".*")


def test_heartbeats_are_copied_whatever_the_filter_selects_unless_disabled() -> None:
    assert "heartbeats" in selection(topics="t")
    assert "C.heartbeats" in selection(topics="t")
    assert "B.heartbeats" not in selection(topics="t")
    assert "heartbeats" not in selection(topics="t", heartbeats=False)
    assert "heartbeats" in selection(topics="heart.*", heartbeats=False)
