"""Validates connector configs as Kafka Connect's herder does.

No I/O, except that of config providers and of a connector's own ``validate``.
"""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from sluiceway.api import Connector, ConnectorTransactionBoundaries, ExactlyOnceSupport, SourceConnector
from sluiceway.config.application import NONE
from sluiceway.config.connector import (
    APPLICATION,
    CONNECTOR,
    CONNECTOR_CLASS,
    CONNECTOR_VERSION,
    DLQ_TOPIC,
    NAME,
    OWN,
    SINK,
    SOURCE,
    TOPICS,
    TOPICS_REGEX,
)
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, ValidatedValue, parse_value
from sluiceway.config.live_assets import check_live_assets
from sluiceway.config.password import HIDDEN
from sluiceway.config.schedules import ON_CHANGE, SCHEDULE, check_schedule
from sluiceway.config.validators import OneOf
from sluiceway.config.variables import references
from sluiceway.config.worker import WorkerConfig
from sluiceway.data import java_text
from sluiceway.discovery import connector_class, is_sink, java_name, language_of, version_of
from sluiceway.errors import BadRequestError, ConfigError, ConnectError, InvalidConfigError, NotFoundError
from sluiceway.herder import plugin_classes, substitutes
from sluiceway.herder.client_overrides import check_group, override_infos
from sluiceway.herder.config_infos import ConfigInfo, ConfigInfos, ConfigKeyInfo, ConfigValueInfo
from sluiceway.herder.enrichment import CONVERTERS, Config, base_def, framework_def, parse_text, version_def
from sluiceway.herder.intervals import check_interval
from sluiceway.herder.override_policy import OverridePolicy
from sluiceway.herder.plugin_classes import installed_classes, is_a, plugin_class, used_languages, version_mismatch
from sluiceway.herder.references import References
from sluiceway.herder.unknown_keys import refused_keys
from sluiceway.java.blanks import trim
from sluiceway.java.hash_map import copied_table_size, hash_map_order, in_buckets
from sluiceway.java.regex import compile_java
from sluiceway.java.version_range import VersionRange
from sluiceway.runtime.source.exactly_once import BOUNDARY, SUPPORT, exactly_once_enabled

_CONVERTER_TYPE = ConfigKey(
    name="converter.type",
    type=Type.STRING,
    importance=Importance.LOW,
    validator=OneOf(("key", "value", "header")),
    doc="Set by the worker: whether the converter converts keys, values or headers.",
)

# Keys whose values are shown in an error about a config without a class. Without the class, any other key may be secret.
_NOT_SECRET = {*(key.name for key in (*CONNECTOR, *SINK, *SOURCE)), "topic", "file", "batch.size"}
_AIRFLOW = "airflow."
log = logging.getLogger(__name__)
_RUN = "run"
"""The path of references to the DAG run, as in ``${airflow:run:ds}``."""


def trimmed(name: str | None) -> str:
    """Remove blanks and control characters around a name in a request, as Connect does."""
    return trim(name or "")


def named(name: str, config: Config) -> dict[str, str | None]:
    """Add the name at the end of a config if it is missing. Raises BadRequestError if the config has another name."""
    found = config.get(NAME)
    if found is not None and found != name:
        raise BadRequestError(f"Connector name configuration ({found}) doesn't match connector name in the URL ({name})")
    return {**config, NAME: name}


class Checked(NamedTuple):
    """A valid config as it is stored, without null values, and its keys of type password."""

    config: dict[str, str]
    secrets: frozenset[str]


def checked(config: Config, worker: WorkerConfig, *, offline: bool = False) -> Checked:
    """Return a valid config. ``offline`` as in ``validate_config``.

    Raises InvalidConfigError with all errors, and the errors of ``validate_config``.
    """
    found = validate_config(config, worker, offline=offline)
    if found.error_count:
        raise InvalidConfigError(found.errors, substitutes.advice(config, worker))
    return Checked({key: value for key, value in config.items() if value is not None}, found.password_keys)


def validate_config(config: Config, worker: WorkerConfig, *, offline: bool = False) -> ConfigInfos:
    """Return the result of PUT /connector-plugins/{connector}/config/validate.

    ``offline``: resolve no reference and connect to nothing, so that a key with a reference has no errors but those of its form.
    A value of None (JSON's null) is an error of its key. Raises BadRequestError if the connector class is missing, and
    ConfigError for a client override that does not have its type. Hides secret values, and shows references
    (``${provider:path:key}``) instead of the values they resolve to.
    """
    references = References.of(config, worker, offline=offline)
    try:
        return references.shown(_validate(references.config, worker, offline=offline))
    except ConfigError as error:
        raise ConfigError(references.hidden(str(error))) from None
    except BadRequestError as error:
        raise BadRequestError(references.hidden(str(error))) from None


def _validate(config: Config, worker: WorkerConfig, *, offline: bool) -> ConfigInfos:
    connector = _named_class(config)
    name = str(config[CONNECTOR_CLASS])
    if version_mismatch(connector, _wanted_version(config)):
        definition = version_def(connector, config)
        return _infos(name, definition, definition.validate(config).values())
    sink = is_sink(connector)
    policy = OverridePolicy.of(worker.raw)
    framework = framework_def(connector, config, worker)
    found = framework.validate(config)
    if sink:
        _check_topics(config, found)
        check_group(config, found, worker)
    elif issubclass(connector, SourceConnector):
        check_exactly_once(connector, {key: value for key, value in config.items() if value is not None}, worker, found)
    for key in (key for key, value in config.items() if value is None):
        validated = found.setdefault(key, ValidatedValue(key))
        validated.errors.append("Null value can not be supplied as the configuration value.")
    own = connector.config_def()
    # The connector's definition wins for keys that both define.
    definition = framework.replace(*own).define(*(key for key in own if key.name not in framework))
    found |= (connector.check if offline else connector.validate)(cast(Mapping[str, str], config))
    infos = _infos(name, definition, found.values())
    infos = replace(infos, groups=tuple(dict.fromkeys([*framework.groups, *own.groups])))
    infos += override_infos(config, policy, sink=sink)
    for key in CONVERTERS:
        infos += _converter_infos(key, config, found)
    infos += _own_infos(config, worker, connector)
    told = {info.value.name for info in infos.configs if info.value is not None}
    return infos + [info for info in refused_keys(config, definition, worker) if info.value and info.value.name not in told]


def refuse_other_connector(asked: str, config: Config) -> None:
    """Raise BadRequestError if a config names another connector than the request, which may use an alias."""
    included = config.get(CONNECTOR_CLASS)
    if included is not None and not included.removesuffix("Connector").endswith(asked.removesuffix("Connector")):
        raise BadRequestError(f"Included connector type {included} does not match request type {asked}")


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A plugin that configs can name. ``used`` is the language of the class that they get, if there is one in each."""

    name: str
    type: str
    version: str
    used: str | None = None


def installed(*, connectors_only: bool = True) -> list[InstalledPlugin]:
    """Return the installed plugins, sorted by type and name."""
    kinds = (plugin_classes.SINK, plugin_classes.SOURCE) if connectors_only else plugin_classes.KINDS
    return [
        InstalledPlugin(java_name(cls), kind.type, version_of(cls), used.get(java_name(cls)))
        for kind in kinds
        for used in (used_languages(kind),)
        for cls in installed_classes(kind)
    ]


def plugin_config(name: str, version: str | None = None) -> list[ConfigKeyInfo]:
    """Return the keys of a plugin of any kind: the result of GET /connector-plugins/{plugin}/config.

    ``version`` is a version or a range in Maven's notation. Raises NotFoundError if there is no such plugin, BadRequestError
    if there is no such version, and ConnectError for an abstract class.
    """
    cls = _installed_class(name, version)
    if issubclass(cls, Connector):
        own, base = cls.config_def(), base_def(cls)
        base = base.replace(replace(base[CONNECTOR_VERSION], default=version_of(cls)))
        return [ConfigKeyInfo.of(key) for key in (*own, *(key for key in base if key.name not in own))]
    return [ConfigKeyInfo.of(key) for key in _plugin_def(cls)]


@dataclass(frozen=True, slots=True)
class PluginImplementation:
    """The class that a config gets for a name. ``location`` is the folder or jar of a Java plugin in ``plugin.path``.

    ``note`` says how to use the Java class instead, if there is one.
    """

    name: str
    language: str
    version: str
    location: str | None
    note: str | None


def plugin_implementation(name: str, version: str | None = None) -> PluginImplementation:
    """Return which implementation of a plugin of any kind configs get. Raises as ``plugin_config`` does."""
    cls = _installed_class(name, version)
    plugin = getattr(cls, "plugin", None)  # of a class in a jar
    location = None if plugin is None or plugin.location is None else str(plugin.location)
    substitute = substitutes.substitute_of(cls)
    note = None if substitute is None else substitute.text
    return PluginImplementation(java_name(cls), language_of(cls), version_of(cls), location, note)


def _installed_class(name: str, version: str | None) -> type:
    try:
        wanted = VersionRange.parse(version)
    except ValueError:
        raise BadRequestError(f"Invalid version specification: {version}") from None
    try:
        cls = plugin_class(name, wanted).cls
    except ConfigError:
        raise NotFoundError(f"Unknown plugin {name}.") from None
    if cls is None or inspect.isabstract(cls):
        raise ConnectError("Instantiation error")
    kind = next((kind for kind in plugin_classes.KINDS if is_a(cls, kind)), None)
    if kind is None:
        raise NotFoundError(f"Unknown plugin {name}.")
    other_version = version_mismatch(cls, wanted)
    if other_version:
        raise BadRequestError(other_version)
    return cls


def _plugin_def(cls: type) -> ConfigDef:
    """Return the keys of a plugin that is not a connector. Every converter has ``converter.type``."""
    own = getattr(cls, "config_def", ConfigDef)()
    is_converter = is_a(cls, plugin_classes.CONVERTER) or (is_a(cls, plugin_classes.HEADER_CONVERTER) and len(own) > 0)
    return own if not is_converter or _CONVERTER_TYPE.name in own else ConfigDef([_CONVERTER_TYPE, *own])


def _named_class(config: Config) -> type[Connector]:
    name = config.get(CONNECTOR_CLASS)
    if name is None:
        values = {key: value if key in _NOT_SECRET else HIDDEN for key, value in config.items()}
        order = in_buckets(hash_map_order(values), copied_table_size(len(values)))
        shown = ", ".join(f"{key}={java_text(values[key])}" for key in order)
        raise BadRequestError(f"Connector config {{{shown}}} contains no connector type")
    _wanted_version(config)
    try:
        connector = connector_class(name, config.get(CONNECTOR_VERSION))
        is_sink(connector)  # raises for a class that is neither
    except (NotFoundError, ConfigError) as error:
        raise BadRequestError(str(error)) from error
    return connector


def _wanted_version(config: Config) -> VersionRange | None:
    try:
        return VersionRange.parse(config.get(CONNECTOR_VERSION))
    except ValueError as error:
        raise BadRequestError(str(error)) from error


def _infos(name: str, definition: ConfigDef, found: Iterable[ValidatedValue]) -> ConfigInfos:
    """Combine values with their definitions. As in Connect, values without a definition come first."""
    values = {value.name: value for value in found}
    undefined = [ConfigInfo(None, ConfigValueInfo.of(value, None)) for key, value in values.items() if key not in definition]
    known = [
        ConfigInfo(ConfigKeyInfo.of(key), ConfigValueInfo.of(values[key.name], key.type) if key.name in values else None)
        for key in definition
    ]
    return ConfigInfos(name, tuple(definition.groups), (*undefined, *known))


def _converter_infos(key: str, config: Config, found: Mapping[str, ValidatedValue]) -> list[ConfigInfo]:
    """Return the keys of a converter that the connector itself sets; the worker's is not validated."""
    name = config.get(key)
    if name is None or found[key].errors or found[f"{key}.plugin.version"].errors:
        return []
    wanted = VersionRange.parse(config.get(f"{key}.plugin.version"))
    cls = plugin_class(parse_text(key, name), wanted).cls
    definition = _plugin_def(cls) if cls is not None else ConfigDef()
    prefix = f"{key}."
    options = {"converter.type": key.partition(".")[0]}
    options |= {each[len(prefix) :]: value for each, value in config.items() if each.startswith(prefix) and value is not None}
    values = definition.validate(options)
    return [
        ConfigInfo(ConfigKeyInfo.of(definition[each], prefix), ConfigValueInfo.of(values[each], definition[each].type, prefix))
        for each in hash_map_order(values)  # Connect collects a converter's keys in a HashMap
    ]


def _own_infos(config: Config, worker: WorkerConfig, connector: type[Connector]) -> list[ConfigInfo]:
    """Return Sluiceway's own keys that the config sets; Connect does not have them.

    With a default application, the key of the application is always there. Its documentation says which one it is, and why.
    """
    values = OWN.validate(config)
    try:
        check_schedule(config, is_sink=is_sink(connector))
        given = {key: value for key, value in config.items() if value is not None}
        check_interval(connector, given)
        check_live_assets(given)
        check_watch(connector, given)
    except ConfigError as error:
        values[str(error.name)].errors.append(str(error))
    own = OWN.replace(_application_key(config, worker))
    told = {*config, APPLICATION} if worker.applications.default is not None else config
    known = [ConfigInfo(ConfigKeyInfo.of(key), ConfigValueInfo.of(values[key.name], key.type)) for key in own if key.name in told]
    names = ", ".join(key.name for key in OWN)
    unknown = [
        ConfigInfo(None, ConfigValueInfo(key, value, errors=(f"Unknown configuration '{key}'.{_meant(key)} Known: {names}",)))
        for key, value in config.items()
        if key.startswith(_AIRFLOW) and key not in OWN
    ]
    return known + unknown


def _meant(key: str) -> str:
    alike = difflib.get_close_matches(key, [each.name for each in OWN], n=1, cutoff=0.8)
    return f" Did you mean {alike[0]}?" if alike else ""


def _application_key(config: Config, worker: WorkerConfig) -> ConfigKey:
    """Return the definition of ``sluiceway.application``, which says which application runs this connector, and why."""
    chosen = worker.applications.membership({key: value for key, value in config.items() if value is not None})
    key = OWN[APPLICATION]
    return replace(key, doc=f"{key.doc} Here: {chosen.application or NONE}, as {chosen.reason}.")


def _check_topics(config: Config, found: dict[str, ValidatedValue]) -> None:
    """Add the errors of a sink's topics, as in ``SinkConnectorConfig.validate``."""
    topics, regex = config.get(TOPICS) or "", config.get(TOPICS_REGEX) or ""
    has_topics, has_regex = bool(trimmed(topics)), bool(trimmed(regex))
    dead_letter_topic = trimmed(config.get(DLQ_TOPIC))
    unreadable = bool(found[TOPICS_REGEX].errors)
    if has_topics and has_regex:
        wrong = f"{TOPICS} and {TOPICS_REGEX} are mutually exclusive options, but both are set."
        found[TOPICS].errors.append(wrong)
        found[TOPICS_REGEX].errors.append(wrong)
    if not has_topics and not has_regex:
        wrong = f"Must configure one of {TOPICS} or {TOPICS_REGEX}"
        found[TOPICS].errors.append(wrong)
        found[TOPICS_REGEX].errors.append(wrong)
    if not dead_letter_topic:
        return
    names = parse_value(TOPICS, topics, Type.LIST)
    if isinstance(names, list) and dead_letter_topic in names:
        found[TOPICS].errors.append(
            f"The DLQ topic '{dead_letter_topic}' may not be included in the list of topics "
            f"('{TOPICS}=[{', '.join(names)}]') consumed by the connector"
        )
    if has_regex and not unreadable and compile_java(regex).matches(dead_letter_topic):
        found[TOPICS_REGEX].errors.append(
            f"The DLQ topic '{dead_letter_topic}' may not be matched by the regex for the topics "
            f"('{TOPICS_REGEX}={regex}') consumed by the connector"
        )


def check_exactly_once(
    connector: type[SourceConnector], config: Mapping[str, str], worker: WorkerConfig, found: Mapping[str, ValidatedValue]
) -> None:
    """Add the errors of the worker and the connector to the values in ``found``.

    Calls the connector on a new instance that is not started. An exception it raises becomes an error of the value.
    """
    support, boundary = found[SUPPORT], found[BOUNDARY]
    if not support.errors and str(support.value).lower() == "required":
        if not exactly_once_enabled(worker):
            support.errors.append("This worker does not have exactly-once source support enabled.")
        support.errors += _errors(lambda: _lacks_support(connector, config))
    if not boundary.errors and str(boundary.value).lower() == "connector":
        boundary.errors += _errors(lambda: _lacks_boundaries(connector, config))


def _lacks_support(connector: type[SourceConnector], config: Mapping[str, str]) -> str | None:
    if connector().exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED:
        return None
    return "The connector does not support exactly-once semantics with the provided configuration."


def _lacks_boundaries(connector: type[SourceConnector], config: Mapping[str, str]) -> str | None:
    if connector().can_define_transaction_boundaries(config) is ConnectorTransactionBoundaries.SUPPORTED:
        return None
    return (
        "The connector does not support connector-defined transaction boundaries with the given configuration. "
        "Please reconfigure it to use a different transaction boundary definition."
    )


def _errors(check: Callable[[], str | None]) -> list[str]:
    try:
        found = check()
    except Exception as error:
        log.exception("A connector failed while it was asked about exactly-once support")
        return [f"An unexpected error occurred during validation: {error or type(error).__name__}"]
    return [] if found is None else [found]


def check_watch(connector: type[Connector], config: Mapping[str, str]) -> None:
    """Raise ConfigError for ``airflow.schedule=on-change`` of a connector that cannot be watched."""
    if config.get(SCHEDULE) != ON_CHANGE or not issubclass(connector, SourceConnector):
        return
    why = connector.watch_refusal(config)
    if not why and (key := _key_of_run(config)):
        why = f"{key} refers to the DAG run, and there is none before the change"
    if why:
        raise ConfigError(SCHEDULE, ON_CHANGE, f"not possible with {config.get(CONNECTOR_CLASS)}: {why}")


def _key_of_run(config: Mapping[str, str]) -> str | None:
    return next((key for key, value in config.items() if any(each.path == _RUN for each in references({key: value}))), None)
