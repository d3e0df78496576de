"""Defines the keys of sinks, as in Kafka Connect 4.3. The documentation is Sluiceway's own."""

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
            doc="Topics to read, separated by commas. Cannot be combined with topics.regex.",
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
            doc="Java regular expression that matches the whole names of the topics to read. Cannot be combined with topics.",
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
            doc="Topic of the dead letter queue, for records on which the connector, a transformation or a converter has failed. "
            "Empty: such records are not kept.",
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
            doc="Replication factor of the dead letter queue topic if it is created.",
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
            doc="If true, records in the dead letter queue have headers with the error and its context. Their names start with "
            "__connect.errors. to avoid clashes with the record's own headers.",
        ),
    ]
)
