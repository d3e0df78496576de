"""Computes the changes that make remote topics match their source topics. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sluiceway.connectors.mirror.filters import ConfigPropertyFilter
from sluiceway.kafka.cluster import SettingChanges, TopicSetting


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """Remote topics to create and to extend, with the number of partitions they must have."""

    create: Mapping[str, int]
    extend: Mapping[str, int]


def topic_changes(source: Mapping[str, int], remote: Mapping[str, str], target: Mapping[str, int]) -> TopicChanges:
    """Compare the partition counts of ``source`` and ``target`` topics; ``remote`` maps source topics to remote topics."""
    wanted = {remote[topic]: partitions for topic, partitions in source.items()}
    create = {topic: partitions for topic, partitions in wanted.items() if topic not in target}
    extend = {topic: partitions for topic, partitions in wanted.items() if target.get(topic, partitions) < partitions}
    return TopicChanges(create, extend)


def settings_for_new(settings: Iterable[TopicSetting], names: ConfigPropertyFilter) -> dict[str, str]:
    """Return the settings with which a remote topic must be created."""
    return {
        setting.name: setting.value
        for setting in settings
        if setting.value is not None and _is_copied(setting, names) and not _has_target_default(setting, names)
    }


def setting_changes(
    source: Iterable[TopicSetting], target: Iterable[TopicSetting], names: ConfigPropertyFilter
) -> SettingChanges:
    """Return the changes to a remote topic's settings; defaults of the source are reset to the target's defaults."""
    there = {setting.name: setting for setting in target}
    wanted, reset = {}, []
    for setting in source:
        now = there.get(setting.name)
        if not _is_copied(setting, names) or setting.value is None or now is None:
            continue
        if _has_target_default(setting, names):
            if now.of_topic:
                reset.append(setting.name)
        elif now.value != setting.value:
            wanted[setting.name] = setting.value
    return SettingChanges(wanted, tuple(reset))


def _is_copied(setting: TopicSetting, names: ConfigPropertyFilter) -> bool:
    return setting.copyable and names.should_replicate_config_property(setting.name)


def _has_target_default(setting: TopicSetting, names: ConfigPropertyFilter) -> bool:
    return setting.default and not names.should_replicate_source_default(setting.name)
