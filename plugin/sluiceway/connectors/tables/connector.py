"""The connector of the table sinks: validates the config against the catalog and sets offsets in the tables."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import ClassVar

from sluiceway.api import SinkConnector, TopicPartition
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.tables.config import AUTO_CREATE, TABLES, add_conflicts
from sluiceway.connectors.tables.format import TableFormat
from sluiceway.errors import ConfigError, ConnectError, RetriableError

log = logging.getLogger(__name__)


class TableSinkConnector(TableFormat, SinkConnector):
    """Starts tasks with the connector's config."""

    location_key: ClassVar[str]
    """The key that errors of the connection are reported at."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return cls.definition

    @classmethod
    def key_of(cls, error: ConnectError, config: Mapping[str, str]) -> str:
        """Return the key to report an error of the connection at."""
        return cls.location_key

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

    def start(self, config: Mapping[str, str]) -> None:
        self.options_of(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Set the offsets in the tables too, because tasks start from those. Connects to the catalog."""
        for partition, offset in offsets.items():
            if offset is not None and offset < 0:
                raise ConnectError(f"The offset of {partition[0]}-{partition[1]} must not be negative, but is {offset}.")
        if offsets:
            wanted = {TopicPartition._make(partition): offset for partition, offset in offsets.items()}
            with closing(self.store_of(self.options_of(config))) as store:
                for name in store.names():
                    table = store.table(name)
                    if table is not None and any(table.offset(partition) is not None for partition in wanted):
                        table.set_offsets(wanted)
        return True

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
