from __future__ import annotations

from sluiceway.connectors.mirror.filters import DefaultConfigPropertyFilter
from sluiceway.connectors.mirror.replicator import TopicChanges, setting_changes, settings_for_new, topic_changes
from sluiceway.kafka.cluster import SettingChanges, TopicSetting


def names(**config: str) -> DefaultConfigPropertyFilter:
    made = DefaultConfigPropertyFilter()
    made.configure({key.replace("_", "."): value for key, value in config.items()})
    return made


FROM_SOURCE = names(use_defaults_from="source")


def own(name: str, value: str | None, *, copyable: bool = True) -> TopicSetting:
    return TopicSetting(name, value, default=False, of_topic=True, copyable=copyable)


def default(name: str, value: str) -> TopicSetting:
    return TopicSetting(name, value, default=True, of_topic=False, copyable=True)


def test_missing_topics_are_created_and_those_with_fewer_partitions_extended() -> None:
    source = {"new": 3, "grown": 4, "same": 2, "smaller": 1}
    remote = {topic: f"A.{topic}" for topic in source}
    target = {"A.grown": 2, "A.same": 2, "A.smaller": 5, "new": 1}
    assert topic_changes(source, remote, target) == TopicChanges({"A.new": 3}, {"A.grown": 4})


def test_a_new_topic_gets_the_settings_of_its_source_topic() -> None:
    source = [
        own("retention.ms", "5"),
        default("segment.bytes", "9"),
        own("min.insync.replicas", "2"),
        own("x", "1", copyable=False),
    ]
    assert settings_for_new(source, names()) == {"retention.ms": "5"}
    assert settings_for_new(source, FROM_SOURCE) == {"retention.ms": "5", "segment.bytes": "9"}


def test_only_settings_that_differ_are_changed() -> None:
    source = [own("retention.ms", "5"), own("segment.bytes", "9"), own("min.insync.replicas", "2")]
    target = [own("retention.ms", "5"), default("segment.bytes", "1"), default("min.insync.replicas", "1")]
    assert setting_changes(source, target, names()) == SettingChanges({"segment.bytes": "9"})
    assert not setting_changes(source[:1], target, names())


def test_defaults_of_the_source_are_reset_to_the_targets_defaults() -> None:
    source, target = (
        [default("retention.ms", "5"), default("segment.bytes", "9")],
        [own("retention.ms", "7"), default("segment.bytes", "8")],
    )
    assert setting_changes(source, target, names()) == SettingChanges({}, ("retention.ms",))


def test_defaults_are_copied_if_use_defaults_from_is_source() -> None:
    source, target = [default("retention.ms", "5")], [default("retention.ms", "7")]
    assert setting_changes(source, target, FROM_SOURCE) == SettingChanges({"retention.ms": "5"})


def test_a_setting_unknown_to_the_target_is_not_copied() -> None:
    assert not setting_changes([own("newer.than.the.target", "1")], [own("retention.ms", "7")], names())
