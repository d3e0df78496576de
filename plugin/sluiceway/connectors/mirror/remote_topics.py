"""What has to change on the target for its topics to match the source's. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sluiceway.connectors.mirror.filters import ConfigPropertyFilter
from sluiceway.kafka.cluster import SettingChanges, TopicSetting


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """Topics to create, and topics to give more partitions: remote topic to number of partitions."""

    create: Mapping[str, int]
    extend: Mapping[str, int]


def topic_changes(source: Mapping[str, int], remote: Mapping[str, str], target: Mapping[str, int]) -> TopicChanges:
    """Compare the partitions of the source's topics with those on the target; ``remote`` says what each is called there."""
    wanted = {remote[topic]: partitions for topic, partitions in source.items()}
    create = {topic: partitions for topic, partitions in wanted.items() if topic not in target}
    extend = {topic: partitions for topic, partitions in wanted.items() if target.get(topic, partitions) < partitions}
    return TopicChanges(create, extend)


def settings_for_new(settings: Iterable[TopicSetting], names: ConfigPropertyFilter) -> dict[str, str]:
    """Return the settings that a remote topic is created with."""
    return {
        setting.name: setting.value
        for setting in settings
        if setting.value is not None and _counts(setting, names) and not _left_to_target(setting, names)
    }


def setting_changes(
    source: Iterable[TopicSetting], target: Iterable[TopicSetting], names: ConfigPropertyFilter
) -> SettingChanges:
    """Return how a remote topic's settings are to be changed; what is the source's default is reset to the target's."""
    there = {setting.name: setting for setting in target}
    wanted, reset = {}, []
    for setting in source:
        now = there.get(setting.name)
        if not _counts(setting, names) or setting.value is None or now is None:
            continue
        if _left_to_target(setting, names):
            if now.of_topic:
                reset.append(setting.name)
        elif now.value != setting.value:
            wanted[setting.name] = setting.value
    return SettingChanges(wanted, tuple(reset))


def _counts(setting: TopicSetting, names: ConfigPropertyFilter) -> bool:
    return setting.copyable and names.should_replicate_config_property(setting.name)


def _left_to_target(setting: TopicSetting, names: ConfigPropertyFilter) -> bool:
    return setting.default and not names.should_replicate_source_default(setting.name)
