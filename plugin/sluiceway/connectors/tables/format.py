"""Interface of a table format: the config and the store that a connector to tables and its task share."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from sluiceway.connectors.tables.config import TableOptions
from sluiceway.connectors.tables.store import TableStore
from sluiceway.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from sluiceway.config.definition import ConfigDef


class Closable(Protocol):
    def close(self) -> None: ...


OptionsT = TypeVar("OptionsT")
StoreT = TypeVar("StoreT", bound=Closable)


class TableFormat(abc.ABC, Generic[OptionsT, StoreT]):
    """Base class of a format's connectors and tasks, with the typed config and the tables that they use."""

    prefix: ClassVar[str]
    """Prefix of the config keys."""
    definition: ClassVar[ConfigDef]
    location_key: ClassVar[str]
    """The key that errors of the connection are reported at."""
    namespaced: ClassVar[bool] = False
    """Whether each table is in a namespace, so that its name has a dot."""

    @classmethod
    @abc.abstractmethod
    def store_of(cls, options: OptionsT) -> StoreT:
        """Return the tables of a config. Imports the format's library, which a machine that lists plugins may not have."""

    @classmethod
    @abc.abstractmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return the errors of the format's own keys, by key. No I/O."""

    @classmethod
    @abc.abstractmethod
    def shared_options(cls, config: Mapping[str, str]) -> OptionsT:
        """Return the typed values of the keys that all formats share. Raises ConfigError."""

    @classmethod
    def key_of(cls, error: ConnectError, config: Mapping[str, str]) -> str:
        """Return the key to report an error of the connection at."""
        return cls.location_key

    @classmethod
    def options_of(cls, config: Mapping[str, str]) -> OptionsT:
        """Return the typed config. Raises ConfigError."""
        options = cls.shared_options(config)
        for name, message in cls.own_problems(config).items():
            raise ConfigError(name, config.get(name), message)
        return options


class WritingFormat(TableFormat[TableOptions, TableStore]):
    """Base class of what writes to tables: sinks and compactions."""

    by_topic: ClassVar[bool] = False
    """Whether topics name the tables if the config names none."""

    @classmethod
    def shared_options(cls, config: Mapping[str, str]) -> TableOptions:
        return TableOptions.of(cls.prefix, cls.definition, config, namespaced=cls.namespaced, by_topic=cls.by_topic)
