"""Validates and parses the config of MirrorSourceConnector and its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.definition import ConfigValue, ValidatedValue
from sluiceway.connectors.mirror import keys
from sluiceway.connectors.mirror.classes import configured
from sluiceway.connectors.mirror.client_properties import SOURCE, client_properties, reads_committed
from sluiceway.connectors.mirror.filters import ConfigPropertyFilter, TopicFilter, TopicSelection
from sluiceway.connectors.mirror.policy import ReplicationPolicy

CONFIG = keys.COMMON + keys.MIRROR_CONNECTOR + keys.CLIENT_SECURITY + keys.MIRROR_SOURCE
"""Includes Connect's own keys, as MirrorMaker 2 does: validation does not show the worker's defaults for them."""

_EXACTLY_ONCE = "exactly.once.support"
_NOT_EXACTLY_ONCE = (
    "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is configured with "
    "isolation.level set to 'read_committed'; otherwise, records from aborted and uncommitted transactions will be replicated "
    "from the source cluster to the target cluster."
)
_NO_OFFSET_SYNCS = "MirrorSourceConnector can't setup offset-syncs feature while emit.offset-syncs.enabled set to false"


def check(config: Mapping[str, str]) -> dict[str, ValidatedValue]:
    """Validate each key, and keys that depend on each other."""
    found = CONFIG.validate(config)
    if config.get(_EXACTLY_ONCE) == "required" and not reads_committed(config):
        found[_EXACTLY_ONCE] = ValidatedValue(_EXACTLY_ONCE, errors=[_NOT_EXACTLY_ONCE])
    if config.get(keys.EMIT_OFFSET_SYNCS_ENABLED) == "false" and any(
        key.startswith(("offset-syncs-", "offset-syncs.topic.")) for key in config
    ):
        found[keys.EMIT_OFFSET_SYNCS_ENABLED].errors.append(_NO_OFFSET_SYNCS)
    return found


@dataclass(frozen=True, slots=True)
class OffsetSyncsConfig:
    """The topic of offset syncs, and after how many records of a partition at most (``max_lag``)."""

    topic: str
    cluster: str
    replication_factor: int
    max_lag: int


class MirrorConfig:
    """The typed config of a connector or task. Times are in seconds; the interval None means never.

    Raises ConfigError for an invalid value.
    """

    def __init__(self, config: Mapping[str, str]) -> None:
        self.properties = dict(config)
        self.values = values = CONFIG.parse(config)
        self.name = config.get("name", "")
        self.enabled = values[keys.ENABLED] is True
        self.source = str(values[keys.SOURCE_CLUSTER_ALIAS])
        self.target = str(values[keys.TARGET_CLUSTER_ALIAS])
        self.admin_timeout = _number(values[keys.ADMIN_TIMEOUT_MS]) / 1000
        self.poll_timeout = _number(values[keys.CONSUMER_POLL_TIMEOUT_MS]) / 1000
        self.replication_factor = int(_number(values[keys.REPLICATION_FACTOR]))
        self.refresh_interval = self._interval(keys.REFRESH_TOPICS_ENABLED, keys.REFRESH_TOPICS_INTERVAL_SECONDS)
        self.configs_interval = self._interval(keys.SYNC_TOPIC_CONFIGS_ENABLED, keys.SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS)
        self.acls_interval = self._interval(keys.SYNC_TOPIC_ACLS_ENABLED, keys.SYNC_TOPIC_ACLS_INTERVAL_SECONDS)
        key = keys.REPLICATION_POLICY_CLASS
        self.policy = configured(ReplicationPolicy, key, values[key], self.properties)  # type: ignore[type-abstract]

    @property
    def topics(self) -> TopicSelection:
        """The topics to copy."""
        key = keys.TOPIC_FILTER_CLASS
        topic_filter = configured(TopicFilter, key, self.values[key], self.properties)  # type: ignore[type-abstract]
        heartbeats = self.values[keys.HEARTBEATS_REPLICATION_ENABLED] is True
        return TopicSelection(self.policy, topic_filter, self.target, heartbeats=heartbeats)

    @property
    def settings(self) -> ConfigPropertyFilter:
        """The filter of topic settings to copy."""
        key = keys.CONFIG_PROPERTY_FILTER_CLASS
        return configured(ConfigPropertyFilter, key, self.values[key], self.properties)  # type: ignore[type-abstract]

    @property
    def offset_syncs(self) -> OffsetSyncsConfig | None:
        """The topic of offset syncs; None if they are disabled."""
        values = self.values
        if values[keys.EMIT_OFFSET_SYNCS_ENABLED] is not True:
            return None
        cluster = str(values[keys.OFFSET_SYNCS_TOPIC_LOCATION])
        other = self.target if cluster == SOURCE else self.source
        return OffsetSyncsConfig(
            self.policy.offset_syncs_topic(other),
            cluster,
            int(_number(values[keys.OFFSET_SYNCS_TOPIC_REPLICATION_FACTOR])),
            int(_number(values[keys.OFFSET_LAG_MAX])),
        )

    def remote(self, topic: str) -> str:
        """Return the name on the target of a topic of the source."""
        return self.policy.format_remote_topic(self.source, topic)

    def client(self, cluster: str, client: str, role: str) -> dict[str, str]:
        """Return ``client_properties`` with a ``client.id`` that contains the client's role."""
        number = self.properties.get("task.index")
        label = f"{self.source}->{self.target}|{self.name}" + (f"-{number}" if number else "")
        return {**client_properties(self.properties, cluster, client), "client.id": f"{label}|{role}"}

    def _interval(self, enabled: str, seconds: str) -> float | None:
        interval = _number(self.values[seconds])
        return interval if self.values[enabled] is True and interval > 0 else None


def _number(value: ConfigValue) -> float:
    assert isinstance(value, (int, float))  # noqa: S101 (the definition says so)
    return value
