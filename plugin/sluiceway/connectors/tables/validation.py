"""Validates the configs of the table connectors, also against the catalog."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing

from sluiceway.api import Connector
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.tables.config import AUTO_CREATE, TABLES, add_conflicts
from sluiceway.connectors.tables.format import TableFormat
from sluiceway.errors import ConfigError, ConnectError, RetriableError

log = logging.getLogger(__name__)


class TableConnector(TableFormat, Connector):
    """Base class of the connectors to tables."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return cls.definition

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        """Check the keys, the login and the tables. An unreachable catalog is not an error, because tasks wait for it."""
        found = add_conflicts(cls.prefix, cls.definition, config)
        if any(each.errors for each in found.values()):
            return found
        for name, message in cls.own_problems(config).items():
            key = name if name in found else cls.location_key
            found[key].errors.append(message if name not in found else str(ConfigError(name, config.get(name), message)))
        if not any(each.errors for each in found.values()):
            cls._try_tables(config, found)
        return found

    @classmethod
    def _try_tables(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        """Load the listed tables; add failures to the errors of the keys that cause them."""
        try:
            options = cls.options_of(config)
            with closing(cls.store_of(options)) as store:
                missing = [name for name in options.tables if store.table(name) is None]
            if missing and not options.auto_create:
                found[cls.prefix + TABLES].errors.append(
                    f"Table {', '.join(missing)} does not exist. Create it, or set {cls.prefix}{AUTO_CREATE}=true."
                )
        except RetriableError as error:
            log.warning("%s", error)
        except ConnectError as error:
            found[cls.key_of(error, config)].errors.append(str(error))
        except ImportError as error:
            found[cls.location_key].errors.append(f"{error}. Install sluiceway[{cls.prefix.rstrip('.')}] on this machine.")
