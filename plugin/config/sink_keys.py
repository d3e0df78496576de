"""The keys that only sinks have, as Kafka Connect 4.3 declares them. Its texts are part of what REST answers."""

from __future__ import annotations

from sluiceway.config.common_keys import COMMON, ERRORS
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, Width
from sluiceway.config.validators import UniqueList

TOPICS = "topics"
TOPICS_REGEX = "topics.regex"
DLQ_TOPIC = "errors.deadletterqueue.topic.name"

SINK = ConfigDef(
    [
        ConfigKey(
            name=TOPICS, type=Type.LIST, default=[], importance=Importance.HIGH,
            validator=UniqueList(allow_empty=True), group=COMMON, order_in_group=4,
            width=Width.LONG, display_name="Topics",
            doc="List of topics to consume, separated by commas",
        ),
        ConfigKey(
            name=TOPICS_REGEX, type=Type.STRING, default="", importance=Importance.HIGH,
            group=COMMON, order_in_group=4,
            width=Width.LONG, display_name="Topics regex",
            doc="Regular expression giving topics to consume. Under the hood, the regex is compiled to a "
                "<code>java.util.regex.Pattern</code>. Only one of topics or topics.regex should be specified.",
        ),
        ConfigKey(
            name=DLQ_TOPIC, type=Type.STRING, default="", importance=Importance.MEDIUM,
            group=ERRORS, order_in_group=6,
            width=Width.MEDIUM, display_name="Dead Letter Queue Topic Name",
            doc="The name of the topic to be used as the dead letter queue (DLQ) for messages that result in an error when "
                "processed by this sink connector, or its transformations or converters. The topic name is blank by default, "
                "which means that no messages are to be recorded in the DLQ.",
        ),
        ConfigKey(
            name="errors.deadletterqueue.topic.replication.factor", type=Type.SHORT, default=3, importance=Importance.MEDIUM,
            group=ERRORS, order_in_group=7,
            width=Width.MEDIUM, display_name="Dead Letter Queue Topic Replication Factor",
            doc="Replication factor used to create the dead letter queue topic when it doesn't already exist.",
        ),
        ConfigKey(
            name="errors.deadletterqueue.context.headers.enable", type=Type.BOOLEAN, default=False, importance=Importance.MEDIUM,
            group=ERRORS, order_in_group=8,
            width=Width.MEDIUM, display_name="Enable Error Context Headers",
            doc="If true, add headers containing error context to the messages written to the dead letter queue. To avoid "
                "clashing with headers from the original record, all error context header keys, all error context header keys "
                "will start with <code>__connect.errors.</code>",
        ),
    ]
)  # fmt: skip
