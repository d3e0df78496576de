"""The expectations are Kafka 4.3.0's own answers."""

from __future__ import annotations

import pytest

from sluiceway.connectors.mirror.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy


def policy(cls: type[ReplicationPolicy] = DefaultReplicationPolicy, **config: str) -> ReplicationPolicy:
    made = cls()
    keys = {key.replace("_", "."): value for key, value in config.items()}
    made.configure({"source.cluster.alias": "A", **keys})
    return made


def separated(separator: str, *, internal: bool = True) -> ReplicationPolicy:
    enabled = str(internal).lower()
    return policy(replication_policy_separator=separator, replication_policy_internal_topic_separator_enabled=enabled)


@pytest.mark.parametrize(
    ("separator", "topic", "source", "upstream"),
    [
        (".", "t", None, None),
        (".", "A.t", "A", "t"),
        (".", "B.A.t", "B", "A.t"),
        (".", "A.", None, None),
        (".", ".", None, None),
        (".", ".t", "", "t"),
        (".", "A..t", "A", ".t"),
        (".", "A-t", None, None),
        ("-", "a-b-c", "a", "b-c"),
        ("__", "A__t", "A", "t"),
        ("__", "A-t", None, None),
        ("", "A-t", "A", "-t"),
        ("", "t", None, None),
        ("", "", None, None),
    ],
)
def test_the_default_policy_derives_the_source_from_the_name(
    separator: str, topic: str, source: str | None, upstream: str | None
) -> None:
    made = separated(separator)
    assert (made.topic_source(topic), made.upstream_topic(topic)) == (source, upstream)


@pytest.mark.parametrize(
    ("topic", "original", "heartbeats"),
    [
        ("B.A.t", "t", False),
        ("t", "t", False),
        ("A..t", "t", False),
        ("heartbeats", "heartbeats", True),
        ("A.heartbeats", "heartbeats", True),
        ("xheartbeats", "xheartbeats", False),
    ],
)
def test_the_original_topic_is_found_over_several_clusters(topic: str, original: str, heartbeats: bool) -> None:
    assert policy().original_topic(topic) == original
    assert policy().is_heartbeats_topic(topic) is heartbeats


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("__consumer_offsets", True),
        (".x", True),
        ("mm2x.internal", True),
        ("A.checkpoints.internal", True),
        ("mm2-offset-syncs.B.internal", True),
        ("mm2-offset-syncs-B-internal", False),
        ("x.internal", False),
        ("x-internal", False),
        ("internal", False),
        ("t", False),
    ],
)
def test_internal_topics_are_kafkas_and_mirror_makers(topic: str, internal: bool) -> None:
    assert policy().is_internal_topic(topic) is internal


def test_a_custom_separator_applies_to_internal_topics_unless_disabled() -> None:
    assert separated("-").offset_syncs_topic("B") == "mm2-offset-syncs-B-internal"
    assert separated("-").is_internal_topic("B-checkpoints-internal")
    assert not separated("-").is_internal_topic("mm2x.internal")
    assert separated("-", internal=False).offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"
    assert separated("-", internal=False).is_internal_topic("mm2x.internal")
    assert not separated("-", internal=False).is_internal_topic("B-checkpoints-internal")


def test_remote_topics_are_named_after_their_source() -> None:
    assert policy().format_remote_topic("A", "t") == "A.t"
    assert separated("-").format_remote_topic("A", "t") == "A-t"


def test_the_identity_policy_renames_heartbeats_only() -> None:
    made = policy(IdentityReplicationPolicy)
    assert [made.format_remote_topic("A", topic) for topic in ("t", "B.t", "heartbeats")] == ["t", "B.t", "A.heartbeats"]
    assert [made.topic_source(topic) for topic in ("t", "B.t", "heartbeats", "A.heartbeats")] == ["A", "A", None, "A"]
    assert [made.upstream_topic(topic) for topic in ("t", "B.t", "A.heartbeats")] == ["t", "B.t", "heartbeats"]
    assert made.original_topic("B.t") == "B.t"


def test_a_policy_implements_only_three_methods() -> None:
    class Reversed(ReplicationPolicy):
        def format_remote_topic(self, alias: str, topic: str) -> str:
            return f"{topic}@{alias}"

        def topic_source(self, topic: str) -> str | None:
            return topic.partition("@")[2] or None

        def upstream_topic(self, topic: str) -> str | None:
            return topic.partition("@")[0] if "@" in topic else None

    made = policy(Reversed)
    assert made.original_topic("t@A") == "t"
    assert made.is_internal_topic("mm2-offset-syncs.B.internal")
    assert made.offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"
