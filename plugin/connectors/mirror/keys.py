"""The keys of a mirror that are its own, as MirrorMaker 2 declares them. Its texts are part of what REST answers."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, OneOf, UniqueList
from sluiceway.connectors.mirror.classes import known_class
from sluiceway.errors import ConfigError

ENABLED = "enabled"
SOURCE_CLUSTER_ALIAS = "source.cluster.alias"
TARGET_CLUSTER_ALIAS = "target.cluster.alias"
ADMIN_TIMEOUT_MS = "admin.timeout.ms"
REPLICATION_POLICY_CLASS = "replication.policy.class"
REPLICATION_POLICY_SEPARATOR = "replication.policy.separator"
REPLICATION_POLICY_INTERNAL_TOPIC_SEPARATOR_ENABLED = "replication.policy.internal.topic.separator.enabled"
SECURITY_PROTOCOL = "security.protocol"
TOPICS = "topics"
TOPICS_EXCLUDE = "topics.exclude"
CONFIG_PROPERTIES_EXCLUDE = "config.properties.exclude"
TOPIC_FILTER_CLASS = "topic.filter.class"
CONFIG_PROPERTY_FILTER_CLASS = "config.property.filter.class"
CONSUMER_POLL_TIMEOUT_MS = "consumer.poll.timeout.ms"
REFRESH_TOPICS_ENABLED = "refresh.topics.enabled"
REFRESH_TOPICS_INTERVAL_SECONDS = "refresh.topics.interval.seconds"
SYNC_TOPIC_CONFIGS_ENABLED = "sync.topic.configs.enabled"
SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS = "sync.topic.configs.interval.seconds"
SYNC_TOPIC_ACLS_ENABLED = "sync.topic.acls.enabled"
SYNC_TOPIC_ACLS_INTERVAL_SECONDS = "sync.topic.acls.interval.seconds"
REPLICATION_FACTOR = "replication.factor"
OFFSET_SYNCS_TOPIC_REPLICATION_FACTOR = "offset-syncs.topic.replication.factor"
OFFSET_LAG_MAX = "offset.lag.max"
OFFSET_SYNCS_TOPIC_LOCATION = "offset-syncs.topic.location"
EMIT_OFFSET_SYNCS_ENABLED = "emit.offset-syncs.enabled"
HEARTBEATS_REPLICATION_ENABLED = "heartbeats.replication.enabled"

_FORMAT = OneOf(("legacy", "new"))


def _known_formats(name: str, value: ConfigValue) -> None:
    """Validator of a list of names out of a fixed set; what is wrong first is what it says."""
    if value == []:
        raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {_FORMAT}")
    sound = [item for item in value if item] if isinstance(value, list) and len(set(value)) == len(value) else []
    for item in sound[: value.index("") if isinstance(value, list) and "" in value else None]:
        _FORMAT(name, item)
    UniqueList()(name, value)


BOTH = ConfigDef(
    [
        ConfigKey(
            name=ENABLED, type=Type.BOOLEAN, default=True, importance=Importance.LOW,
            doc="Whether to replicate source->target.",
        ),
        ConfigKey(
            name=SOURCE_CLUSTER_ALIAS, type=Type.STRING, importance=Importance.HIGH,
            doc="Alias of source cluster",
        ),
        ConfigKey(
            name=TARGET_CLUSTER_ALIAS, type=Type.STRING, default="target", importance=Importance.HIGH,
            doc="Alias of target cluster. Used in metrics reporting.",
        ),
        ConfigKey(
            name=ADMIN_TIMEOUT_MS, type=Type.LONG, default=60000, importance=Importance.LOW,
            doc="Timeout for administrative tasks, e.g. detecting new topics.",
        ),
        ConfigKey(
            name=REPLICATION_POLICY_CLASS, type=Type.CLASS,
            default="org.apache.kafka.connect.mirror.DefaultReplicationPolicy", importance=Importance.LOW,
            loader=known_class,
            doc="Class which defines the remote topic naming convention.",
        ),
        ConfigKey(
            name=REPLICATION_POLICY_SEPARATOR, type=Type.STRING, default=".", importance=Importance.LOW,
            doc="Separator used in remote topic naming convention.",
        ),
        ConfigKey(
            name=REPLICATION_POLICY_INTERNAL_TOPIC_SEPARATOR_ENABLED, type=Type.BOOLEAN, default=True, importance=Importance.LOW,
            doc="Whether to use replication.policy.separator to control the names of topics used for checkpoints and "
                "offset syncs. By default, custom separators are used in these topic names; however, if upgrading "
                "MirrorMaker 2 from older versions that did not allow for these topic names to be customized, it may be "
                "necessary to set this property to 'false' in order to continue using the same names for those topics.",
        ),
        ConfigKey(
            name="forwarding.admin.class", type=Type.CLASS,
            default="org.apache.kafka.clients.admin.ForwardingAdmin", importance=Importance.LOW,
            loader=known_class,
            doc="Class which extends ForwardingAdmin to define custom cluster resource management (topics, configs, etc). "
                "The class must have a constructor with signature <code>(Map<String, Object> config)</code> that is used "
                "to configure a KafkaAdminClient and may also be used to configure clients for external systems if "
                "necessary.",
        ),
        ConfigKey(
            name="metric.reporters", type=Type.LIST,
            default=["org.apache.kafka.common.metrics.JmxReporter"], importance=Importance.LOW,
            validator=UniqueList(allow_empty=True),
            doc="A list of classes to use as metrics reporters. Implementing the "
                "<code>org.apache.kafka.common.metrics.MetricsReporter</code> interface allows plugging in classes that "
                "will be notified of new metric creation. When custom reporters are set and "
                "<code>org.apache.kafka.common.metrics.JmxReporter</code> is needed, it has to be explicitly added to the "
                "list.",
        ),
        ConfigKey(
            name=SECURITY_PROTOCOL, type=Type.STRING, default="PLAINTEXT", importance=Importance.MEDIUM,
            validator=OneOf(("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT"), ignore_case=True),
            doc="Protocol used to communicate with brokers.",
        ),
        ConfigKey(
            name="config.providers", type=Type.LIST, default=[], importance=Importance.LOW,
            validator=UniqueList(allow_empty=True),
            doc="Comma-separated alias names for classes implementing the <code>ConfigProvider</code> interface. This "
                "enables loading configuration data (such as passwords, API keys, and other credentials) from external "
                "sources. For example, see <a "
                'href="https://kafka.apache.org/documentation/#config_providers">Configuration Providers</a>.',
        ),
    ]
)  # fmt: skip

REPLICATION = ConfigDef(
    [
        ConfigKey(
            name=TOPICS, type=Type.LIST, default=[".*"], importance=Importance.HIGH,
            validator=UniqueList(allow_empty=True),
            doc="Topics to replicate. Supports comma-separated topic names and regexes.",
        ),
        ConfigKey(
            name=TOPICS_EXCLUDE, type=Type.LIST, default=["mm2.*\\.internal", ".*\\.replica", "__.*"], importance=Importance.HIGH,
            validator=UniqueList(allow_empty=True),
            doc="Excluded topics. Supports comma-separated topic names and regexes. Excludes take precedence over includes.",
        ),
        ConfigKey(
            name=CONFIG_PROPERTIES_EXCLUDE, type=Type.LIST,
            default=[
                "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
                "message.timestamp.difference.max.ms", "log.message.timestamp.before.max.ms",
                "log.message.timestamp.after.max.ms", "message.timestamp.type", "unclean.leader.election.enable",
                "min.insync.replicas",
            ],
            importance=Importance.HIGH,
            validator=UniqueList(allow_empty=True),
            doc="Topic config properties that should not be replicated. Supports comma-separated property names and "
                "regexes.",
        ),
        ConfigKey(
            name=TOPIC_FILTER_CLASS, type=Type.CLASS,
            default="org.apache.kafka.connect.mirror.DefaultTopicFilter", importance=Importance.LOW,
            loader=known_class,
            doc="TopicFilter to use. Selects topics to replicate.",
        ),
        ConfigKey(
            name=CONFIG_PROPERTY_FILTER_CLASS, type=Type.CLASS,
            default="org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter", importance=Importance.LOW,
            loader=known_class,
            doc="ConfigPropertyFilter to use. Selects topic config  properties to replicate.",
        ),
        ConfigKey(
            name=CONSUMER_POLL_TIMEOUT_MS, type=Type.LONG, default=1000, importance=Importance.LOW,
            doc="Timeout when polling source cluster.",
        ),
        ConfigKey(
            name=REFRESH_TOPICS_ENABLED, type=Type.BOOLEAN, default=True, importance=Importance.LOW,
            doc="Whether to periodically check for new topics and partitions.",
        ),
        ConfigKey(
            name=REFRESH_TOPICS_INTERVAL_SECONDS, type=Type.LONG, default=600, importance=Importance.LOW,
            doc="Frequency of topic refresh.",
        ),
        ConfigKey(
            name=SYNC_TOPIC_CONFIGS_ENABLED, type=Type.BOOLEAN, default=True, importance=Importance.LOW,
            doc="Whether to periodically configure remote topics to match their corresponding upstream topics.",
        ),
        ConfigKey(
            name=SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS, type=Type.LONG, default=600, importance=Importance.LOW,
            doc="Frequency of topic config sync.",
        ),
        ConfigKey(
            name=SYNC_TOPIC_ACLS_ENABLED, type=Type.BOOLEAN, default=True, importance=Importance.LOW,
            doc="Whether to periodically configure remote topic ACLs to match their corresponding upstream topics.",
        ),
        ConfigKey(
            name=SYNC_TOPIC_ACLS_INTERVAL_SECONDS, type=Type.LONG, default=600, importance=Importance.LOW,
            doc="Frequency of topic ACL sync.",
        ),
        ConfigKey(
            name=REPLICATION_FACTOR, type=Type.INT, default=2, importance=Importance.LOW,
            doc="Replication factor for newly created remote topics.",
        ),
        ConfigKey(
            name=OFFSET_SYNCS_TOPIC_REPLICATION_FACTOR, type=Type.SHORT, default=3, importance=Importance.LOW,
            doc="Replication factor for offset-syncs topic.",
        ),
        ConfigKey(
            name=OFFSET_LAG_MAX, type=Type.LONG, default=100, importance=Importance.LOW,
            doc="How out-of-sync a remote partition can be before it is resynced.",
        ),
        ConfigKey(
            name=OFFSET_SYNCS_TOPIC_LOCATION, type=Type.STRING, default="source", importance=Importance.LOW,
            validator=OneOf(("source", "target")),
            doc="The location (source/target) of the offset-syncs topic.",
        ),
        ConfigKey(
            name=EMIT_OFFSET_SYNCS_ENABLED, type=Type.BOOLEAN, default=True, importance=Importance.LOW,
            doc="Whether to store the new offset of the replicated records in offset-syncs topic or not. "
                "MirrorCheckpointConnector will not be able to sync group offsets or emit checkpoints if "
                "emit.checkpoints.enabled and/or sync.group.offsets.enabled are enabled while emit.offset-syncs.enabled is "
                "disabled.",
        ),
        ConfigKey(
            name=HEARTBEATS_REPLICATION_ENABLED, type=Type.BOOLEAN, default=True, importance=Importance.LOW,
            doc="Whether to replicate the heartbeats topics even when the topic filter does not include them. If set to "
                "true, heartbeats topics identified by the replication policy will always be replicated, regardless of the "
                "topic filter configuration. If set to false, heartbeats topics will only be replicated if the topic "
                "filter allows.",
        ),
        ConfigKey(
            name="metric.names.formats", type=Type.LIST, default=["legacy"], importance=Importance.LOW,
            validator=Check(_known_formats, str(_FORMAT)),
            doc="Deprecated. The formats in which metrics are emitted. Valid values are legacy and new. When set to "
                "legacy, the metrics have the following name "
                '"kafka.connect.mirror:type=MirrorSourceConnector,source={SOURCE},target={TARGET},'
                'topic={TOPIC},partition={PARTITION}". '
                "When set to new, the metrics have the following name "
                '"kafka.connect:type=plugins,connector={CONNECTOR},task={TASK},source={SOURCE},target={TARGET},'
                'topic={TOPIC},partition={PARTITION}". '
                'When set to "legacy,new" the connector will emit metrics with both names, this can be useful when '
                "migrating to the new format but it doubles the amount of metrics that are emitted.\nIn Kafka 5.0 the "
                "legacy format and this configuration will be removed and the metrics will always use the new names.",
        ),
    ]
)  # fmt: skip
