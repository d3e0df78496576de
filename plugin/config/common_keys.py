"""The keys that sources and sinks have alike, as Kafka Connect 4.3 declares them. Its texts are part of what REST answers."""

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
            name=NAME, type=Type.STRING, importance=Importance.HIGH,
            validator=NonEmptyStringWithoutControlChars(), group=COMMON, order_in_group=1,
            width=Width.MEDIUM, display_name="Connector name",
            doc="Globally unique name to use for this connector.",
        ),
        ConfigKey(
            name=CONNECTOR_CLASS, type=Type.STRING, importance=Importance.HIGH,
            group=COMMON, order_in_group=2,
            width=Width.LONG, display_name="Connector class",
            doc="Name or alias of the class for this connector. Must be a subclass of "
                "org.apache.kafka.connect.connector.Connector. If the connector is "
                "org.apache.kafka.connect.file.FileStreamSinkConnector, you can either specify this full name,  or use "
                "\"FileStreamSink\" or \"FileStreamSinkConnector\" to make the configuration a bit shorter",
        ),
        ConfigKey(
            name=CONNECTOR_VERSION, type=Type.STRING, default=None, importance=Importance.MEDIUM,
            group=COMMON, order_in_group=3,
            width=Width.MEDIUM, display_name="Connector version",
            doc="Version of the connector.",
        ),
        ConfigKey(
            name=TASKS_MAX, type=Type.INT, default=1, importance=Importance.HIGH,
            validator=Range(1), group=COMMON, order_in_group=4,
            width=Width.SHORT, display_name="Tasks max",
            doc="Maximum number of tasks to use for this connector.",
        ),
        ConfigKey(
            name=TASKS_MAX_ENFORCE, type=Type.BOOLEAN, default=True, importance=Importance.LOW,
            group=COMMON, order_in_group=5,
            width=Width.SHORT, display_name="Enforce tasks max",
            doc="(Deprecated) Whether to enforce that the tasks.max property is respected by the connector. By default, "
                "connectors that generate too many tasks will fail, and existing sets of tasks that exceed the tasks.max "
                "property will also be failed. If this property is set to false, then connectors will be allowed to generate "
                "more than the maximum number of tasks, and existing sets of tasks that exceed the tasks.max property will be "
                "allowed to run. This property is deprecated and will be removed in an upcoming major release.",
        ),
        ConfigKey(
            name=KEY_CONVERTER, type=Type.CLASS, default=None, importance=Importance.LOW,
            group=COMMON, order_in_group=6,
            width=Width.SHORT, display_name="Key converter class",
            doc="Converter class used to convert between Kafka Connect format and the serialized form that is written to Kafka."
                " This controls the format of the keys in messages written to or read from Kafka, and since this is independent"
                " of connectors it allows any connector to work with any serialization format. Examples of common formats "
                "include JSON and Avro.",
        ),
        ConfigKey(
            name="key.converter.plugin.version", type=Type.STRING, default=None, importance=Importance.LOW,
            group=COMMON, order_in_group=7,
            width=Width.SHORT, display_name="Key converter version",
            doc="Version of the key converter.",
        ),
        ConfigKey(
            name=VALUE_CONVERTER, type=Type.CLASS, default=None, importance=Importance.LOW,
            group=COMMON, order_in_group=8,
            width=Width.SHORT, display_name="Value converter class",
            doc="Converter class used to convert between Kafka Connect format and the serialized form that is written to Kafka."
                " This controls the format of the values in messages written to or read from Kafka, and since this is "
                "independent of connectors it allows any connector to work with any serialization format. Examples of common "
                "formats include JSON and Avro.",
        ),
        ConfigKey(
            name="value.converter.plugin.version", type=Type.STRING, default=None, importance=Importance.LOW,
            group=COMMON, order_in_group=9,
            width=Width.SHORT, display_name="Value converter version",
            doc="Version of the value converter.",
        ),
        ConfigKey(
            name=HEADER_CONVERTER, type=Type.CLASS, default=None, importance=Importance.LOW,
            group=COMMON, order_in_group=10,
            width=Width.SHORT, display_name="Header converter class",
            doc="HeaderConverter class used to convert between Kafka Connect format and the serialized form that is written to "
                "Kafka. This controls the format of the header values in messages written to or read from Kafka, and since this"
                " is independent of connectors it allows any connector to work with any serialization format. Examples of "
                "common formats include JSON and Avro. By default, the SimpleHeaderConverter is used to serialize header values"
                " to strings and deserialize them by inferring the schemas.",
        ),
        ConfigKey(
            name="header.converter.plugin.version", type=Type.STRING, default=None, importance=Importance.LOW,
            group=COMMON, order_in_group=11,
            width=Width.SHORT, display_name="Header converter version",
            doc="Version of the header converter.",
        ),
        ConfigKey(
            name=TRANSFORMS, type=Type.LIST, default=[], importance=Importance.LOW,
            validator=aliases_once, group="Transforms", order_in_group=12,
            width=Width.LONG, display_name="Transforms",
            doc="Aliases for the transformations to be applied to records.",
        ),
        ConfigKey(
            name=PREDICATES, type=Type.LIST, default=[], importance=Importance.LOW,
            validator=aliases_once, group="Predicates", order_in_group=13,
            width=Width.LONG, display_name="Predicates",
            doc="Aliases for the predicates used by transformations.",
        ),
        ConfigKey(
            name="config.action.reload", type=Type.STRING, default="restart", importance=Importance.LOW,
            validator=OneOf(("none", "restart")), group=COMMON, order_in_group=14,
            width=Width.MEDIUM, display_name="Reload Action",
            doc="The action that Connect should take on the connector when changes in external configuration providers result "
                "in a change in the connector's configuration properties. A value of 'none' indicates that Connect will do "
                "nothing. A value of 'restart' indicates that Connect should restart/reload the connector with the updated "
                "configuration properties.The restart may actually be scheduled in the future if the external configuration "
                "provider indicates that a configuration value will expire in the future.",
        ),
        ConfigKey(
            name="errors.retry.timeout", type=Type.LONG, default=0, importance=Importance.MEDIUM,
            group=ERRORS, order_in_group=1,
            width=Width.MEDIUM, display_name="Retry Timeout for Errors",
            doc="The maximum duration in milliseconds that a failed operation will be reattempted. The default is 0, which "
                "means no retries will be attempted. Use -1 for infinite retries.",
        ),
        ConfigKey(
            name="errors.retry.delay.max.ms", type=Type.LONG, default=60000, importance=Importance.MEDIUM,
            group=ERRORS, order_in_group=2,
            width=Width.MEDIUM, display_name="Maximum Delay Between Retries for Errors",
            doc="The maximum duration in milliseconds between consecutive retry attempts. Jitter will be added to the delay "
                "once this limit is reached to prevent thundering herd issues.",
        ),
        ConfigKey(
            name="errors.tolerance", type=Type.STRING, default="none", importance=Importance.MEDIUM,
            validator=OneOf(("none", "all")), group=ERRORS, order_in_group=3,
            width=Width.SHORT, display_name="Error Tolerance",
            doc="Behavior for tolerating errors during connector operation. 'none' is the default value and signals that any "
                "error will result in an immediate connector task failure; 'all' changes the behavior to skip over problematic "
                "records.",
        ),
        ConfigKey(
            name="errors.log.enable", type=Type.BOOLEAN, default=False, importance=Importance.MEDIUM,
            group=ERRORS, order_in_group=4,
            width=Width.SHORT, display_name="Log Errors",
            doc="If true, write each error and the details of the failed operation and problematic record to the Connect "
                "application log. This is 'false' by default, so that only errors that are not tolerated are reported.",
        ),
        ConfigKey(
            name="errors.log.include.messages", type=Type.BOOLEAN, default=False, importance=Importance.MEDIUM,
            group=ERRORS, order_in_group=5,
            width=Width.SHORT, display_name="Log Error Details",
            doc="Whether to include in the log the Connect record that resulted in a failure. For sink records, the topic, "
                "partition, offset, and timestamp will be logged. For source records, the key and value (and their schemas), "
                "all headers, and the timestamp, Kafka topic, Kafka partition, source partition, and source offset will be "
                "logged. This is 'false' by default, which will prevent record keys, values, and headers from being written to "
                "log files.",
        ),
    ]
)  # fmt: skip
