"""Resolves references to config providers (``${provider:path:key}``) where a config is used, never where it is stored.

Calls the worker's config providers; no other I/O.
"""

from __future__ import annotations

import base64
import functools
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.config.environment import HANDED_OVER
from sluiceway.config.parsing import parse_list
from sluiceway.config.password import Password
from sluiceway.config.providers.built_in import BUILT_IN, CONFIG_PROVIDERS, IN_JARS
from sluiceway.config.providers.provider import ConfigData, ConfigProvider
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig

PROVIDERS = "config.providers"
WORKER_OVERRIDE = "worker::"
"""Prefix of worker properties among those values. They win over the worker's file."""

# Kafka's pattern, which takes quadratic time, in linear time: it also matches what is no reference, without the last group.
_BRACES = re.compile(r"\$\{([^}:]*)(?::(?:([^}:]*):)?([^}]*))?\}")
_PROVIDER_NAME = re.compile(r"[\w.-]+")
_OPEN = re.compile(r"\$\{([\w.-]+):[^}]*$")
_JAVA_PACKAGE = "org.apache.kafka.common.config.provider."


class Reference(NamedTuple):
    """One ``${provider:path:key}``; ``path`` is empty in ``${provider:key}``."""

    provider: str
    path: str
    key: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """A config with resolved references and its time to live in milliseconds, None for no limit.

    ``config`` contains secrets: do not log or store it. ``left`` are the references whose provider has no such key.
    """

    config: dict[str, str] = field(repr=False)
    ttl: int | None = None
    left: frozenset[str] = frozenset()


def references(config: Mapping[str, str | None]) -> Iterator[Reference]:
    """Yield every reference in a config's values, including those to unknown providers."""
    for value in config.values():
        for found in _found(value or ""):
            yield _reference(found)


def referring_keys(config: Mapping[str, str | None]) -> set[str]:
    """Return the keys whose values contain references."""
    return {key for key, value in config.items() if value is not None and any(_found(value))}


def with_references(config: Mapping[str, str], task_configs: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Restore the connector config's references in task configs, so that they can be stored without secrets."""
    kept = {key: config[key] for key in referring_keys(config)}
    return [{**task_config, **{key: value for key, value in kept.items() if key in task_config}} for task_config in task_configs]


class Resolver:
    """Resolves references with a worker's config providers. Created once per process. Thread-safe if the providers are."""

    def __init__(self, providers: Mapping[str, ConfigProvider]) -> None:
        self._providers = providers

    @classmethod
    def of(
        cls,
        properties: Mapping[str, str],
        secrets: Mapping[str, Password] | None = None,
        defaults: Mapping[str, str] | None = None,
    ) -> Resolver:
        """Create the resolver that worker properties define with ``config.providers`` and ``config.providers.*``.

        ``secrets`` are the values that an Airflow task passed to its driver, by ``provider:path:key``. They take precedence
        over the providers. ``defaults`` are parameters of every provider that the properties do not set. Raises ConfigError for
        a provider that cannot be found or rejects its parameters.
        """
        providers = {name: _provider(name, properties, defaults or {}) for name in parse_list(properties.get(PROVIDERS))}
        if not secrets:
            return cls(providers)
        return cls({name: _PassedValues(name, secrets, provider) for name, provider in providers.items()})

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a config with resolved references. It contains secrets: do not log or store it.

        As in Connect, references to unknown providers or keys are kept. Raises ConfigError if a provider cannot read a value.
        """
        return self.resolve_for(config).config

    def resolve_for(self, config: Mapping[str, str]) -> Resolution:
        """Resolve a config as ``resolve`` does and return it with the shortest time to live of its values."""
        requested: dict[tuple[str, str], set[str]] = {}
        for reference in references(config):
            if reference.provider in self._providers:
                requested.setdefault((reference.provider, reference.path), set()).add(reference.key)
        if not requested:
            return Resolution(dict(config))
        found = {(name, path): self._providers[name].get(path, keys) for (name, path), keys in requested.items()}
        ttls = [data.ttl for data in found.values() if data.ttl is not None and data.ttl >= 0]
        replace = functools.partial(_replacement, found)
        resolved = {key: _replaced(value, replace) for key, value in config.items()}
        return Resolution(resolved, min(ttls, default=None), frozenset(_left(config, found)))

    def errors(self, text: str) -> list[str]:
        """Return why references in a value cannot be resolved on any machine. Does not read values."""
        found = [error for each in _found(text) if (error := self._error(each)) is not None]
        if (unclosed := _OPEN.search(text, text.rfind("}") + 1)) is not None and unclosed[1] in self._providers:
            found.append(f"The reference {unclosed[0]} does not end with }}.")
        return found

    def missing(self, text: str) -> list[str]:
        """Return which references to files and variables of this machine have no value here, and why."""
        found = []
        for match in _found(text):
            name, path, key = _reference(match)
            provider = self._providers.get(name)
            if provider is None or not provider.of_machine:
                continue
            try:
                if key not in provider.get(path, [key]).values:
                    found.append(f"{match[0]} has no value on this machine: the {name} provider does not find {key!r}.")
            except ConfigError as error:
                found.append(f"{match[0]} has no value on this machine: {error}.")
        return found

    def _error(self, match: re.Match[str]) -> str | None:
        name, path, key = _reference(match)
        provider = self._providers.get(name)
        if provider is not None:
            try:
                provider.check(path, key)
            except ConfigError as error:
                return f"The reference {match[0]} cannot be resolved: {error}"
        elif _PROVIDER_NAME.fullmatch(name):
            known = f"the worker has {', '.join(sorted(self._providers))}" if self._providers else "the worker has none"
            return f"{match[0]} refers to an unknown config provider: {known} ({PROVIDERS})."
        return None

    def close(self) -> None:
        for provider in self._providers.values():
            provider.close()


def resolver(worker: WorkerConfig) -> Resolver:
    """Create the resolver of a worker's config. Raises ConfigError."""
    return Resolver.of(worker.raw, worker.secrets)


def resolution_for_use(worker: WorkerConfig, config: Mapping[str, str]) -> Resolution:
    """Resolve the config of a connector or task that is about to run here, with the worker's providers.

    Raises ConfigError for a reference without a value. Kafka Connect would use its text: as a file's name, for example.
    """
    providers = resolver(worker)
    found = providers.resolve_for(config)
    for key, value in config.items():
        errors = providers.errors(value) if "${" in value else []
        errors += [f"{each} has no value where the connector runs." for each in sorted(found.left) if each in value]
        if errors:
            raise ConfigError(f"{key}: {' '.join(errors)}")
    return found


class _PassedValues(ConfigProvider):
    """Returns the values that the Airflow task passed to this driver, and asks the provider for all others."""

    def __init__(self, name: str, secrets: Mapping[str, Password], provider: ConfigProvider) -> None:
        prefix = f"{name}:"
        self._values = {key[len(prefix) :]: value for key, value in secrets.items() if key.startswith(prefix)}
        self._provider = provider
        self.check = provider.check  # type: ignore[method-assign]

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        known = {key: self._values[f"{path}:{key}"].value for key in keys if f"{path}:{key}" in self._values}
        others = [key for key in keys if key not in known]
        if not others:
            return ConfigData(known)
        data = self._provider.get(path, others)
        return ConfigData({**data.values, **known}, data.ttl)

    def close(self) -> None:
        self._provider.close()


def handed_over() -> dict[str, str]:
    """Return the values that an Airflow task passed to this driver, empty without one. Raises ConfigError."""
    text = os.environ.get(HANDED_OVER)
    if not text:
        return {}
    try:
        found = json.loads(text if text.startswith("{") else base64.b64decode(text, validate=True))
    except ValueError:
        # Without the cause, whose text contains secrets.
        raise ConfigError(f"The environment variable {HANDED_OVER} does not contain a JSON object.") from None
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def worker_overrides() -> dict[str, str]:
    """Return the worker properties that the Airflow task passed to this driver."""
    return {key[len(WORKER_OVERRIDE) :]: value for key, value in handed_over().items() if key.startswith(WORKER_OVERRIDE)}


def _found(text: str) -> Iterator[re.Match[str]]:
    """Yield the references in a text. Braces that are not closed are left out: each would be searched to the text's end."""
    return (match for match in _BRACES.finditer(text, 0, text.rfind("}") + 1) if match[3] is not None)


def _replaced(text: str, replace: Callable[[re.Match[str]], str]) -> str:
    """Return a text with its references replaced."""
    end = text.rfind("}") + 1
    return _BRACES.sub(lambda match: match[0] if match[3] is None else replace(match), text[:end]) + text[end:]


def _reference(found: re.Match[str]) -> Reference:
    return Reference(found[1], found[2] or "", found[3])


def _replacement(found: Mapping[tuple[str, str], ConfigData], match: re.Match[str]) -> str:
    reference = _reference(match)
    data = found.get((reference.provider, reference.path))
    return match[0] if data is None else data.values.get(reference.key, match[0])


def _left(config: Mapping[str, str], found: Mapping[tuple[str, str], ConfigData]) -> Iterator[str]:
    """Yield the references that remain although their provider is known."""
    for value in config.values():
        for match in _found(value):
            provider, path, key = _reference(match)
            if (data := found.get((provider, path))) is not None and key not in data.values:
                yield match[0]


def _provider(name: str, properties: Mapping[str, str], defaults: Mapping[str, str]) -> ConfigProvider:
    key = f"{PROVIDERS}.{name}.class"
    if key not in properties:
        raise ConfigError(f'Missing required configuration "{key}" which has no default value.')
    prefix = f"{PROVIDERS}.{name}.param."
    provider = _provider_class(key, properties[key].strip(), properties)()
    own = {each[len(prefix) :]: value for each, value in properties.items() if each.startswith(prefix)}
    provider.configure({**defaults, **own})
    return provider


def _provider_class(key: str, name: str, properties: Mapping[str, str]) -> type[ConfigProvider]:
    alias = name.removeprefix(_JAVA_PACKAGE)
    path = BUILT_IN.get(alias)
    if path is None:
        paths = _registered(tuple(sys.path)) | BUILT_IN
        path = paths.get(alias) or paths.get(f"{alias}ConfigProvider") or name
    try:
        found = _imported(path)
    except (ImportError, AttributeError, ValueError) as error:
        found = _imported(IN_JARS)(name, properties)
        if found is None:
            raise ConfigError(key, name, f"Class {name} could not be found.") from error
    if not (isinstance(found, type) and issubclass(found, ConfigProvider)):
        raise ConfigError(key, name, f"Class {name} does not implement the ConfigProvider interface")
    return found


@functools.lru_cache(maxsize=1)
def _registered(_path: tuple[str, ...]) -> dict[str, str]:
    """Return the providers among the entry points of packages on ``sys.path``. The search takes 0.1 s, for each validation."""
    return {each.name: each.value for each in entry_points(group=CONFIG_PROVIDERS)}


def _imported(path: str) -> Any:
    module, _, attribute = path.replace(":", ".").rpartition(".")
    return getattr(importlib.import_module(module), attribute)
