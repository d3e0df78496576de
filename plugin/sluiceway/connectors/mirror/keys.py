"""Declares the keys of MirrorSourceConnector: MirrorMaker 2's, those of Kafka's clients, and Connect's.

MirrorMaker's and the clients' keys are data, in ``keys.json`` beside this module. Each section is named after the class of
Kafka that declares the keys; the documentation is ours.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sluiceway.api import Converter, HeaderConverter
from sluiceway.config.connector import CONNECTOR, HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER
from sluiceway.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigKey,
    ConfigValue,
    Importance,
    PluginClass,
    Recommender,
    Type,
    Validator,
)
from sluiceway.config.validators import Check, OneOf, Range, UniqueList
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

_METRIC_NAMES_FORMAT = OneOf(("legacy", "new"))
_CONVERTERS = {KEY_CONVERTER: "Converter", VALUE_CONVERTER: "Converter", HEADER_CONVERTER: "HeaderConverter"}
_CONVERTER_CLASSES = {"Converter": (Converter,), "HeaderConverter": (HeaderConverter, Converter)}


def _check_metric_names_formats(name: str, value: ConfigValue) -> None:
    """Check the list of formats; of several errors, raise ConfigError for the one that Kafka reports."""
    if value == []:
        raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {_METRIC_NAMES_FORMAT}")
    sound = [item for item in value if item] if isinstance(value, list) and len(set(value)) == len(value) else []
    for item in sound[: value.index("") if isinstance(value, list) and "" in value else None]:
        _METRIC_NAMES_FORMAT(name, item)
    UniqueList()(name, value)


_VALIDATORS: dict[str, Callable[[Any], Validator]] = {
    "metric_names_formats": lambda _: Check(_check_metric_names_formats, str(_METRIC_NAMES_FORMAT)),
    "one_of": lambda allowed: OneOf(tuple(allowed)),
    "one_of_ignoring_case": lambda allowed: OneOf(tuple(allowed), ignore_case=True),
    "range": lambda bounds: Range(*bounds),
    "unique_list": lambda _: UniqueList(allow_empty=True),
}


def _validator(declared: Mapping[str, Any] | None) -> Validator | None:
    """Return the validator for an entry such as ``{"range": [0, 3600]}``."""
    if declared is None:
        return None
    [(kind, argument)] = declared.items()
    return _VALIDATORS[kind](argument)


def _config_key(declared: Mapping[str, Any]) -> ConfigKey:
    """Return the key that an entry of ``keys.json`` declares; an entry without ``default`` is a required key."""
    key_type = Type[declared["type"]]
    return ConfigKey(
        name=declared["name"],
        type=key_type,
        default=declared.get("default", NO_DEFAULT),
        validator=_validator(declared.get("validator")),
        importance=Importance[declared["importance"]],
        doc=declared["documentation"],
        loader=known_class if key_type is Type.CLASS else None,
    )


def _read() -> dict[str, ConfigDef]:
    """Read ``keys.json``, also out of the zip of the package that executors import."""
    data = importlib.resources.files(__package__).joinpath("keys.json").read_text(encoding="utf-8")
    return {section: ConfigDef(map(_config_key, declared)) for section, declared in json.loads(data).items()}


_SECTIONS = _read()
MIRROR_CONNECTOR = _SECTIONS["MirrorConnectorConfig"]
CLIENT_SECURITY = _SECTIONS["SslConfigs"] + _SECTIONS["SaslConfigs"]
MIRROR_SOURCE = _SECTIONS["MirrorSourceConfig"]


def _check_converter(name: str, value: ConfigValue) -> None:
    interface = _CONVERTERS[name]
    if isinstance(value, PluginClass) and not (value.cls is not None and issubclass(value.cls, _CONVERTER_CLASSES[interface])):
        raise ConfigError(f"Class {value} does not implement the {interface} interface")


def _has_converter(name: str, values: Mapping[str, ConfigValue]) -> bool:
    return values.get(name.removesuffix(".plugin.version")) is not None


# MirrorMaker declares the keys of every connector itself, without the defaults and recommendations that a worker adds.
COMMON = CONNECTOR.replace(
    *(
        replace(CONNECTOR[name], loader=known_class, validator=Check(_check_converter, f"a {interface}"))
        for name, interface in _CONVERTERS.items()
    ),
    *(replace(CONNECTOR[f"{name}.plugin.version"], recommender=Recommender(visible=_has_converter)) for name in _CONVERTERS),
)
