"""Declares the option that all of Kafka Connect's converters have, and parses options."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import OneOf

_TYPE = "converter.type"


def converter_config_def(*keys: ConfigKey) -> ConfigDef:
    """Return a converter's ConfigDef with these keys and ``converter.type``, which the runtime sets."""
    return ConfigDef(
        [
            ConfigKey(
                name=_TYPE,
                type=Type.STRING,
                importance=Importance.LOW,
                validator=OneOf(("key", "value", "header")),
                doc="Set by the worker: whether keys, values or headers are converted.",
                display_name=_TYPE,
            ),
            *keys,
        ]
    )


def parsed_options(definition: ConfigDef, config: Mapping[str, str], *, is_key: bool) -> dict[str, ConfigValue]:
    """Return the typed values of a converter's options; raises ConfigError for an invalid value."""
    return definition.parse({**config, _TYPE: "key" if is_key else "value"})
