"""The base of connectors with keys that may conflict with each other. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Connector
from sluiceway.config.definition import ConfigValue, ValidatedValue
from sluiceway.errors import ConfigError


class CheckedConnector(Connector):
    """Checks the keys of a config by their definition, and then whether they go together."""

    _config: dict[str, str]

    @classmethod
    def connection_conflicts(cls, values: Mapping[str, ConfigValue]) -> Mapping[str, str]:
        """Return the errors of keys of the connection that conflict, by the key to change. For a system's base."""
        return {}

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        """Return the errors of other keys that conflict, by the key to change."""
        return {}

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the config. Raises ConfigError."""
        for name, message in self._conflicts(self.config_def().parse(config), config).items():
            raise ConfigError(name, None, message)
        self._config = dict(config)

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = cls.config_def().validate(config)
        if not any(each.errors for each in found.values()):
            for name, message in cls._conflicts({name: each.value for name, each in found.items()}, config).items():
                found[name].errors.append(str(ConfigError(name, None, message)))
        return found

    @classmethod
    def _conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return {**cls.connection_conflicts(values), **cls.conflicts(values, config)}
