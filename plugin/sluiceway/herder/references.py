"""Checking configs that refer to secrets: they are checked with the secrets, and the answer shows the references.

Asks the worker's config providers; otherwise pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluiceway.config.password import HIDDEN
from sluiceway.config.variables import Resolver, referring_keys, resolver
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.herder.config_infos import ConfigInfo, ConfigInfos, ConfigValueInfo

_TELLING = 4  # characters; a shorter value stands in texts that have nothing to do with it


@dataclass(frozen=True, slots=True)
class References:
    """A config's values that refer to something: as they are written, and as they are meant.

    ``unknown`` are the keys that cannot be looked up here: a file may be on the driver's machine only.
    """

    config: Mapping[str, str | None] = field(repr=False)
    written: Mapping[str, str]
    unknown: frozenset[str]

    @classmethod
    def of(cls, config: Mapping[str, str | None], worker: WorkerConfig) -> References:
        """Look up what a config refers to. Raises ConfigError if the worker's config providers cannot be made."""
        keys = referring_keys(config)
        if not keys:
            return cls(config, {}, frozenset())
        providers = resolver(worker)
        try:
            meant = {key: _look_up(providers, str(config[key])) for key in keys}
        finally:
            providers.close()
        known = {key: value for key, value in meant.items() if value is not None}
        return cls({**config, **known}, {key: str(config[key]) for key in keys}, frozenset(keys - known.keys()))

    def shown(self, infos: ConfigInfos) -> ConfigInfos:
        """Return findings without what was looked up, and without those about values that could not be looked up."""
        if not self.written:
            return infos
        return replace(infos, configs=tuple(self._shown(info) for info in infos.configs))

    def hidden(self, text: str, key: str | None = None) -> str:
        """Return a text with every value that was looked up as it is written in the config."""
        for name, written in self.written.items():
            meant = self.config[name]
            if meant and meant != written and (name == key or len(meant) >= _TELLING):
                text = text.replace(meant, written)
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


def _look_up(providers: Resolver, text: str) -> str | None:
    try:
        return providers.resolve({"value": text})["value"]
    except ConfigError:
        return None
