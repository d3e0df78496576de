"""Creates remote topics and copies topic settings and ACLs to them. Runs on the driver."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sluiceway.api import TopicPartition
from sluiceway.connectors.mirror import keys
from sluiceway.connectors.mirror.client_properties import ADMIN, SOURCE, TARGET
from sluiceway.connectors.mirror.config import MirrorConfig
from sluiceway.connectors.mirror.filters import ConfigPropertyFilter
from sluiceway.errors import ConnectError, KafkaClientError
from sluiceway.kafka.cluster import Cluster, SettingChanges, TopicAcl, TopicSetting

log = logging.getLogger(__name__)

_COMPACTED = {"cleanup.policy": "compact"}


class Replicator:
    """Admin operations on both clusters. Methods raise KafkaClientError if a cluster does not answer. Not thread-safe."""

    def __init__(self, config: MirrorConfig) -> None:
        self._config = config
        self._topics = config.topics
        self._names = config.settings
        self._source = self._cluster(SOURCE, "replication-source-admin")
        self._target = self._cluster(TARGET, "replication-target-admin")
        self._copied: frozenset[str] = frozenset()

    def create_offset_syncs_topic(self) -> None:
        """Create the topic for offset syncs if they are enabled; a failure is logged, since copying works without it."""
        if (syncs := self._config.offset_syncs) is None:
            return
        cluster = self._source if syncs.cluster == SOURCE else self._target
        try:
            cluster.create(syncs.topic, 1, syncs.replication_factor, _COMPACTED)
        except KafkaClientError as error:
            log.error(
                "Cannot create the topic for offset syncs: %s Set %s (%d) to at most the number of brokers of the %s cluster, "
                "create the topic with cleanup.policy=compact, or set %s=false.",
                error,
                keys.OFFSET_SYNCS_TOPIC_REPLICATION_FACTOR,
                syncs.replication_factor,
                syncs.cluster,
                keys.EMIT_OFFSET_SYNCS_ENABLED,
            )

    def partitions(self) -> frozenset[TopicPartition]:
        """Return the source's partitions to copy, without creating remote topics."""
        counts = self._source.topics()
        return frozenset(
            TopicPartition(topic, number) for topic in counts if topic in self._topics for number in range(counts[topic])
        )

    def refresh(self, *, tolerant: bool = False) -> frozenset[TopicPartition]:
        """Create missing remote topics and partitions, and return the source's partitions that can be copied.

        If a remote topic cannot be created, log an error and leave it out (``tolerant``), or raise ConnectError.
        """
        source = {topic: count for topic, count in self._source.topics().items() if topic in self._topics}
        remote = {topic: self._config.remote(topic) for topic in source}
        changes = topic_changes(source, remote, self._target.topics())
        origin = {there: topic for topic, there in remote.items()}
        new = self._source.settings([origin[topic] for topic in changes.create])
        failed = set()
        for topic, partitions in {**changes.create, **changes.extend}.items():
            try:
                if topic in changes.create:
                    settings = settings_for_new(new.get(origin[topic], ()), self._names)
                    self._target.create(topic, partitions, self._config.replication_factor, settings)
                else:
                    self._target.extend(topic, partitions)
            except KafkaClientError as error:
                explained = self._with_advice(topic, error)
                if not tolerant:
                    raise explained from error
                log.error("Topic %s is not copied: %s", origin[topic], explained)
                failed.add(origin[topic])
        self._copied = frozenset(source) - failed
        return frozenset(TopicPartition(topic, number) for topic in self._copied for number in range(source[topic]))

    def sync_settings(self) -> None:
        """Copy the settings of the source topics to their remote topics."""
        remote = {topic: self._config.remote(topic) for topic in self._copied}
        here, there = self._source.settings(remote.keys()), self._target.settings(list(remote.values()))
        for topic, name in remote.items():
            if changes := setting_changes(here.get(topic, ()), there.get(name, ()), self._names):
                self._target.change_settings(name, changes)
                log.info("Topic %s: copied settings of topic %s: %s", name, topic, ", ".join((*changes.values, *changes.reset)))

    def sync_acls(self) -> None:
        """Copy ACLs to the remote topics, except permissions to write: only MirrorMaker writes to remote topics."""
        found = self._source.topic_acls()
        if found is None:
            log.debug("The source cluster has no authorizer, or denies this client to describe ACLs")
            return
        wanted = {acl for each in found if each.topic in self._copied and (acl := self._remote_acl(each)) is not None}
        missing = wanted.difference(self._target.topic_acls() or ())
        if missing:
            self._target.add_topic_acls(missing)
            log.info("Added %d ACLs to topics %s", len(missing), ", ".join(sorted({acl.topic for acl in missing})))

    def _remote_acl(self, acl: TopicAcl) -> TopicAcl | None:
        operation = acl.operation
        if acl.permission == "ALLOW":
            if operation == "WRITE":
                return None
            operation = "READ" if operation == "ALL" else operation
        return replace(acl, topic=self._config.remote(acl.topic), operation=operation)

    def _with_advice(self, topic: str, error: KafkaClientError) -> ConnectError:
        if error.code == "INVALID_REPLICATION_FACTOR":
            return ConnectError(
                f"{error} Set '{keys.REPLICATION_FACTOR}' ({self._config.replication_factor}) to at most the number of brokers "
                "of the target cluster, or to -1 for its default."
            )
        return ConnectError(f"{error} Create topic '{topic}' on the target cluster, or allow this client to create it.")

    def _cluster(self, cluster: str, role: str) -> Cluster:
        return Cluster(self._config.client(cluster, ADMIN, role), self._config.admin_timeout)


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
