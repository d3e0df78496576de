"""Finds plugins by the names in configs: an alias, a Java class name or a dotted Python path.

Sluiceway's own plugins are listed here. Others are registered as entry points, in groups such as ``sluiceway.transforms``.
Dotted Python paths are imported from installed packages and ``sys.path``. Java plugins come from ``plugin.path``, by a finder
that ``use_finder`` sets.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any, Protocol, TypeVar

from sluiceway import __version__
from sluiceway.api import Connector, Converter, HeaderConverter, Predicate, SinkConnector, SourceConnector, Transform
from sluiceway.config.plugin_keys import IN_JAVA, IN_PYTHON
from sluiceway.config.providers.built_in import BUILT_IN, CONFIG_PROVIDERS
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.java.version_range import VersionRange

log = logging.getLogger(__name__)

B = TypeVar("B")

CONNECT_VERSION = "4.3.0"
"""The version of Kafka Connect whose plugins and REST API are implemented."""

UNDEFINED_VERSION = "undefined"
"""Connect's version of a plugin that has none."""

_KAFKA = "org.apache.kafka."


class Finder(Protocol):
    """Finds plugins besides those of Python, by the groups of entry points."""

    @property
    def preferred(self) -> bool:
        """Whether its plugins are used rather than Python ones with the same name."""

    def named(self, group: str, name: str) -> Iterator[type]:
        """Yield the classes with this full name or alias, the newest version first."""

    def classes(self, group: str) -> list[type]:
        """Return all classes of a group, of each version."""


# Not entry points, because the copy of the package that is sent to executors as a zip has none.
_BUILT_IN = {
    "sluiceway.connectors": {
        "DeltaCompaction": "sluiceway.connectors.delta:DeltaCompactionConnector",
        "DeltaSink": "sluiceway.connectors.delta:DeltaSinkConnector",
        "DeltaSource": "sluiceway.connectors.delta:DeltaSourceConnector",
        "DebeziumJdbcSink": "sluiceway.connectors.jdbc.debezium:DebeziumJdbcSinkConnector",
        "AvroFileSink": "sluiceway.connectors.files.classes:AvroFileSinkConnector",
        "AzureBlobStorageSink": "sluiceway.connectors.files.classes:AzureBlobStorageSinkConnector",
        "CsvSink": "sluiceway.connectors.files.classes:CsvSinkConnector",
        "GcsSink": "sluiceway.connectors.files.classes:GcsSinkConnector",
        "HBaseSink": "sluiceway.connectors.hbase:HBaseSinkConnector",
        "HBaseSource": "sluiceway.connectors.hbase:HBaseSourceConnector",
        "HttpSink": "sluiceway.connectors.http:HttpSinkConnector",
        "HttpSource": "sluiceway.connectors.http:HttpSourceConnector",
        "Hdfs3Sink": "sluiceway.connectors.files.classes:Hdfs3SinkConnector",
        "HdfsSink": "sluiceway.connectors.files.classes:HdfsSinkConnector",
        "JsonFileSink": "sluiceway.connectors.files.classes:JsonFileSinkConnector",
        "OrcSink": "sluiceway.connectors.files.classes:OrcSinkConnector",
        "ParquetSink": "sluiceway.connectors.files.classes:ParquetSinkConnector",
        "S3Sink": "sluiceway.connectors.files.classes:S3SinkConnector",
        "TextSink": "sluiceway.connectors.files.classes:TextSinkConnector",
        "DltSink": "sluiceway.connectors.dlt.sink:DltSinkConnector",
        "DltSource": "sluiceway.connectors.dlt:DltSourceConnector",
        "ElasticsearchSink": "sluiceway.connectors.search.sink:ElasticsearchSinkConnector",
        "ElasticsearchSource": "sluiceway.connectors.search.source:ElasticsearchSourceConnector",
        "OpenSearchSource": "sluiceway.connectors.search.source:OpenSearchSourceConnector",
        "OpenSearchSink": "sluiceway.connectors.search.sink:OpenSearchSinkConnector",
        "FolderSource": "sluiceway.connectors.folder.connector:FolderSourceConnector",
        "FileStreamSource": "sluiceway.connectors.file.source:FileStreamSourceConnector",
        "FileStreamSink": "sluiceway.connectors.file.sink:FileStreamSinkConnector",
        "IcebergCompaction": "sluiceway.connectors.iceberg:IcebergCompactionConnector",
        "IcebergSink": "sluiceway.connectors.iceberg:IcebergSinkConnector",
        "IcebergSource": "sluiceway.connectors.iceberg:IcebergSourceConnector",
        "OtlpSink": "sluiceway.connectors.observability:OtlpSinkConnector",
        "OtlpSource": "sluiceway.connectors.observability:OtlpSourceConnector",
        "KinesisSink": "sluiceway.connectors.aws:KinesisSinkConnector",
        "KinesisSource": "sluiceway.connectors.aws:KinesisSourceConnector",
        "MqttSink": "sluiceway.connectors.mqtt:MqttSinkConnector",
        "MqttSource": "sluiceway.connectors.mqtt:MqttSourceConnector",
        "NatsConsumerSource": "sluiceway.connectors.nats:NatsConsumerSourceConnector",
        "NatsSink": "sluiceway.connectors.nats:NatsSinkConnector",
        "NatsStreamSource": "sluiceway.connectors.nats:NatsStreamSourceConnector",
        "RabbitQueueSource": "sluiceway.connectors.rabbitmq:RabbitQueueSourceConnector",
        "RabbitSink": "sluiceway.connectors.rabbitmq:RabbitSinkConnector",
        "RabbitStreamSource": "sluiceway.connectors.rabbitmq:RabbitStreamSourceConnector",
        "RedisGroupSource": "sluiceway.connectors.redis:RedisGroupSourceConnector",
        "RedisSink": "sluiceway.connectors.redis:RedisSinkConnector",
        "RedisStreamSource": "sluiceway.connectors.redis:RedisStreamSourceConnector",
        "SingerSink": "sluiceway.connectors.singer:SingerSinkConnector",
        "SingerSource": "sluiceway.connectors.singer:SingerSourceConnector",
        "PrometheusSource": "sluiceway.connectors.observability:PrometheusSourceConnector",
        "StatsdSource": "sluiceway.connectors.observability:StatsdSourceConnector",
        "SqsSink": "sluiceway.connectors.aws:SqsSinkConnector",
        "SqsSource": "sluiceway.connectors.aws:SqsSourceConnector",
        "PostgresConnector": "sluiceway.connectors.cdc.postgres.connector:PostgresConnector",
        "JdbcSink": "sluiceway.connectors.jdbc.sink:JdbcSinkConnector",
        "JdbcSource": "sluiceway.connectors.jdbc.source:JdbcSourceConnector",
        "MariaDbConnector": "sluiceway.connectors.cdc.mysql.connector:MariaDbConnector",
        "MySqlConnector": "sluiceway.connectors.cdc.mysql.connector:MySqlConnector",
        "MirrorSource": "sluiceway.connectors.mirror.source:MirrorSourceConnector",
        "TabularIcebergSink": "sluiceway.connectors.iceberg:TabularIcebergSinkConnector",
        "WebhookSource": "sluiceway.connectors.http:WebhookSourceConnector",
        "VerifiableSource": "sluiceway.connectors.verifiable.source:VerifiableSourceConnector",
        "VerifiableSink": "sluiceway.connectors.verifiable.sink:VerifiableSinkConnector",
        "SparkSink": "sluiceway.connectors.spark.sink:SparkSinkConnector",
        "SparkSource": "sluiceway.connectors.spark.source:SparkSourceConnector",
        "MockSource": "sluiceway.connectors.mock.source:MockSourceConnector",
        "MockSink": "sluiceway.connectors.mock.sink:MockSinkConnector",
    },
    "sluiceway.transforms": {
        "CastKey": "sluiceway.transforms.cast:CastKey",
        "CastValue": "sluiceway.transforms.cast:CastValue",
        "DropHeaders": "sluiceway.transforms.drop_headers:DropHeaders",
        "ExtractFieldKey": "sluiceway.transforms.extract_field:ExtractFieldKey",
        "ExtractFieldValue": "sluiceway.transforms.extract_field:ExtractFieldValue",
        "Filter": "sluiceway.transforms.filter_:Filter",
        "FlattenKey": "sluiceway.transforms.flatten:FlattenKey",
        "FlattenValue": "sluiceway.transforms.flatten:FlattenValue",
        "HeaderFromKey": "sluiceway.transforms.header_from:HeaderFromKey",
        "HeaderFromValue": "sluiceway.transforms.header_from:HeaderFromValue",
        "HoistFieldKey": "sluiceway.transforms.hoist_field:HoistFieldKey",
        "HoistFieldValue": "sluiceway.transforms.hoist_field:HoistFieldValue",
        "InsertFieldKey": "sluiceway.transforms.insert_field:InsertFieldKey",
        "InsertFieldValue": "sluiceway.transforms.insert_field:InsertFieldValue",
        "InsertHeader": "sluiceway.transforms.insert_header:InsertHeader",
        "MaskFieldKey": "sluiceway.transforms.mask_field:MaskFieldKey",
        "MaskFieldValue": "sluiceway.transforms.mask_field:MaskFieldValue",
        "RegexRouter": "sluiceway.transforms.regex_router:RegexRouter",
        "ReplaceFieldKey": "sluiceway.transforms.replace_field:ReplaceFieldKey",
        "ReplaceFieldValue": "sluiceway.transforms.replace_field:ReplaceFieldValue",
        "SetSchemaMetadataKey": "sluiceway.transforms.set_schema_metadata:SetSchemaMetadataKey",
        "SetSchemaMetadataValue": "sluiceway.transforms.set_schema_metadata:SetSchemaMetadataValue",
        "TimestampConverterKey": "sluiceway.transforms.timestamp_converter:TimestampConverterKey",
        "TimestampConverterValue": "sluiceway.transforms.timestamp_converter:TimestampConverterValue",
        "TimestampRouter": "sluiceway.transforms.timestamp_router:TimestampRouter",
        "ValueToKey": "sluiceway.transforms.value_to_key:ValueToKey",
        "ByLogicalTableRouter": "sluiceway.transforms.debezium.logical_topic_router:ByLogicalTableRouter",
        "EventRouter": "sluiceway.transforms.debezium.event_router:EventRouter",
        "ExtractChangedRecordState": "sluiceway.transforms.debezium.extract_changed_record_state:ExtractChangedRecordState",
        "ExtractNewRecordState": "sluiceway.transforms.debezium.extract_new_record_state:ExtractNewRecordState",
        "HeaderToValue": "sluiceway.transforms.debezium.header_to_value:HeaderToValue",
        "PartitionRouting": "sluiceway.transforms.debezium.partition_routing:PartitionRouting",
        "SchemaChangeEventFilter": "sluiceway.transforms.debezium.schema_change_event_filter:SchemaChangeEventFilter",
        "TimezoneConverter": "sluiceway.transforms.debezium.timezone_converter:TimezoneConverter",
        "ToLogicalTopicRouter": "sluiceway.transforms.debezium.logical_topic_router:ToLogicalTopicRouter",
    },
    "sluiceway.predicates": {
        "HasHeaderKey": "sluiceway.transforms.predicates.has_header_key:HasHeaderKey",
        "RecordIsTombstone": "sluiceway.transforms.predicates.record_is_tombstone:RecordIsTombstone",
        "TimestampBetween": "sluiceway.transforms.predicates.timestamp_between:TimestampBetween",
        "TopicNameMatches": "sluiceway.transforms.predicates.topic_name_matches:TopicNameMatches",
    },
    "sluiceway.converters": {
        "JsonConverter": "sluiceway.converters.json_converter:JsonConverter",
        "StringConverter": "sluiceway.converters.string_converter:StringConverter",
        "ByteArrayConverter": "sluiceway.converters.byte_array_converter:ByteArrayConverter",
        "ShortConverter": "sluiceway.converters.number_converters:ShortConverter",
        "IntegerConverter": "sluiceway.converters.number_converters:IntegerConverter",
        "LongConverter": "sluiceway.converters.number_converters:LongConverter",
        "FloatConverter": "sluiceway.converters.number_converters:FloatConverter",
        "DoubleConverter": "sluiceway.converters.number_converters:DoubleConverter",
        "BooleanConverter": "sluiceway.converters.boolean_converter:BooleanConverter",
        "AvroConverter": "sluiceway.converters.registry.avro:AvroConverter",
        "JsonSchemaConverter": "sluiceway.converters.registry.json_schema:JsonSchemaConverter",
        "ProtobufConverter": "sluiceway.converters.registry.protobuf:ProtobufConverter",
    },
    "sluiceway.header_converters": {
        "SimpleHeaderConverter": "sluiceway.converters.simple_header_converter:SimpleHeaderConverter",
    },
    CONFIG_PROVIDERS: BUILT_IN,
}


# The suffixes of class names that Connect's aliases leave out.
_SUFFIXES = {
    "sluiceway.connectors": "Connector",
    "sluiceway.transforms": "Transformation",
    "sluiceway.predicates": "Predicate",
    "sluiceway.converters": "Converter",
    "sluiceway.header_converters": "HeaderConverter",
    CONFIG_PROVIDERS: "ConfigProvider",
}


def load(path: str) -> Any:
    """Import the object at ``package.module:Name`` or ``package.module.Name``. Raises NotFoundError."""
    module, _, name = path.replace(":", ".").rpartition(".")
    if not module:
        raise NotFoundError(f"{path} is neither a known alias nor a dotted path.")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:  # the latter two for invalid module names
        raise NotFoundError(f"Cannot load {path}: {error}.") from error


@functools.cache
def plugins(group: str) -> dict[str, type]:
    """Return the classes of an entry point group by alias, Sluiceway's own first. Plugins that cannot be loaded are left out."""
    paths = dict(_BUILT_IN.get(group, {}))
    for entry_point in entry_points(group=group):
        paths.setdefault(entry_point.name, entry_point.value)
    found: dict[str, type] = {}
    for alias, path in paths.items():
        try:
            found[alias] = load(path)
        except NotFoundError as error:
            log.warning("Plugin %s of %s cannot be used: %s", alias, group, error)
    return found


_finder: Finder | None = None


def use_finder(finder: Finder | None) -> None:
    """Find plugins with this finder too, in the whole process. None is for none."""
    global _finder
    _finder = finder


def installed_plugins(group: str) -> list[type]:
    """Return the classes of an entry point group, also those of the finder; those that are preferred come first."""
    python = list(plugins(group).values())
    if _finder is None:
        return python
    others = _finder.classes(group)
    return others + python if _finder.preferred else python + others


def plugin_named(group: str, name: str, wanted: VersionRange | None = None) -> type | None:
    """Return the plugin of an entry point group with this alias or full name, or None.

    If several plugins match, such as implementations of Java classes with the same simple name, the most exact name wins.
    If none of them has a version in the wanted range, returns one with another version.
    """
    first: type | None = None
    for found in _all_named(group, name):
        if wanted is None or version_of(found) in wanted:
            return found
        first = first or found
    return first


def all_named(group: str, name: str) -> list[type]:
    """Return the plugins of a group with this alias or full name: one for each version, the preferred one first."""
    return list(_all_named(group, name))


def _all_named(group: str, name: str) -> Iterator[type]:
    """Yield plugins without asking the finder for what nobody wants, because it may have to scan files."""
    if _finder is not None and _finder.preferred:
        yield from _finder.named(group, name)
    python = python_named(group, name)
    if python is not None:
        yield python
    if _finder is not None and not _finder.preferred:
        yield from _finder.named(group, name)


def python_named(group: str, name: str) -> type | None:
    """Return the Python class of a group with this alias or full name, or None."""
    found_at_once = _built_in_named(group, name)
    if found_at_once is not None:
        return found_at_once
    found = [
        (rank, cls)
        for alias, cls in plugins(group).items()
        for rank, names in enumerate(_names(alias, cls, _SUFFIXES[group]))
        if name and name in names
    ]
    return min(found, key=lambda each: each[0])[1] if found else None


@functools.cache
def _built_in_named(group: str, name: str) -> type | None:
    """Return the plugin of ours whose alias is in the name, if the name is exact. Loads no others, which would take a second."""
    simple = name.rpartition(".")[2].replace("$", "")
    for alias in (simple, simple.removesuffix(_SUFFIXES[group])):
        path = _BUILT_IN.get(group, {}).get(alias)
        if path is None:
            continue
        try:
            cls: type = load(path)
        except NotFoundError:  # such as without an extra: the search through all logs why, and leaves it out
            continue
        full_names, short_names, *_ = _names(alias, cls, _SUFFIXES[group])
        if name in full_names | short_names:
            return cls
    return None


def has_built_in(group: str, alias: str) -> bool:
    """Return whether Sluiceway itself has a plugin with this alias, which wins over an entry point with the same name."""
    return alias in _BUILT_IN[group]


def java_name(cls: type) -> str:
    """Return a class's name as Kafka Connect shows it: that of the Java class it implements, if any."""
    return getattr(cls, "java_class", None) or f"{cls.__module__}.{cls.__qualname__}"


def language_of(cls: type) -> str:
    """Return the language of a plugin's class: that of a class in a jar, or Python."""
    return IN_JAVA if hasattr(cls, "plugin") else IN_PYTHON


def version_of(cls: type) -> str:
    """Return a plugin's version. Implementations of Kafka's plugins have Kafka's version."""
    java_version = getattr(cls, "plugin_version", None)  # of a class in a jar
    if java_version is not None:
        return str(java_version)
    if java_name(cls).startswith(_KAFKA):
        return CONNECT_VERSION
    version = getattr(cls, "version", None)
    return str(version()) if callable(version) else __version__


def _names(alias: str, cls: type, suffix: str) -> tuple[set[str], ...]:
    """Return the names of a plugin, the most exact first. Nested Java classes have no short name."""
    java_class = getattr(cls, "java_class", None) or ""
    simple = java_class.rpartition(".")[2]
    return (
        {java_class, f"{cls.__module__}.{cls.__qualname__}"},
        {alias, alias.removesuffix(suffix)},
        {cls.__name__, cls.__name__.removesuffix(suffix)},
        set() if "$" in simple else {simple, simple.removesuffix(suffix)},
    )


def _find(group: str, name: str, base: type[B], version: str | None = None) -> type[B]:
    try:
        wanted = VersionRange.parse(version)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    found = plugin_named(group, name, wanted) or load(name)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise NotFoundError(f"{name} is not a {base.__name__}.")
    return found


def _class_of(group: str, name: str, base: type[B], version: str | None) -> type[B]:
    try:
        return _find(group, name, base, version)
    except NotFoundError as error:
        raise ConfigError(f"Class {name} could not be found.") from error


def connector_class(name: str, version: str | None = None) -> type[Connector]:
    """Return the class that ``connector.class`` names, of the version that ``connector.plugin.version`` wants.

    Raises NotFoundError, which lists the installed connectors, and ConfigError for a version range that cannot be parsed.
    """
    try:
        return _find("sluiceway.connectors", name, Connector, version)  # type: ignore[type-abstract]
    except NotFoundError as error:
        aliases = sorted(plugins("sluiceway.connectors"))
        others = _finder.classes("sluiceway.connectors") if _finder is not None else []
        available = ", ".join([*aliases, *sorted({java_name(cls) for cls in others})])
        raise NotFoundError(
            f"Failed to find any class that implements Connector and which name matches {name}, "
            f"available connectors are: {available}"
        ) from error


def converter_class(name: str, version: str | None = None) -> type[Converter]:
    """Return the class that ``key.converter`` or ``value.converter`` names. Raises ConfigError."""
    return _class_of("sluiceway.converters", name, Converter, version)  # type: ignore[type-abstract]


def header_converter_class(name: str, version: str | None = None) -> type[HeaderConverter]:
    """Return the class that ``header.converter`` names, which may be any converter. Raises ConfigError."""
    try:
        return _find("sluiceway.header_converters", name, HeaderConverter, version)  # type: ignore[type-abstract]
    except NotFoundError:
        return converter_class(name, version)


def transform_class(name: str, version: str | None = None) -> type[Transform]:
    """Return the class that ``transforms.<alias>.type`` names. Raises ConfigError."""
    return _class_of("sluiceway.transforms", name, Transform, version)  # type: ignore[type-abstract]


def predicate_class(name: str, version: str | None = None) -> type[Predicate]:
    """Return the class that ``predicates.<alias>.type`` names. Raises ConfigError."""
    return _class_of("sluiceway.predicates", name, Predicate, version)  # type: ignore[type-abstract]


def is_sink(connector: type[Connector]) -> bool:
    """Return whether a connector class is a sink. Raises ConfigError if it is neither a source nor a sink."""
    if issubclass(connector, SinkConnector):
        return True
    if issubclass(connector, SourceConnector):
        return False
    raise ConfigError(f"{connector.__name__} is neither a SourceConnector nor a SinkConnector.")
