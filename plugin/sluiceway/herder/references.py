"""Resolves references in a config for its validation and hides the resolved values in the result.

Calls the worker's config providers; no other I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluiceway.config.password import HIDDEN
from sluiceway.config.variables import Resolver, referring_keys, resolver
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.herder.config_infos import ConfigInfo, ConfigInfos, ConfigValueInfo

_MIN_LENGTH = 4  # shorter values occur in unrelated text


@dataclass(frozen=True, slots=True)
class References:
    """A config with its references resolved.

    ``written`` are the values with references, as the user wrote them. ``unknown`` are the keys that cannot be resolved on
    this machine: a file may exist on the driver's machine only.
    """

    config: Mapping[str, str | None] = field(repr=False)
    written: Mapping[str, str]
    unknown: frozenset[str]

    @classmethod
    def of(cls, config: Mapping[str, str | None], worker: WorkerConfig) -> References:
        """Resolve the references of a config. Raises ConfigError if the worker's config providers cannot be created."""
        keys = referring_keys(config)
        if not keys:
            return cls(config, {}, frozenset())
        providers = resolver(worker)
        try:
            resolved = {key: _resolved(providers, str(config[key])) for key in keys}
        finally:
            providers.close()
        known = {key: value for key, value in resolved.items() if value is not None}
        return cls({**config, **known}, {key: str(config[key]) for key in keys}, frozenset(keys - known.keys()))

    def shown(self, infos: ConfigInfos) -> ConfigInfos:
        """Return the result with references instead of resolved values and without errors about unresolved ones."""
        if not self.written:
            return infos
        return replace(infos, configs=tuple(self._shown(info) for info in infos.configs))

    def hidden(self, text: str, key: str | None = None) -> str:
        """Replace resolved values in a text with the references in the config. ``key``: the key that the text is about."""
        for name, written in self.written.items():
            resolved = self.config[name]
            if resolved and resolved != written and (name == key or len(resolved) >= _MIN_LENGTH):
                text = text.replace(resolved, written)
        return text

    def _shown(self, info: ConfigInfo) -> ConfigInfo:
        if info.value is None:
            return info
        name = info.value.name
        errors = () if name in self.unknown else tuple(self.hidden(error, name) for error in info.value.errors)
        return replace(info, value=replace(info.value, value=self._value(info.value), errors=errors))

    def _value(self, value: ConfigValueInfo) -> str | None:
        written = self.written.get(value.name)
        return value.value if written is None or value.value == HIDDEN else written


def _resolved(providers: Resolver, text: str) -> str | None:
    try:
        return providers.resolve({"value": text})["value"]
    except ConfigError:
        return None
