"""The keys that only sinks have, as Kafka Connect 4.3 declares them. The texts are our own."""

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
            name=TOPICS,
            type=Type.LIST,
            default=[],
            importance=Importance.HIGH,
            validator=UniqueList(allow_empty=True),
            group=COMMON,
            order_in_group=4,
            width=Width.LONG,
            display_name="Topics",
            doc="Topics to read, with commas between them. Not together with topics.regex.",
        ),
        ConfigKey(
            name=TOPICS_REGEX,
            type=Type.STRING,
            default="",
            importance=Importance.HIGH,
            group=COMMON,
            order_in_group=4,
            width=Width.LONG,
            display_name="Topics regex",
            doc="Java regular expression; every topic whose whole name matches it is read. Not together with topics.",
        ),
        ConfigKey(
            name=DLQ_TOPIC,
            type=Type.STRING,
            default="",
            importance=Importance.MEDIUM,
            group=ERRORS,
            order_in_group=6,
            width=Width.MEDIUM,
            display_name="Dead Letter Queue Topic Name",
            doc="Dead letter queue: the topic that gets the records which the connector, a transform or a converter failed "
            "on. Empty: they are not kept.",
        ),
        ConfigKey(
            name="errors.deadletterqueue.topic.replication.factor",
            type=Type.SHORT,
            default=3,
            importance=Importance.MEDIUM,
            group=ERRORS,
            order_in_group=7,
            width=Width.MEDIUM,
            display_name="Dead Letter Queue Topic Replication Factor",
            doc="How many replicas the dead letter queue's topic gets if it has to be created.",
        ),
        ConfigKey(
            name="errors.deadletterqueue.context.headers.enable",
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.MEDIUM,
            group=ERRORS,
            order_in_group=8,
            width=Width.MEDIUM,
            display_name="Enable Error Context Headers",
            doc="Whether records in the dead letter queue tell in headers what went wrong and where. The names of these "
            "begin with __connect.errors. so as not to meet the record's own.",
        ),
    ]
)
