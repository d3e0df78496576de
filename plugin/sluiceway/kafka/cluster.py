"""Reads and changes the topics, settings and ACLs of any cluster, for connectors such as MirrorSource.

Every call blocks until the cluster answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)

from sluiceway.errors import KafkaClientError
from sluiceway.kafka.admin import create_topic
from sluiceway.kafka.answers import answer, refusal
from sluiceway.kafka.clients import CLIENT_DEFAULTS, log, to_librdkafka
from sluiceway.kafka.errors import MISSING_TOPIC, mapped_errors


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """A topic's setting.

    ``default``: the value is Kafka's default; ``of_topic``: it is set on this topic; ``copyable``: it can be set on a topic
    of another cluster.
    """

    name: str
    value: str | None
    default: bool
    of_topic: bool
    copyable: bool


@dataclass(frozen=True, slots=True)
class SettingChanges:
    """Values to set, and names of settings to reset to their defaults."""

    values: Mapping[str, str] = field(default_factory=dict)
    reset: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.values or self.reset)


@dataclass(frozen=True, slots=True)
class TopicAcl:
    """An ACL on a topic. ``operation`` and ``permission`` are Kafka's names, such as READ and ALLOW."""

    topic: str
    principal: str
    host: str
    operation: str
    permission: str


class Cluster:
    """Admin access to one cluster. Every method raises KafkaClientError. ``timeout`` is in seconds, per request."""

    def __init__(self, properties: Mapping[str, str], timeout: float = 60.0) -> None:
        with mapped_errors("create a Kafka admin client"):
            self._admin = AdminClient({**CLIENT_DEFAULTS, **to_librdkafka(properties)}, logger=log)
        self._timeout = timeout
        self._where = properties.get("bootstrap.servers", "")

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of every topic."""
        with mapped_errors(f"list the topics of {self._where}"):
            found = self._admin.list_topics(timeout=self._timeout).topics
        return {name: len(topic.partitions) for name, topic in found.items() if topic.error is None}

    def settings(self, topics: Collection[str]) -> dict[str, list[TopicSetting]]:
        """Return the settings of topics including defaults. Topics that do not exist are left out."""
        if not topics:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        found: dict[str, list[TopicSetting]] = {}
        for resource, future in self._admin.describe_configs(resources, request_timeout=self._timeout).items():
            error = refusal(future)
            if error is None or error.code() not in MISSING_TOPIC:
                entries = answer(future, f"read the settings of topic '{resource.name}'")
                found[resource.name] = [_setting(entry) for entry in entries.values()]
        return found

    def create(self, topic: str, partitions: int, replication_factor: int, settings: Mapping[str, str] | None = None) -> bool:
        """Create a topic and return True, or return False if it exists. -1 is the cluster's default."""
        return create_topic(self._admin, topic, partitions, replication_factor, settings)

    def extend(self, topic: str, partitions: int) -> None:
        """Increase a topic's number of partitions to ``partitions``."""
        futures = self._admin.create_partitions([NewPartitions(topic, partitions)], request_timeout=self._timeout)
        self._answer(futures.values(), f"give topic '{topic}' {partitions} partitions")

    def change_settings(self, topic: str, changes: SettingChanges) -> None:
        """Change some of a topic's settings."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in changes.values.items()
        ]
        entries += [ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE) for name in changes.reset]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        futures = self._admin.incremental_alter_configs([resource], request_timeout=self._timeout)
        self._answer(futures.values(), f"change the settings of topic '{topic}'")

    def topic_acls(self) -> list[TopicAcl] | None:
        """Return the ACLs with literal topic names. None if there is no authorizer or this principal may not read them."""
        # None matches every topic, principal and host; the type stubs do not allow it.
        everything = AclBindingFilter(
            ResourceType.TOPIC,
            None,  # type: ignore[arg-type]
            ResourcePatternType.LITERAL,
            None,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        try:
            request = self._admin.describe_acls(everything, request_timeout=self._timeout)
            found = answer(request, f"read the ACLs of {self._where}")
        except KafkaClientError as error:
            if error.code in ("SECURITY_DISABLED", "CLUSTER_AUTHORIZATION_FAILED"):
                return None
            raise
        return [TopicAcl(acl.name, acl.principal, acl.host, acl.operation.name, acl.permission_type.name) for acl in found]

    def add_topic_acls(self, acls: Collection[TopicAcl]) -> None:
        """Add ACLs and keep the existing ones."""
        bindings = [
            AclBinding(
                ResourceType.TOPIC,
                acl.topic,
                ResourcePatternType.LITERAL,
                acl.principal,
                acl.host,
                AclOperation[acl.operation],
                AclPermissionType[acl.permission],
            )
            for acl in acls
        ]
        self._answer(self._admin.create_acls(bindings, request_timeout=self._timeout).values(), f"add ACLs at {self._where}")

    @staticmethod
    def _answer(futures: Iterable[Future[Any]], doing: str) -> None:
        for future in futures:
            answer(future, doing)


def _setting(entry: ConfigEntry) -> TopicSetting:
    source = ConfigSource(entry.source)
    copyable = not (entry.is_read_only or entry.is_sensitive or source is ConfigSource.STATIC_BROKER_CONFIG)
    return TopicSetting(
        entry.name, entry.value, source is ConfigSource.DEFAULT_CONFIG, source is ConfigSource.DYNAMIC_TOPIC_CONFIG, copyable
    )
