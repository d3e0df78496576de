"""Resolves references in a config for its validation and hides the resolved values in the result.

Calls the worker's config providers; no other I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

from sluiceway.config.password import HIDDEN
from sluiceway.config.variables import Resolver, referring_keys, resolver
from sluiceway.config.worker import VALIDATES_REFERENCES, WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.herder.config_infos import ConfigInfo, ConfigInfos, ConfigValueInfo

_MIN_LENGTH = 4  # shorter values occur in unrelated text


@dataclass(frozen=True, slots=True)
class References:
    """A config with its references resolved.

    ``written`` are the values with references, as the user wrote them. ``unknown`` are the keys that cannot be resolved on
    this machine: a file may exist on the driver's machine only. ``errors`` says by key what can be resolved on no machine, or,
    if connectors run on this one (``sluiceway.validate.references``), not here.
    """

    config: Mapping[str, str | None] = field(repr=False)
    written: Mapping[str, str]
    unknown: frozenset[str]
    errors: Mapping[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Mapping[str, str | None], worker: WorkerConfig, *, offline: bool = False) -> References:
        """Resolve the references of a config. Raises ConfigError if the worker's config providers cannot be created.

        ``offline``: read no value and leave all references as they are; ``errors`` are then those of their form.
        """
        written = {key: value for key, value in config.items() if value is not None and "${" in value}
        if not written:
            return cls(config, {}, frozenset())
        reads = not offline and bool(worker.values[VALIDATES_REFERENCES])
        with closing(resolver(worker)) as providers:
            errors = {key: found for key, value in written.items() if (found := _errors(providers, value, reads=reads))}
            keys = referring_keys(written)
            resolved = {key: None if offline or key in errors else _resolved(providers, written[key]) for key in keys}
        known = {key: value for key, value in resolved.items() if value is not None}
        return cls({**config, **known}, {key: written[key] for key in keys}, frozenset(keys - known.keys()), errors)

    @property
    def known(self) -> dict[str, str]:
        """The config without null values. It contains secrets: do not log or store it."""
        return {key: value for key, value in self.config.items() if value is not None}

    @property
    def warnings(self) -> list[str]:
        """Which values cannot be resolved here."""
        return [f"The value of {key} cannot be resolved on this machine: {self.config[key]}" for key in sorted(self.unknown)]

    def shown(self, infos: ConfigInfos) -> ConfigInfos:
        """Return the result with references instead of resolved values, and of unresolved ones with only their own errors."""
        if not self.written and not self.errors:
            return infos
        keys = {info.value.name for info in infos.configs if info.value is not None}
        others = [
            ConfigInfo(None, ConfigValueInfo(key, self.config[key], errors=tuple(errors)))
            for key, errors in self.errors.items()
            if key not in keys
        ]
        return replace(infos, configs=tuple(self._shown(info) for info in infos.configs)) + others

    def hidden(self, text: str, key: str | None = None) -> str:
        """Replace resolved values in a text with the references in the config. ``key``: the key that the text is about."""
        kind = type(text)  # a subclass says that the error is temporary
        for name, written in self.written.items():
            resolved = self.config[name]
            if resolved and resolved != written and (name == key or len(resolved) >= _MIN_LENGTH):
                text = text.replace(resolved, written)
        return kind(text)

    def _shown(self, info: ConfigInfo) -> ConfigInfo:
        if info.value is None:
            return info
        name = info.value.name
        errors = () if name in self.unknown else tuple(self.hidden(error, name) for error in info.value.errors)
        own = tuple(self.errors.get(name, ()))
        return replace(info, value=replace(info.value, value=self._value(info.value), errors=errors + own))

    def _value(self, value: ConfigValueInfo) -> str | None:
        written = self.written.get(value.name)
        return value.value if written is None or value.value == HIDDEN else written


def _errors(providers: Resolver, text: str, *, reads: bool) -> list[str]:
    return providers.errors(text) or (providers.missing(text) if reads else [])


def _resolved(providers: Resolver, text: str) -> str | None:
    try:
        return providers.resolve({"value": text})["value"]
    except ConfigError:
        return None
