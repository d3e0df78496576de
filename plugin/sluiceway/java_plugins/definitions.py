"""Gets the config definitions of Java transforms, predicates and converters from the Java process of the calling thread.

Their validators and recommenders stay in Java and are called there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sluiceway.config.definition import ConfigDef, ConfigValue, Parsed, Recommender, Type, shown
from sluiceway.config.password import Password
from sluiceway.errors import ConfigError
from sluiceway.java_plugins.connector import config_def, parsed_or_text
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
        text = _text(value, _definition(self.plugin)[self.key].type)
        try:
            _call(self.plugin, "validate", {"name": self.key, "value": text})
        except JavaError as error:
            raise ConfigError(str(error)) from error


@dataclass(frozen=True, slots=True)
class JavaRecommendations:
    """The recommender of one key, which is called in Java. Raises ConfigError with its message."""

    plugin: JavaPlugin
    key: str

    @property
    def recommender(self) -> Recommender:
        return Recommender(values=self._values, visible=lambda _, parsed: bool(self._ask(parsed)["visible"]))

    def _values(self, _: str, parsed: Parsed) -> Sequence[ConfigValue]:
        kind = _definition(self.plugin)[self.key].type
        element = Type.STRING if kind is Type.LIST else kind
        return [parsed_or_text(self.key, text, element) for text in self._ask(parsed)["values"]]

    def _ask(self, parsed: Parsed) -> Any:
        definition = _definition(self.plugin)
        values = {key.name: _text(parsed[key.name], key.type) for key in definition if parsed.get(key.name) is not None}
        try:
            return _call(self.plugin, "recommend", {"name": self.key, "values": values})
        except JavaError as error:
            raise ConfigError(str(error)) from error


def stage_config_def(cls: type[JavaStage]) -> ConfigDef:
    """Return the definition of a class's options. Raises JavaError for what its ``config`` throws, JavaProcessError."""
    return _definition(cls.plugin)


@functools.cache
def _definition(plugin: JavaPlugin) -> ConfigDef:
    keys: Sequence[dict[str, Any]] = _call(plugin, "config", {})
    found = {key.name: key for key in config_def(keys)}
    for each in keys:
        name = each["name"]
        if each["validated"]:
            found[name] = replace(found[name], validator=JavaValidator(plugin, name))
        if each["recommends"]:
            found[name] = replace(found[name], recommender=JavaRecommendations(plugin, name).recommender)
    return ConfigDef(found.values())


def _text(value: ConfigValue, kind: Type) -> str | None:
    """Return a value as text for Java. Passwords are not hidden from their plugin."""
    return value.value if isinstance(value, Password) else shown(value, kind)


def _call(plugin: JavaPlugin, method: str, args: dict[str, object]) -> Any:
    return call_new("plugins", None, plugin, method, {"plugin": reference(plugin), **args})
