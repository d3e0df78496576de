"""Interface of a table format: the config and the store that its connector and its task share."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from sluiceway.connectors.tables.config import TableOptions
from sluiceway.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from sluiceway.config.definition import ConfigDef
    from sluiceway.connectors.tables.store import TableStore


class TableFormat(abc.ABC):
    """Base class of a format's connector and task."""

    prefix: ClassVar[str]
    """Prefix of the config keys."""
    definition: ClassVar[ConfigDef]
    location_key: ClassVar[str]
    """The key that errors of the connection are reported at."""

    @classmethod
    @abc.abstractmethod
    def store_of(cls, options: TableOptions) -> TableStore:
        """Return the tables of a config. Imports the format's library, which a machine that lists plugins may not have."""

    @classmethod
    @abc.abstractmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return the errors of the format's own keys, by key. No I/O."""

    @classmethod
    def key_of(cls, error: ConnectError, config: Mapping[str, str]) -> str:
        """Return the key to report an error of the connection at."""
        return cls.location_key

    @classmethod
    def options_of(cls, config: Mapping[str, str]) -> TableOptions:
        """Return the typed config. Raises ConfigError."""
        options = TableOptions.of(cls.prefix, cls.definition, config)
        for name, message in cls.own_problems(config).items():
            raise ConfigError(name, config.get(name), message)
        return options
