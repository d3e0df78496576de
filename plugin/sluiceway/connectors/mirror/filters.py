"""Selects the topics to copy and the topic settings to copy. No I/O."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import ClassVar

from sluiceway.config.definition import ConfigDef, ConfigKey, Type
from sluiceway.connectors.mirror.policy import ReplicationPolicy
from sluiceway.errors import ConfigError
from sluiceway.java.regex import JavaRegex, RegexError, compile_java

_TOPICS = ConfigDef(
    [
        ConfigKey(name="topics", type=Type.LIST, default=[".*"]),
        ConfigKey(name="topics.exclude", type=Type.LIST, default=[r"mm2.*\.internal", r".*\.replica", "__.*"]),
    ]
)
_PROPERTIES = ConfigDef(
    [
        ConfigKey(
            name="config.properties.exclude",
            type=Type.LIST,
            default=[
                r"follower\.replication\.throttled\.replicas",
                r"leader\.replication\.throttled\.replicas",
                r"message\.timestamp\.difference\.max\.ms",
                r"log\.message\.timestamp\.before\.max\.ms",
                r"log\.message\.timestamp\.after\.max\.ms",
                r"message\.timestamp\.type",
                r"unclean\.leader\.election\.enable",
                r"min\.insync\.replicas",
            ],
        ),
        ConfigKey(name="use.defaults.from", type=Type.STRING, default="target"),
    ]
)


class TopicFilter(abc.ABC):
    """Selects topics by name: MirrorMaker 2's TopicFilter, set by ``topic.filter.class``. Configured once, before use."""

    java_class: ClassVar[str | None] = None

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027 (a filter may need nothing)
        """Take the whole config of the connector."""

    @abc.abstractmethod
    def should_replicate_topic(self, topic: str) -> bool:
        """Return True if the source's topic must be copied."""


class ConfigPropertyFilter(abc.ABC):
    """Selects topic settings by name: MirrorMaker 2's ConfigPropertyFilter, set by ``config.property.filter.class``."""

    java_class: ClassVar[str | None] = None

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027 (a filter may need nothing)
        """Take the whole config of the connector."""

    @abc.abstractmethod
    def should_replicate_config_property(self, name: str) -> bool:
        """Return True if remote topics must get their source topic's setting of this name."""

    def should_replicate_source_default(self, name: str) -> bool:
        """Return True if the setting is also copied when it is the source cluster's default, not set on the topic."""
        return False


class DefaultTopicFilter(TopicFilter):
    """Selects topics that match ``topics`` and not ``topics.exclude``: names, or regular expressions for whole names."""

    java_class = "org.apache.kafka.connect.mirror.DefaultTopicFilter"

    _wanted: NamePatterns
    _excluded: NamePatterns

    def configure(self, config: Mapping[str, str]) -> None:
        self._wanted, self._excluded = (NamePatterns(key.name, key.parse(config)) for key in _TOPICS)

    def should_replicate_topic(self, topic: str) -> bool:
        return topic in self._wanted and topic not in self._excluded


class DefaultConfigPropertyFilter(ConfigPropertyFilter):
    """Selects settings that ``config.properties.exclude`` does not match; ``use.defaults.from=source`` adds defaults."""

    java_class = "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"

    _excluded: NamePatterns
    _defaults = False

    def configure(self, config: Mapping[str, str]) -> None:
        values = _PROPERTIES.parse(config)
        self._excluded = NamePatterns("config.properties.exclude", values["config.properties.exclude"])
        self._defaults = values["use.defaults.from"] == "source"

    def should_replicate_config_property(self, name: str) -> bool:
        return name not in self._excluded

    def should_replicate_source_default(self, name: str) -> bool:
        return self._defaults


class NamePatterns:
    """The names that fully match one of several regular expressions. Raises ConfigError for an invalid expression."""

    def __init__(self, key: str, patterns: object) -> None:
        self._patterns = [_compiled(key, pattern) for pattern in patterns] if isinstance(patterns, list) else []

    def __contains__(self, name: str) -> bool:
        return any(pattern.matches(name) for pattern in self._patterns)


class TopicSelection:
    """The topics to copy: those that the filter selects, except internal topics and topics copied from the target."""

    def __init__(self, policy: ReplicationPolicy, topic_filter: TopicFilter, target: str, *, heartbeats: bool) -> None:
        self._policy = policy
        self._filter = topic_filter
        self._target = target
        self._heartbeats = heartbeats

    def __contains__(self, topic: str) -> bool:
        wanted = self._filter.should_replicate_topic(topic) or (self._heartbeats and self._policy.is_heartbeats_topic(topic))
        return wanted and not self._policy.is_internal_topic(topic) and not self._came_from_target(topic)

    def _came_from_target(self, topic: str) -> bool:
        """Return True if a topic was copied from the target, directly or over other clusters: copying it back would loop."""
        policy = self._policy
        while (alias := policy.topic_source(topic)) is not None:
            if alias == self._target:
                return True
            upstream = policy.upstream_topic(topic)
            if upstream is None or upstream == topic:
                return False
            topic = upstream
        return False


def _compiled(key: str, pattern: str) -> JavaRegex:
    try:
        return compile_java(pattern)
    except RegexError as error:
        raise ConfigError(key, pattern, f"Invalid regex pattern: {error}") from error
