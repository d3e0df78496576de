"""Validates the configs of the table connectors, also against the catalog."""

from __future__ import annotations

import abc
import logging
from collections.abc import Mapping
from contextlib import closing

from sluiceway.api import Connector
from sluiceway.config.definition import ConfigDef, ConfigValue, ValidatedValue
from sluiceway.connectors.tables.config import AUTO_CREATE, TABLES, TableOptions, conflicts
from sluiceway.connectors.tables.format import OptionsT, StoreT, TableFormat, WritingFormat
from sluiceway.connectors.tables.store import TableStore
from sluiceway.errors import ConfigError, ConnectError, RetriableError
from sluiceway.installation import install_command

log = logging.getLogger(__name__)


class TableConnector(TableFormat[OptionsT, StoreT], Connector):
    """Base class of the connectors to tables."""

    @classmethod
    @abc.abstractmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        """Return the errors of keys that conflict, by the key to change. No I/O."""

    @classmethod
    @abc.abstractmethod
    def try_tables(cls, options: OptionsT, store: StoreT, found: Mapping[str, ValidatedValue]) -> None:
        """Load the listed tables; add what is wrong with them to the errors of their keys."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return cls.definition

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        """Try the login and the tables."""
        try:
            options = cls.options_of(config)
            with closing(cls.store_of(options)) as store:
                cls.try_tables(options, store, found)
        except RetriableError as error:
            log.warning("%s", error)
        except ConnectError as error:
            found[cls.key_of(error, config)].errors.append(str(error))
        except ImportError as error:
            found[cls.location_key].errors.append(f"{error}. Run: {install_command(cls.prefix.rstrip('.'))} on this machine.")

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = cls.definition.validate(config)
        if not any(found[key.name].errors for key in cls.definition):
            values = {key.name: found[key.name].value for key in cls.definition}
            for name, message in cls.conflicts(values, config).items():
                found[name].errors.append(str(ConfigError(name, found[name].value, message)))
        if any(each.errors for each in found.values()):
            return found
        for name, message in cls.own_problems(config).items():
            key = name if name in found else cls.location_key
            found[key].errors.append(message if name not in found else str(ConfigError(name, config.get(name), message)))
        return found


class WritingConnector(WritingFormat, TableConnector[TableOptions, TableStore]):
    """Base class of the connectors that write to tables."""

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return conflicts(cls.prefix, values, config, by_topic=cls.by_topic)

    @classmethod
    def try_tables(cls, options: TableOptions, store: TableStore, found: Mapping[str, ValidatedValue]) -> None:
        missing = [name for name in options.tables if store.table(name) is None]
        if missing and not options.auto_create:
            found[cls.prefix + TABLES].errors.append(
                f"Table {', '.join(missing)} does not exist. Create it, or set {cls.prefix}{AUTO_CREATE}=true."
            )
