"""Names remote topics: MirrorMaker 2's replication policies. No I/O."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import ClassVar

HEARTBEATS_TOPIC = "heartbeats"

_SEPARATOR = "replication.policy.separator"
_INTERNAL_SEPARATOR = "replication.policy.internal.topic.separator.enabled"
_ALIAS = "source.cluster.alias"


class ReplicationPolicy(abc.ABC):
    """Names remote topics and derives their source from the name: Kafka's interface, set by ``replication.policy.class``.

    ``configure`` is called once with the connector's whole config, before any other method.
    """

    java_class: ClassVar[str | None] = None

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027 (most policies need nothing)
        """Take the whole config of the connector."""

    @abc.abstractmethod
    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Return the name of the remote topic for a topic of the cluster with this alias."""

    @abc.abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster that a topic was copied from; None if it is not a remote topic."""

    @abc.abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """Return the name of a topic on the cluster it was copied from; None if it is not a remote topic."""

    def original_topic(self, topic: str) -> str:
        """Return the name of a topic on the cluster where its records were first written."""
        upstream = self.upstream_topic(topic)
        return topic if upstream is None or upstream == topic else self.original_topic(upstream)

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the name of the topic for offset syncs."""
        return f"mm2-offset-syncs.{alias}.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Return True if a topic is MirrorMaker's heartbeats topic or a copy of it."""
        return self.original_topic(topic) == HEARTBEATS_TOPIC

    def is_mirror_topic(self, topic: str) -> bool:
        """Return True for MirrorMaker's own topics (Kafka's ``isMM2InternalTopic``)."""
        return (topic.startswith("mm2") and topic.endswith(".internal")) or topic.endswith(".checkpoints.internal")

    def is_internal_topic(self, topic: str) -> bool:
        """Return True for internal topics of Kafka and MirrorMaker, which are never copied."""
        return topic.startswith(("__", ".")) or self.is_mirror_topic(topic)


class DefaultReplicationPolicy(ReplicationPolicy):
    """Prefixes the name with the source's alias: ``us-west.orders``."""

    java_class = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"

    _separator = "."
    _internal_separator = "."

    def configure(self, config: Mapping[str, str]) -> None:
        self._separator = config.get(_SEPARATOR, self._separator)
        if config.get(_INTERNAL_SEPARATOR, "true").lower() == "true":
            self._internal_separator = self._separator

    def format_remote_topic(self, alias: str, topic: str) -> str:
        return f"{alias}{self._separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        if not self._separator:
            return topic[0] if len(topic) > 1 else None  # Java's split by an empty separator gives single characters
        alias, _, rest = topic.partition(self._separator)
        return alias if rest.replace(self._separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        alias = self.topic_source(topic)
        return None if alias is None else topic[len(alias) + len(self._separator) :]

    def offset_syncs_topic(self, alias: str) -> str:
        return self._internal_separator.join(("mm2-offset-syncs", alias, "internal"))

    def is_mirror_topic(self, topic: str) -> bool:
        internal = f"{self._internal_separator}internal"
        checkpoints = f"{self._internal_separator}checkpoints{internal}"
        return (topic.startswith("mm2") and topic.endswith(internal)) or topic.endswith(checkpoints)


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Keeps the names except heartbeats. Loops cannot be detected then, so replicate in one direction only."""

    java_class = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

    _alias: str | None = None

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._alias = config.get(_ALIAS)

    def format_remote_topic(self, alias: str, topic: str) -> str:
        return super().format_remote_topic(alias, topic) if _may_be_heartbeats(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        return super().topic_source(topic) if _may_be_heartbeats(topic) else self._alias

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if _may_be_heartbeats(topic) else topic


def _may_be_heartbeats(topic: str) -> bool:
    return topic.endswith(HEARTBEATS_TOPIC)
