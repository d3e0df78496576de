"""Defines the keys that sources and sinks share, as in Kafka Connect 4.3. The documentation is Sluiceway's own."""

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
            doc="Unique name of the connector.",
        ),
        ConfigKey(
            name=CONNECTOR_CLASS,
            type=Type.STRING,
            importance=Importance.HIGH,
            group=COMMON,
            order_in_group=2,
            width=Width.LONG,
            display_name="Connector class",
            doc="Class of the connector: its full name or an alias. An alias is the class name without its package, with or "
            "without Connector at the end. For example, FileStreamSink and FileStreamSinkConnector are aliases of "
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
            doc="Version of the connector: a single version, or a range in Maven's notation. Default: the latest.",
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
            doc="Maximum number of tasks of the connector.",
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
            doc="Deprecated; Kafka will remove it in a later major release. If true, a connector that generates more tasks than "
            "tasks.max fails, and so do existing tasks beyond that number. If false, all of them run.",
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
            doc="Converts record keys between Connect's data and the bytes in Kafka. It defines the format in Kafka, such as "
            "JSON or Avro, independently of the connector. Default: the worker's.",
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
            doc="Version of key.converter: a single version, or a range in Maven's notation. Default: the latest.",
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
            doc="Converts record values between Connect's data and the bytes in Kafka. It defines the format in Kafka, such as "
            "JSON or Avro, independently of the connector. Default: the worker's.",
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
            doc="Version of value.converter: a single version, or a range in Maven's notation. Default: the latest.",
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
            doc="Converts header values between Connect's data and the bytes in Kafka. It defines the format in Kafka, "
            "independently of the connector. The default, SimpleHeaderConverter, writes text and infers the type from the "
            "text when it reads.",
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
            doc="Version of header.converter: a single version, or a range in Maven's notation. Default: the latest.",
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
            doc="Aliases of the transformations, separated by commas. They are applied to each record in this order.",
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
            doc="Aliases of the predicates that transformations refer to, separated by commas.",
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
            doc="What to do when a value from a config provider expires: restart restarts the connector with the new value once "
            "the provider's time to live (TTL) is over; none does nothing.",
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
            doc="Maximum time in milliseconds to retry a failed operation. 0: no retries; -1: no limit.",
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
            doc="Maximum delay between retries, in milliseconds. Delays at the maximum are randomized, so that tasks do not all "
            "retry at the same time.",
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
            doc="What to do with a record that cannot be processed: none fails the task, all skips the record.",
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
            doc="If true, log every error with the details of the failed operation. If false, log only errors that are not "
            "tolerated.",
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
            doc="If true, logged errors describe the record. A sink's record: topic, partition, offset and timestamp. A "
            "source's record: key and value with their schemas, headers, timestamp, and topic, partition and offset on both "
            "sides. If false, no data is written to the log.",
        ),
    ]
)
