"""Gets the config definitions of Java transforms, predicates and converters from the Java process of the calling thread.

Their validators stay in Java and are called there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sluiceway.config.definition import ConfigDef, ConfigValue, shown
from sluiceway.errors import ConfigError
from sluiceway.java_plugins.connector import config_def
from sluiceway.java_plugins.errors import JavaError
from sluiceway.java_plugins.hosts import call_new, reference
from sluiceway.java_plugins.index import JavaPlugin


class JavaStage(Protocol):
    """The class of a Java transform, predicate or converter."""

    plugin: JavaPlugin


@dataclass(frozen=True, slots=True)
class JavaValidator:
    """The validator of one key, which is called in Java. Raises ConfigError with its message."""

    plugin: JavaPlugin
    key: str

    def __call__(self, name: str, value: ConfigValue) -> None:
        text = shown(value, _definition(self.plugin)[self.key].type)
        try:
            _call(self.plugin, "validate", {"name": self.key, "value": text})
        except JavaError as error:
            raise ConfigError(str(error)) from error


def stage_config_def(cls: type[JavaStage]) -> ConfigDef:
    """Return the definition of a class's options. Raises JavaError for what its ``config`` throws, JavaProcessError."""
    return _definition(cls.plugin)


@functools.cache
def _definition(plugin: JavaPlugin) -> ConfigDef:
    keys: Sequence[dict[str, Any]] = _call(plugin, "config", {})
    validated = {key["name"] for key in keys if key["validated"]}
    return ConfigDef(
        replace(key, validator=JavaValidator(plugin, key.name)) if key.name in validated else key for key in config_def(keys)
    )


def _call(plugin: JavaPlugin, method: str, args: dict[str, object]) -> Any:
    return call_new("plugins", None, plugin, method, {"plugin": reference(plugin), **args})
