"""Completes Connect's own keys for one config: the worker's defaults, and the keys of its transforms and predicates.

Imports the plugins that the config names; no other I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sluiceway.api import Connector
from sluiceway.config.connector import (
    CONNECTOR,
    CONNECTOR_VERSION,
    HEADER_CONVERTER,
    KEY_CONVERTER,
    PREDICATES,
    SINK,
    SOURCE,
    TOPICS_REGEX,
    TRANSFORMS,
    VALUE_CONVERTER,
)
from sluiceway.config.definition import (
    ConfigDef,
    ConfigKey,
    ConfigValue,
    Importance,
    PluginClass,
    Recommender,
    Type,
    Width,
    parse_value,
)
from sluiceway.config.validators import valid_regex
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import is_sink, java_name, version_of
from sluiceway.errors import ConfigError
from sluiceway.herder import plugin_classes
from sluiceway.herder.plugin_classes import (
    CONVERTER,
    PREDICATE,
    TRANSFORMATION,
    Kind,
    installed_classes,
    plugin_class,
    unusable_reason,
    version_mismatch,
    versions,
)
from sluiceway.java.version_range import VersionRange
from sluiceway.runtime.transforms.chain_config import CONDITION

Config = Mapping[str, str | None]

CONVERTERS = {KEY_CONVERTER: CONVERTER, VALUE_CONVERTER: CONVERTER, HEADER_CONVERTER: plugin_classes.HEADER_CONVERTER}
VERSION = "plugin.version"


def base_def(connector: type[Connector]) -> ConfigDef:
    """Return the keys that Connect defines for every source or every sink connector."""
    own = SINK.replace(replace(SINK[TOPICS_REGEX], validator=valid_regex)) if is_sink(connector) else SOURCE
    return CONNECTOR + own


def framework_def(connector: type[Connector], config: Config, worker: WorkerConfig) -> ConfigDef:
    """Return Connect's keys for a connector with this config."""
    definition = _with_plugins(base_def(connector), connector, config, worker)
    for group in (_TRANSFORMS, _PREDICATES):
        for alias in aliases(group.key, config):
            definition = group.enrich(definition, alias, config)
    return definition


def version_def(connector: type[Connector], config: Config) -> ConfigDef:
    """Return the keys to validate if the requested version of the connector is not installed."""

    def refuse(_name: str, _value: ConfigValue) -> None:
        wrong = version_mismatch(connector, VersionRange.parse(config.get(CONNECTOR_VERSION)))
        if wrong:
            raise ConfigError(wrong)

    recommended = Recommender(values=lambda _name, _parsed: versions(connector))
    return CONNECTOR.replace(
        replace(CONNECTOR["connector.class"], validator=refuse),
        replace(CONNECTOR[CONNECTOR_VERSION], default=version_of(connector), validator=refuse, recommender=recommended),
        *(replace(CONNECTOR[key], loader=plugin_class) for key in CONVERTERS),
        *(replace(CONNECTOR[f"{key}.{VERSION}"], recommender=Recommender(visible=_where_set(key))) for key in CONVERTERS),
    )


def aliases(key: str, config: Config) -> list[str]:
    """Return the aliases in ``transforms`` or ``predicates``, without duplicates."""
    value = parse_value(key, config.get(key), Type.LIST)
    return list(dict.fromkeys(value)) if isinstance(value, list) else []


def _with_plugins(definition: ConfigDef, connector: type[Connector], config: Config, worker: WorkerConfig) -> ConfigDef:
    keys = [
        replace(
            CONNECTOR[CONNECTOR_VERSION],
            default=version_of(connector),
            recommender=Recommender(values=lambda _name, _parsed: versions(connector)),
        )
    ]
    for name, kind in CONVERTERS.items():
        keys += _converter_keys(name, kind, _Choice.of(name, f"{name}.{VERSION}", kind, config, worker.text(name)))
    return definition.replace(*keys)


def _converter_keys(name: str, kind: Kind, choice: _Choice) -> list[ConfigKey]:
    explicit = choice.explicit

    def version_problem() -> str | None:
        return choice.version_error or (choice.version_missing if explicit else None)

    return [
        replace(
            CONNECTOR[name],
            default=choice.default,
            loader=plugin_class,
            validator=_refusing(lambda: choice.unusable_reason or (choice.version_missing if explicit else None)),
            recommender=Recommender(values=lambda _name, _parsed: _classes(kind)),
        ),
        replace(
            CONNECTOR[f"{name}.{VERSION}"],
            default=choice.version,
            validator=_refusing(version_problem),
            recommender=Recommender(values=lambda _name, _parsed: choice.versions, visible=_where_set(name)),
        ),
    ]


def _where_set(key: str) -> Callable[[str, Mapping[str, ConfigValue]], bool]:
    """Return a function that makes another key visible if this one has a value."""
    return lambda _name, parsed: parsed.get(key) is not None


@dataclass(frozen=True, slots=True)
class _Choice:
    """The plugin and version that a config selects with one key, and why it cannot be used."""

    default: str | None
    explicit: bool
    plugin: PluginClass | None
    unusable_reason: str | None
    version_error: str | None = None
    """The error of a version range that cannot be parsed."""
    version_missing: str | None = None
    """The error of a version that is not installed."""

    @classmethod
    def of(cls, key: str, version_key: str, kind: Kind, config: Config, default: str | None = None) -> _Choice:
        name = default if config.get(key) is None else config[key]
        error = missing = wanted = None
        try:
            wanted = VersionRange.parse(config.get(version_key))
        except ValueError as unreadable:
            error = str(unreadable)
        try:
            found = plugin_class(parse_text(key, name), wanted) if name is not None else None
        except ConfigError:
            found = None
        wrong = unusable_reason(found, kind) if found is not None else None
        if found is not None and found.cls is not None and wrong is None:
            missing = version_mismatch(found.cls, wanted)
        return cls(default, key in config, found, wrong, error, missing)

    @property
    def usable(self) -> type | None:
        """The plugin's class if it has the right kind and version, otherwise None."""
        if self.plugin is None or self.unusable_reason or self.version_error or self.version_missing:
            return None
        return self.plugin.cls

    @property
    def problem(self) -> str | None:
        """The reason why the class cannot be used, None for a missing class too."""
        return None if self.plugin is None else self.version_error or self.unusable_reason or self.version_missing

    @property
    def version(self) -> str | None:
        return None if self.plugin is None or self.plugin.cls is None or self.unusable_reason else version_of(self.plugin.cls)

    @property
    def versions(self) -> Sequence[ConfigValue]:
        if self.version is None or self.plugin is None or self.plugin.cls is None:
            return []
        return list(dict.fromkeys(versions(self.plugin.cls)))


def parse_text(key: str, value: object) -> str:
    """Return a config value as trimmed text."""
    return str(parse_value(key, value, Type.STRING))


def _classes(kind: Kind) -> list[ConfigValue]:
    return list({java_name(cls): PluginClass(java_name(cls), cls) for cls in installed_classes(kind)}.values())


def _refusing(problem: Callable[[], str | None]) -> Callable[[str, ConfigValue], None]:
    def refuse(_name: str, _value: ConfigValue) -> None:
        wrong = problem()
        if wrong:
            raise ConfigError(wrong)

    return refuse


@dataclass(frozen=True, slots=True)
class _Group:
    """Defines the keys of the aliases in ``transforms`` or ``predicates``."""

    key: str
    title: str
    noun: str
    kind: Kind
    more: ConfigDef

    def enrich(self, definition: ConfigDef, alias: str, config: Config) -> ConfigDef:
        """Add the keys of one alias: its class, the version and the plugin's own keys."""
        prefix, group = f"{self.key}.{alias}.", f"{self.title}: {alias}"
        choice = _Choice.of(f"{prefix}type", prefix + VERSION, self.kind, config)
        named = config.get(f"{prefix}type") is not None
        wrong_version = (choice.version_error or choice.version_missing) if named else None
        definition = definition.define(
            ConfigKey(
                name=f"{prefix}type",
                type=Type.CLASS,
                loader=plugin_class,
                importance=Importance.HIGH,
                validator=_refusing(lambda: self._condition_problem(prefix, config) or choice.problem),
                doc=f"The class of {self.noun} {alias}: its full name or an alias.",
                group=group,
                order_in_group=0,
                width=Width.LONG,
                display_name=f"{self.noun.capitalize()} type for {alias}",
                recommender=Recommender(values=lambda _name, _parsed: _classes(self.kind)),
            ),
            ConfigKey(
                name=prefix + VERSION,
                type=Type.STRING,
                default=choice.version,
                importance=Importance.HIGH,
                validator=_refusing(lambda: wrong_version),
                doc=f"Version of {alias}'s class: a single version, or a range in Maven's notation.",
                group=group,
                order_in_group=1,
                width=Width.LONG,
                display_name=f"{self.noun.capitalize()} version for {alias}",
                recommender=Recommender(values=lambda _name, _parsed: choice.versions),
            ),
        )
        if choice.usable is None:
            return definition
        own = choice.usable.config_def()  # type: ignore[attr-defined] # every plugin kind has it
        return definition.embed(prefix, group, 2, ConfigDef([*own, *(key for key in self.more if key.name not in own)]))

    def _condition_problem(self, prefix: str, config: Config) -> str | None:
        if self.more and f"{prefix}negate" in config and f"{prefix}predicate" not in config:
            return (
                f"Config '{prefix}negate' was provided but there is no config '{prefix}predicate' "
                "defining a predicate to be negated."
            )
        return None


_TRANSFORMS = _Group(TRANSFORMS, "Transforms", "transformation", TRANSFORMATION, CONDITION)
_PREDICATES = _Group(PREDICATES, "Predicates", "predicate", PREDICATE, ConfigDef())
