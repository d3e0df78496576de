"""The option that every converter of Kafka Connect declares, and a converter's options parsed."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import OneOf

_TYPE = "converter.type"


def converter_config_def(*keys: ConfigKey) -> ConfigDef:
    """Return a converter's ConfigDef: ``converter.type``, which the runtime gives and not the user, and these keys."""
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
    """Return the typed values of a converter's options; raises ConfigError."""
    return definition.parse({**config, _TYPE: "key" if is_key else "value"})
