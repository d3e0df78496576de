"""Creates a connector's transforms and predicates from its config, with Connect's checks and error messages."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sluiceway.api import Predicate, Transform
from sluiceway.config.common_keys import PREDICATES, TRANSFORMS
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, parse_value
from sluiceway.discovery import plugins, predicate_class, transform_class
from sluiceway.errors import ConfigError, ConnectError, java_text_of
from sluiceway.java.blanks import trim

log = logging.getLogger(__name__)

TYPE = "type"
VERSION = "plugin.version"
PREDICATE = "predicate"
NEGATE = "negate"

CONDITION = ConfigDef(
    [
        ConfigKey(
            name=PREDICATE,
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="The alias of the predicate that selects the records to transform. Without it, all records are transformed.",
        ),
        ConfigKey(
            name=NEGATE,
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.MEDIUM,
            doc="Set to true to transform the records that the predicate does not match.",
        ),
    ]
)
"""The keys every transform has beside its own."""


class TransformationStage(NamedTuple):
    """One configured transform of a chain, and the predicate that selects its records (None: all records)."""

    alias: str
    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False


def transformation_stages(config: Mapping[str, str]) -> tuple[TransformationStage, ...]:
    """Return a connector's configured transforms in order. Runs where the records are transformed, on executors.

    Raises ConfigError for a config that does not parse, and ConnectError with what ``configure`` of a transform or
    predicate raised.
    """
    transform_aliases, predicate_aliases = aliases(config, TRANSFORMS), aliases(config, PREDICATES)
    transforms = {alias: _transform_class(alias, config) for alias in transform_aliases}
    predicates = {alias: _predicate_class(alias, config) for alias in predicate_aliases}
    for alias, transform in transforms.items():
        parse_prefixed(f"{TRANSFORMS}.{alias}.", CONDITION + transform.config_def(), config)
    for alias, predicate in predicates.items():
        parse_prefixed(f"{PREDICATES}.{alias}.", predicate.config_def(), config)
    stages: list[TransformationStage] = []
    try:
        for alias, transform in transforms.items():
            stages.append(_stage(alias, transform, predicates, config))
    except Exception as error:
        close(stages)
        raise ConnectError(java_text_of(error)) from error
    return tuple(stages)


def close(stages: Sequence[TransformationStage]) -> None:
    """Close all transforms and predicates, even if one fails to close. Never raises."""
    for stage in stages:
        for part in (stage.transform, stage.predicate):
            if part is not None:
                _close_quietly(stage.alias, part)


def _close_quietly(alias: str, part: Transform | Predicate) -> None:
    try:
        part.close()
    except Exception:  # the others must be closed too
        log.exception("Closing transformation %s failed", alias)


def aliases(config: Mapping[str, str], key: str) -> list[str]:
    """Return the trimmed aliases in ``transforms`` or ``predicates``. Raises ConfigError for a duplicate."""
    value = parse_value(key, config.get(key, ""), Type.LIST)
    listed = value if isinstance(value, list) else []
    if len(set(listed)) < len(listed):
        raise ConfigError(key, f"[{', '.join(listed)}]", "Duplicate alias provided.")
    return listed


def _transform_class(alias: str, config: Mapping[str, str]) -> type[Transform]:
    prefix = f"{TRANSFORMS}.{alias}."
    if prefix + NEGATE in config and prefix + PREDICATE not in config:
        raise ConfigError(
            f"Config '{prefix}{NEGATE}' was provided but there is no config '{prefix}{PREDICATE}' "
            "defining a predicate to be negated."
        )
    name = _type_name(prefix, "Transformation", config)
    try:
        return transform_class(name, config.get(prefix + VERSION))
    except ConfigError as error:
        raise _no_class(prefix, "Transformation", name, error) from error


def _predicate_class(alias: str, config: Mapping[str, str]) -> type[Predicate]:
    prefix = f"{PREDICATES}.{alias}."
    name = _type_name(prefix, "Predicate", config)
    try:
        return predicate_class(name, config.get(prefix + VERSION))
    except ConfigError as error:
        raise _no_class(prefix, "Predicate", name, error) from error


def _type_name(prefix: str, kind: str, config: Mapping[str, str]) -> str:
    name = config.get(prefix + TYPE)
    if name is None:
        raise ConfigError(prefix + TYPE, None, f"Not a {kind}")
    if name != trim(name):  # Connect trims the name to find the class, but not to get its config definition
        raise ConfigError(prefix + TYPE, name, f"Error getting config definition from {kind}: {name}")
    return name


_INTERFACES = (
    "org.apache.kafka.connect.transforms.Transformation",
    "org.apache.kafka.connect.transforms.predicates.Predicate",
)


def _no_class(prefix: str, kind: str, name: str, error: ConfigError) -> ConfigError:
    """Return Connect's error for a name that is not a concrete class of this kind."""
    java_names = [str(getattr(plugin, "java_class", None)) for group in _GROUPS for plugin in plugins(group).values()]
    parts = sorted(java for java in java_names if "$" in java and java.rpartition("$")[0] == name)
    if parts or name in _INTERFACES:
        hint = f" Did you mean {', '.join(parts)}?" if parts else ""
        return ConfigError(f"This class is abstract and cannot be created.{hint}")
    if name in java_names:
        return ConfigError(f"Class class {name} does not implement the {kind} interface")
    return ConfigError(prefix + TYPE, name, str(error))


_GROUPS = ("sluiceway.transforms", "sluiceway.predicates", "sluiceway.connectors", "sluiceway.converters")


def parse_prefixed(prefix: str, definition: ConfigDef, config: Mapping[str, str]) -> dict[str, object]:
    """Return the parsed keys of a plugin whose keys start with ``prefix``. Raises ConfigError as Connect does.

    The error of a missing or unparsable value names the full key, a validator's error the key without its prefix. With
    several errors, the first in Connect's order is raised: keys without a default, then by importance, then by name.
    """
    parsed: dict[str, object] = {}
    for key in sorted(definition, key=lambda key: (not key.required, list(Importance).index(key.importance), key.name)):
        full = prefix + key.name
        if full not in config and key.required:
            raise ConfigError(f'Missing required configuration "{full}" which has no default value.')
        value = parse_value(full, config.get(full, key.default), key.type)
        if key.validator is not None:
            key.validator(key.name, value)
        parsed[key.name] = value
    return parsed


def _stage(
    alias: str, transform_type: type[Transform], predicates: Mapping[str, type[Predicate]], config: Mapping[str, str]
) -> TransformationStage:
    prefix = f"{TRANSFORMS}.{alias}."
    transform = transform_type()
    transform.configure(_options(prefix, config))
    name = config.get(prefix + PREDICATE)
    if name is None:
        return TransformationStage(alias, transform)
    if name not in predicates:
        unknown = ConfigError(f"Unknown configuration '{PREDICATES}.{name}.plugin.version'")
        raise ConnectError(java_text_of(unknown)) from unknown
    predicate = predicates[name]()
    predicate.configure(_options(f"{PREDICATES}.{name}.", config))
    # As in Connect, neither value is trimmed.
    return TransformationStage(alias, transform, predicate, config.get(prefix + NEGATE, "").lower() == "true")


def _options(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    return {key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix)}
