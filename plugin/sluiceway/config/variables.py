"""``${provider:path:key}`` in configs: replaced where a config is put to use, never where it is stored.

Reads what the worker's config providers read; otherwise no I/O.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, NamedTuple

from sluiceway.config.parsing import parse_list
from sluiceway.config.password import Password
from sluiceway.config.providers.built_in import BUILT_IN, CONFIG_PROVIDERS
from sluiceway.config.providers.provider import ConfigData, ConfigProvider
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig

PROVIDERS = "config.providers"
HANDED_OVER = "SLUICEWAY_AIRFLOW_SECRETS"
"""The environment variable in which an Airflow task gives its driver what Airflow's connections and variables say: a JSON
object of values by ``provider:path:key``. Its name makes Spark and Airflow hide it in what they print."""

WORKER_OVERRIDE = "worker::"
"""Before the names of worker properties among those values: they win over the worker's file."""

_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_JAVA_PACKAGE = "org.apache.kafka.common.config.provider."


class Reference(NamedTuple):
    """One ``${provider:path:key}``; ``path`` is empty in ``${provider:key}``."""

    provider: str
    path: str
    key: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """A config with its references replaced, and for how many milliseconds that holds (None: for good).

    Holds secrets: never print or store ``config``.
    """

    config: dict[str, str] = field(repr=False)
    ttl: int | None = None


def references(config: Mapping[str, str | None]) -> Iterator[Reference]:
    """Yield every reference in a config's values, whether there is such a provider or not."""
    for value in config.values():
        for found in _REFERENCE.finditer(value or ""):
            yield _reference(found)


def referring_keys(config: Mapping[str, str | None]) -> set[str]:
    """Return the keys whose values hold references."""
    return {key for key, value in config.items() if value is not None and _REFERENCE.search(value)}


def with_references(config: Mapping[str, str], task_configs: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return task configs as they may be stored: what the connector passed on of its own config is a reference again."""
    kept = {key: config[key] for key in referring_keys(config)}
    return [{**task_config, **{key: value for key, value in kept.items() if key in task_config}} for task_config in task_configs]


class Resolver:
    """Replaces references by what a worker's config providers say. Thread-safe if the providers are; made once for a process."""

    def __init__(self, providers: Mapping[str, ConfigProvider]) -> None:
        self._providers = providers

    @classmethod
    def of(cls, properties: Mapping[str, str], secrets: Mapping[str, Password] | None = None) -> Resolver:
        """Return the resolver that worker properties describe with ``config.providers`` and ``config.providers.*``.

        ``secrets`` are what an Airflow task handed over, by ``provider:path:key``; they go before what a provider says.
        Raises ConfigError for a provider that is not there or refuses its parameters.
        """
        providers = {name: _provider(name, properties) for name in parse_list(properties.get(PROVIDERS))}
        if not secrets:
            return cls(providers)
        return cls({name: _HandedOver(name, secrets, provider) for name, provider in providers.items()})

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a config with its references replaced. The answer holds secrets: it is for use, not for a log or a topic.

        What refers to a provider or a key that is not there stays as it is, as in Connect. Raises ConfigError where a provider
        cannot look a value up.
        """
        return self.resolve_for(config).config

    def resolve_for(self, config: Mapping[str, str]) -> Resolution:
        """Return what ``resolve`` does, and how long it holds: the shortest of the providers' times."""
        wanted: dict[tuple[str, str], set[str]] = {}
        for reference in references(config):
            if reference.provider in self._providers:
                wanted.setdefault((reference.provider, reference.path), set()).add(reference.key)
        if not wanted:
            return Resolution(dict(config))
        found = {place: self._providers[place[0]].get(place[1], keys) for place, keys in wanted.items()}
        ttls = [data.ttl for data in found.values() if data.ttl is not None and data.ttl >= 0]
        replace = functools.partial(_replacement, found)
        return Resolution({key: _REFERENCE.sub(replace, value) for key, value in config.items()}, min(ttls, default=None))

    def close(self) -> None:
        for provider in self._providers.values():
            provider.close()


def resolver(worker: WorkerConfig) -> Resolver:
    """Return the resolver of a worker's config. Runs on the driver and on executors; raises ConfigError."""
    return Resolver.of(worker.raw, worker.secrets)


class _HandedOver(ConfigProvider):
    """A provider's values that were looked up where it could be asked; what is not among them, it is asked here."""

    def __init__(self, name: str, secrets: Mapping[str, Password], provider: ConfigProvider) -> None:
        prefix = f"{name}:"
        self._values = {key[len(prefix) :]: value for key, value in secrets.items() if key.startswith(prefix)}
        self._provider = provider

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        known = {key: self._values[f"{path}:{key}"].value for key in keys if f"{path}:{key}" in self._values}
        rest = [key for key in keys if key not in known]
        if not rest:
            return ConfigData(known)
        asked = self._provider.get(path, rest)
        return ConfigData({**asked.values, **known}, asked.ttl)

    def close(self) -> None:
        self._provider.close()


def handed_over() -> dict[str, str]:
    """Return what the Airflow task handed to this driver; empty outside of one."""
    text = os.environ.get(HANDED_OVER)
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        raise ConfigError(f"The environment variable {HANDED_OVER} does not hold a JSON object.") from None  # it holds secrets
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def worker_overrides() -> dict[str, str]:
    """Return the worker properties that the Airflow task handed to this driver."""
    handed = handed_over().items()
    return {key[len(WORKER_OVERRIDE) :]: value for key, value in handed if key.startswith(WORKER_OVERRIDE)}


def _reference(found: re.Match[str]) -> Reference:
    return Reference(found[1], found[2] or "", found[3])


def _replacement(found: Mapping[tuple[str, str], ConfigData], match: re.Match[str]) -> str:
    reference = _reference(match)
    data = found.get((reference.provider, reference.path))
    return match[0] if data is None else data.values.get(reference.key, match[0])


def _provider(name: str, properties: Mapping[str, str]) -> ConfigProvider:
    key = f"{PROVIDERS}.{name}.class"
    if key not in properties:
        raise ConfigError(f'Missing required configuration "{key}" which has no default value.')
    prefix = f"{PROVIDERS}.{name}.param."
    provider = _provider_class(key, properties[key].strip())()
    provider.configure({each[len(prefix) :]: value for each, value in properties.items() if each.startswith(prefix)})
    return provider


def _provider_class(key: str, name: str) -> type[ConfigProvider]:
    paths = {each.name: each.value for each in entry_points(group=CONFIG_PROVIDERS)} | BUILT_IN
    alias = name.removeprefix(_JAVA_PACKAGE)
    path = paths.get(alias) or paths.get(f"{alias}ConfigProvider") or name
    module, _, attribute = path.replace(":", ".").rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(key, name, f"Class {name} could not be found.") from error
    if not (isinstance(found, type) and issubclass(found, ConfigProvider)):
        raise ConfigError(key, name, f"Class {name} does not implement the ConfigProvider interface")
    return found
