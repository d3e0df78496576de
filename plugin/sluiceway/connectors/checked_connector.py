"""The base of connectors with keys that may conflict with each other, and with a system to try them with."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import ClassVar

from sluiceway.api import Connector
from sluiceway.config.definition import ConfigValue, ValidatedValue
from sluiceway.connectors.errors import LoginError, UnreachableError
from sluiceway.errors import ConfigError, ConnectError

log = logging.getLogger(__name__)


class CheckedConnector(Connector):
    """Checks the keys of a config by their definition, then whether they go together, and then with the system."""

    address_key: ClassVar[str]
    """The key of failures that name no other one."""

    _config: dict[str, str]

    @classmethod
    def connection_conflicts(cls, values: Mapping[str, ConfigValue]) -> Mapping[str, str]:
        """Return the errors of keys of the connection that conflict, by the key to change. For a system's base."""
        return {}

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        """Return the errors of other keys that conflict, by the key to change."""
        return {}

    @classmethod
    def try_system(
        cls, values: Mapping[str, ConfigValue], config: Mapping[str, str], found: Mapping[str, ValidatedValue]
    ) -> None:
        """Connect, and ask for what the parsed values name, or add what is wrong with it to the errors. Changes nothing.

        Raises UnreachableError and ConnectError, which ``key_of`` finds the key for.
        """

    @classmethod
    def key_of(cls, error: ConnectError) -> str:
        """Return the key to change after an error."""
        named = error.key if isinstance(error, LoginError) else error.name if isinstance(error, ConfigError) else None
        return named if named and named in cls.config_def() else cls.address_key

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the config. Raises ConfigError."""
        for name, message in self._conflicts(self.config_def().parse(config), config).items():
            raise ConfigError(name, None, message)
        self._config = dict(config)

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = cls.config_def().validate(config)
        if not any(each.errors for each in found.values()):
            for name, message in cls._conflicts(_values(found), config).items():
                found[name].errors.append(str(ConfigError(name, None, message)))
        return found

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        try:
            cls.try_system(_values(found), config, found)
        except UnreachableError as error:
            log.warning("%s", error)
        except ConnectError as error:
            found[cls.key_of(error)].errors.append(str(error))

    @classmethod
    def _conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return {**cls.connection_conflicts(values), **cls.conflicts(values, config)}


def _values(found: Mapping[str, ValidatedValue]) -> dict[str, ConfigValue]:
    return {name: each.value for name, each in found.items()}
