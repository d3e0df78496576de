"""The keys that sources and sinks have alike, as Kafka Connect 4.3 declares them. The texts are our own."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, Width
from sluiceway.config.validators import NonEmptyStringWithoutControlChars, OneOf, Range, aliases_once

NAME = "name"
CONNECTOR_CLASS = "connector.class"
CONNECTOR_VERSION = "connector.plugin.version"
TASKS_MAX = "tasks.max"
TASKS_MAX_ENFORCE = "tasks.max.enforce"
KEY_CONVERTER = "key.converter"
VALUE_CONVERTER = "value.converter"
HEADER_CONVERTER = "header.converter"
TRANSFORMS = "transforms"
PREDICATES = "predicates"

COMMON = "Common"
ERRORS = "Error Handling"

CONNECTOR = ConfigDef(
    [
        ConfigKey(
            name=NAME,
            type=Type.STRING,
            importance=Importance.HIGH,
            validator=NonEmptyStringWithoutControlChars(),
            group=COMMON,
            order_in_group=1,
            width=Width.MEDIUM,
            display_name="Connector name",
            doc="What the connector is called; no other connector may have the same name.",
        ),
        ConfigKey(
            name=CONNECTOR_CLASS,
            type=Type.STRING,
            importance=Importance.HIGH,
            group=COMMON,
            order_in_group=2,
            width=Width.LONG,
            display_name="Connector class",
            doc="The connector's class: its full name, or an alias, which is the name without its package, with or without "
            "Connector at the end. FileStreamSink and FileStreamSinkConnector, for instance, stand for "
            "org.apache.kafka.connect.file.FileStreamSinkConnector.",
        ),
        ConfigKey(
            name=CONNECTOR_VERSION,
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            group=COMMON,
            order_in_group=3,
            width=Width.MEDIUM,
            display_name="Connector version",
            doc="Which version of the connector to use: one, or a range in Maven's notation. The latest if not given.",
        ),
        ConfigKey(
            name=TASKS_MAX,
            type=Type.INT,
            default=1,
            importance=Importance.HIGH,
            validator=Range(1),
            group=COMMON,
            order_in_group=4,
            width=Width.SHORT,
            display_name="Tasks max",
            doc="At most this many tasks share the connector's work.",
        ),
        ConfigKey(
            name=TASKS_MAX_ENFORCE,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            group=COMMON,
            order_in_group=5,
            width=Width.SHORT,
            display_name="Enforce tasks max",
            doc="Deprecated, as a coming major release of Kafka drops it. Whether a connector that asks for more tasks than "
            "tasks.max fails, and so do tasks of which there are too many already; with false all of them run.",
        ),
        ConfigKey(
            name=KEY_CONVERTER,
            type=Type.CLASS,
            default=None,
            importance=Importance.LOW,
            group=COMMON,
            order_in_group=6,
            width=Width.SHORT,
            display_name="Key converter class",
            doc="Converter between record keys in Connect and their bytes in Kafka, both ways: it decides their format, "
            "such as JSON or Avro, whatever the connector is. The worker's if not given.",
        ),
        ConfigKey(
            name="key.converter.plugin.version",
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            group=COMMON,
            order_in_group=7,
            width=Width.SHORT,
            display_name="Key converter version",
            doc="Which version of key.converter to use: one, or a range in Maven's notation. The latest if not given.",
        ),
        ConfigKey(
            name=VALUE_CONVERTER,
            type=Type.CLASS,
            default=None,
            importance=Importance.LOW,
            group=COMMON,
            order_in_group=8,
            width=Width.SHORT,
            display_name="Value converter class",
            doc="Converter between record values in Connect and their bytes in Kafka, both ways: it decides their format, "
            "such as JSON or Avro, whatever the connector is. The worker's if not given.",
        ),
        ConfigKey(
            name="value.converter.plugin.version",
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            group=COMMON,
            order_in_group=9,
            width=Width.SHORT,
            display_name="Value converter version",
            doc="Which version of value.converter to use: one, or a range in Maven's notation. The latest if not given.",
        ),
        ConfigKey(
            name=HEADER_CONVERTER,
            type=Type.CLASS,
            default=None,
            importance=Importance.LOW,
            group=COMMON,
            order_in_group=10,
            width=Width.SHORT,
            display_name="Header converter class",
            doc="Converter between header values in Connect and their bytes in Kafka, both ways: it decides their format, "
            "whatever the connector is. SimpleHeaderConverter, the usual one, writes text and guesses the type from the "
            "text.",
        ),
        ConfigKey(
            name="header.converter.plugin.version",
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            group=COMMON,
            order_in_group=11,
            width=Width.SHORT,
            display_name="Header converter version",
            doc="Which version of header.converter to use: one, or a range in Maven's notation. The latest if not given.",
        ),
        ConfigKey(
            name=TRANSFORMS,
            type=Type.LIST,
            default=[],
            importance=Importance.LOW,
            validator=aliases_once,
            group="Transforms",
            order_in_group=12,
            width=Width.LONG,
            display_name="Transforms",
            doc="Names of your choice for what is done to each record, in this order, separated by commas.",
        ),
        ConfigKey(
            name=PREDICATES,
            type=Type.LIST,
            default=[],
            importance=Importance.LOW,
            validator=aliases_once,
            group="Predicates",
            order_in_group=13,
            width=Width.LONG,
            display_name="Predicates",
            doc="Names of your choice for the conditions that transforms refer to, separated by commas.",
        ),
        ConfigKey(
            name="config.action.reload",
            type=Type.STRING,
            default="restart",
            importance=Importance.LOW,
            validator=OneOf(("none", "restart")),
            group=COMMON,
            order_in_group=14,
            width=Width.MEDIUM,
            display_name="Reload Action",
            doc="What happens when a config provider gives another value than before: restart starts the connector again "
            "with the new value, later if the provider says that the old one holds until then; none leaves the "
            "connector as it is.",
        ),
        ConfigKey(
            name="errors.retry.timeout",
            type=Type.LONG,
            default=0,
            importance=Importance.MEDIUM,
            group=ERRORS,
            order_in_group=1,
            width=Width.MEDIUM,
            display_name="Retry Timeout for Errors",
            doc="For how many milliseconds something that failed is tried again: 0 not at all, -1 for ever.",
        ),
        ConfigKey(
            name="errors.retry.delay.max.ms",
            type=Type.LONG,
            default=60000,
            importance=Importance.MEDIUM,
            group=ERRORS,
            order_in_group=2,
            width=Width.MEDIUM,
            display_name="Maximum Delay Between Retries for Errors",
            doc="Longest wait before the next attempt, in milliseconds. Waits that have grown to it vary at random, so that "
            "not everybody tries again at once.",
        ),
        ConfigKey(
            name="errors.tolerance",
            type=Type.STRING,
            default="none",
            importance=Importance.MEDIUM,
            validator=OneOf(("none", "all")),
            group=ERRORS,
            order_in_group=3,
            width=Width.SHORT,
            display_name="Error Tolerance",
            doc="With none, a task fails at once over a record that cannot be processed; with all, such records are skipped.",
        ),
        ConfigKey(
            name="errors.log.enable",
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.MEDIUM,
            group=ERRORS,
            order_in_group=4,
            width=Width.SHORT,
            display_name="Log Errors",
            doc="Whether tolerated errors are logged too, with what was being done to which record; if not, only those that "
            "are not tolerated.",
        ),
        ConfigKey(
            name="errors.log.include.messages",
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.MEDIUM,
            group=ERRORS,
            order_in_group=5,
            width=Width.SHORT,
            display_name="Log Error Details",
            doc="Whether logged errors show the record. Of a sink's record that is topic, partition, offset and timestamp; "
            "of a source's, key and value with their schemas, headers, timestamp, and topic, partition and offset on "
            "both sides. If not, no data gets into the log.",
        ),
    ]
)
