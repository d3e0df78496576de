"""A mirror's config: its definition, what validation adds to it, and its values for connector and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.definition import ConfigValue, ValidatedValue
from sluiceway.connectors.mirror import client_keys as keys
from sluiceway.connectors.mirror.classes import configured
from sluiceway.connectors.mirror.client_properties import SOURCE, client_properties, reads_committed
from sluiceway.connectors.mirror.common_keys import COMMON
from sluiceway.connectors.mirror.filters import ConfigPropertyFilter, TopicFilter, TopicSelection
from sluiceway.connectors.mirror.oauth_keys import OAUTH
from sluiceway.connectors.mirror.policy import ReplicationPolicy
from sluiceway.connectors.mirror.sasl_keys import SASL
from sluiceway.connectors.mirror.ssl_keys import SSL

CONFIG = COMMON + keys.BOTH + SSL + SASL + OAUTH + keys.REPLICATION
"""Connect's own keys are among them, as they are in MirrorMaker 2's: a mirror never shows the worker's defaults."""

_EXACTLY_ONCE = "exactly.once.support"
_NOT_EXACTLY_ONCE = (
    "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is configured with "
    "isolation.level set to 'read_committed'; otherwise, records from aborted and uncommitted transactions will be replicated "
    "from the source cluster to the target cluster."
)
_NO_OFFSET_SYNCS = "MirrorSourceConnector can't setup offset-syncs feature while emit.offset-syncs.enabled set to false"


def validate(config: Mapping[str, str]) -> dict[str, ValidatedValue]:
    """Return what is wrong with each key, and with keys that do not go together."""
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
    """Where offset syncs are written, and how often: at the latest every ``most_lag`` records."""

    topic: str
    cluster: str
    replication_factor: int
    most_lag: int


class MirrorConfig:
    """The values of a connector's or a task's config. Times in seconds, an interval None for never.

    Raises ConfigError for a value that cannot be used.
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
        """The settings of topics to copy."""
        key = keys.CONFIG_PROPERTY_FILTER_CLASS
        return configured(ConfigPropertyFilter, key, self.values[key], self.properties)  # type: ignore[type-abstract]

    @property
    def offset_syncs(self) -> OffsetSyncsConfig | None:
        """Where offset syncs are written, None if they are not."""
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
        """Return what a topic of the source is called on the target."""
        return self.policy.format_remote_topic(self.source, topic)

    def client(self, cluster: str, client: str, role: str) -> dict[str, str]:
        """Return the properties of a client in a role, which is part of its client id. See ``client_properties``."""
        number = self.properties.get("task.index")
        label = f"{self.source}->{self.target}|{self.name}" + (f"-{number}" if number else "")
        return {**client_properties(self.properties, cluster, client), "client.id": f"{label}|{role}"}

    def _interval(self, enabled: str, seconds: str) -> float | None:
        interval = _number(self.values[seconds])
        return interval if self.values[enabled] is True and interval > 0 else None


def _number(value: ConfigValue) -> float:
    assert isinstance(value, (int, float))  # noqa: S101 (the definition says so)
    return value
