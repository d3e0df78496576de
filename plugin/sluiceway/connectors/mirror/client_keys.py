"""The keys of a mirror that are its own, as MirrorMaker 2 declares them, described in our words."""

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
            name=ENABLED,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="false turns copying from the source to the target off.",
        ),
        ConfigKey(
            name=SOURCE_CLUSTER_ALIAS,
            type=Type.STRING,
            importance=Importance.HIGH,
            doc="Short name of the cluster that topics are copied from.",
        ),
        ConfigKey(
            name=TARGET_CLUSTER_ALIAS,
            type=Type.STRING,
            default="target",
            importance=Importance.HIGH,
            doc="Short name of the cluster that topics are copied to; it also appears in metrics.",
        ),
        ConfigKey(
            name=ADMIN_TIMEOUT_MS,
            type=Type.LONG,
            default=60000,
            importance=Importance.LOW,
            doc="How many milliseconds an administrative request, such as listing topics, may take.",
        ),
        ConfigKey(
            name=REPLICATION_POLICY_CLASS,
            type=Type.CLASS,
            default="org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
            importance=Importance.LOW,
            loader=known_class,
            doc="The class that says what a topic is called on the target.",
        ),
        ConfigKey(
            name=REPLICATION_POLICY_SEPARATOR,
            type=Type.STRING,
            default=".",
            importance=Importance.LOW,
            doc="What stands between the source's alias and the topic's name in the name of a remote topic.",
        ),
        ConfigKey(
            name=REPLICATION_POLICY_INTERNAL_TOPIC_SEPARATOR_ENABLED,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="true: the names of the topics of checkpoints and offset syncs contain replication.policy.separator as well. "
            "Set false to keep the fixed names that early MirrorMaker 2 releases gave them.",
        ),
        ConfigKey(
            name="forwarding.admin.class",
            type=Type.CLASS,
            default="org.apache.kafka.clients.admin.ForwardingAdmin",
            importance=Importance.LOW,
            loader=known_class,
            doc="A subclass of ForwardingAdmin that manages topics, their settings and the like in a way of its own. Its "
            "constructor takes one Map<String, Object>, the config of its KafkaAdminClient and of any client "
            "of another system.",
        ),
        ConfigKey(
            name="metric.reporters",
            type=Type.LIST,
            default=["org.apache.kafka.common.metrics.JmxReporter"],
            importance=Importance.LOW,
            validator=UniqueList(allow_empty=True),
            doc="Classes that are told of each new metric; they implement "
            "<code>org.apache.kafka.common.metrics.MetricsReporter</code>. A list of your own replaces the default: name "
            "JmxReporter in it to keep that one.",
        ),
        ConfigKey(
            name=SECURITY_PROTOCOL,
            type=Type.STRING,
            default="PLAINTEXT",
            importance=Importance.MEDIUM,
            validator=OneOf(("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT"), ignore_case=True),
            doc="How clients talk to brokers: with TLS or in the clear, with SASL login or without.",
        ),
        ConfigKey(
            name="config.providers",
            type=Type.LIST,
            default=[],
            importance=Importance.LOW,
            validator=UniqueList(allow_empty=True),
            doc="Aliases of the config providers, separated by commas. A <code>ConfigProvider</code> fetches values such as "
            "passwords and API keys from where they are kept.",
        ),
    ]
)

REPLICATION = ConfigDef(
    [
        ConfigKey(
            name=TOPICS,
            type=Type.LIST,
            default=[".*"],
            importance=Importance.HIGH,
            validator=UniqueList(allow_empty=True),
            doc="Names of the topics to copy, or regular expressions for whole names, separated by commas.",
        ),
        ConfigKey(
            name=TOPICS_EXCLUDE,
            type=Type.LIST,
            default=["mm2.*\\.internal", ".*\\.replica", "__.*"],
            importance=Importance.HIGH,
            validator=UniqueList(allow_empty=True),
            doc="What not to copy even if topics matches it: names or regular expressions, separated by commas.",
        ),
        ConfigKey(
            name=CONFIG_PROPERTIES_EXCLUDE,
            type=Type.LIST,
            default=[
                "follower.replication.throttled.replicas",
                "leader.replication.throttled.replicas",
                "message.timestamp.difference.max.ms",
                "log.message.timestamp.before.max.ms",
                "log.message.timestamp.after.max.ms",
                "message.timestamp.type",
                "unclean.leader.election.enable",
                "min.insync.replicas",
            ],
            importance=Importance.HIGH,
            validator=UniqueList(allow_empty=True),
            doc="Settings of topics that remote topics do not take over: names or regular expressions, separated by commas.",
        ),
        ConfigKey(
            name=TOPIC_FILTER_CLASS,
            type=Type.CLASS,
            default="org.apache.kafka.connect.mirror.DefaultTopicFilter",
            importance=Importance.LOW,
            loader=known_class,
            doc="The TopicFilter that decides which topics are copied.",
        ),
        ConfigKey(
            name=CONFIG_PROPERTY_FILTER_CLASS,
            type=Type.CLASS,
            default="org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
            importance=Importance.LOW,
            loader=known_class,
            doc="The ConfigPropertyFilter that decides which of a topic's settings its remote topic is given.",
        ),
        ConfigKey(
            name=CONSUMER_POLL_TIMEOUT_MS,
            type=Type.LONG,
            default=1000,
            importance=Importance.LOW,
            doc="How many milliseconds one poll of the source waits for records.",
        ),
        ConfigKey(
            name=REFRESH_TOPICS_ENABLED,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Whether to look for topics and partitions that have been added at the source.",
        ),
        ConfigKey(
            name=REFRESH_TOPICS_INTERVAL_SECONDS,
            type=Type.LONG,
            default=600,
            importance=Importance.LOW,
            doc="Seconds from one look for new topics and partitions to the next.",
        ),
        ConfigKey(
            name=SYNC_TOPIC_CONFIGS_ENABLED,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Whether remote topics are given the settings of their source topics again and again.",
        ),
        ConfigKey(
            name=SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS,
            type=Type.LONG,
            default=600,
            importance=Importance.LOW,
            doc="Seconds from one copying of topics' settings to the next.",
        ),
        ConfigKey(
            name=SYNC_TOPIC_ACLS_ENABLED,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Whether remote topics are given the ACLs of their source topics again and again.",
        ),
        ConfigKey(
            name=SYNC_TOPIC_ACLS_INTERVAL_SECONDS,
            type=Type.LONG,
            default=600,
            importance=Importance.LOW,
            doc="Seconds from one copying of topics' ACLs to the next.",
        ),
        ConfigKey(
            name=REPLICATION_FACTOR,
            type=Type.INT,
            default=2,
            importance=Importance.LOW,
            doc="How many replicas a remote topic gets when it is made.",
        ),
        ConfigKey(
            name=OFFSET_SYNCS_TOPIC_REPLICATION_FACTOR,
            type=Type.SHORT,
            default=3,
            importance=Importance.LOW,
            doc="How many replicas the topic of offset syncs gets when it is made.",
        ),
        ConfigKey(
            name=OFFSET_LAG_MAX,
            type=Type.LONG,
            default=100,
            importance=Importance.LOW,
            doc="A partition's next offset sync is due when it has moved on by this many records.",
        ),
        ConfigKey(
            name=OFFSET_SYNCS_TOPIC_LOCATION,
            type=Type.STRING,
            default="source",
            importance=Importance.LOW,
            validator=OneOf(("source", "target")),
            doc="Which cluster keeps offset syncs: source or target.",
        ),
        ConfigKey(
            name=EMIT_OFFSET_SYNCS_ENABLED,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Whether to record which offset of the target belongs to which of the source. MirrorCheckpointConnector needs "
            "these offset syncs: without them its emit.checkpoints.enabled and sync.group.offsets.enabled have no effect.",
        ),
        ConfigKey(
            name=HEARTBEATS_REPLICATION_ENABLED,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="true: topics that the replication policy takes for heartbeats are copied in any case. false: the topic "
            "filter decides, as for any other topic.",
        ),
        ConfigKey(
            name="metric.names.formats",
            type=Type.LIST,
            default=["legacy"],
            importance=Importance.LOW,
            validator=Check(_known_formats, str(_FORMAT)),
            doc="Deprecated; Kafka 5.0 removes it and keeps the new names alone. How metrics are named. legacy: "
            "kafka.connect.mirror:type=MirrorSourceConnector,source={SOURCE},target={TARGET},"
            "topic={TOPIC},partition={PARTITION}; new: "
            "kafka.connect:type=plugins,connector={CONNECTOR},task={TASK},source={SOURCE},target={TARGET},"
            "topic={TOPIC},partition={PARTITION}. "
            "With both, every metric appears twice, which helps while moving from one to the other.",
        ),
    ]
)
