"""The connector of the table sources: divides the tables among tasks, validates the config against the tables, and offsets."""

from __future__ import annotations

import abc
import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import ClassVar

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.tables.config import ID_COLUMNS, TABLES
from sluiceway.connectors.tables.source.config import SourceOptions, add_conflicts
from sluiceway.connectors.tables.source.position import check_offset
from sluiceway.connectors.tables.source.store import SourceStore
from sluiceway.errors import ConfigError, ConnectError, RetriableError

log = logging.getLogger(__name__)


class TableSourceConnector(SourceConnector, abc.ABC):
    """Gives each task a part of the tables."""

    prefix: ClassVar[str]
    location_key: ClassVar[str]
    """The key that errors of the connection are reported at."""

    @classmethod
    @abc.abstractmethod
    def store_of(cls, options: SourceOptions) -> SourceStore: ...

    @classmethod
    @abc.abstractmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return the errors of the format's own keys, by key. No I/O."""

    @classmethod
    def options_of(cls, config: Mapping[str, str]) -> SourceOptions:
        """Return the typed config. Raises ConfigError."""
        options = SourceOptions.of(cls.prefix, cls.config_def(), config)
        for name, message in cls.own_problems(config).items():
            raise ConfigError(name, config.get(name), message)
        return options

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        """Check the keys, the login and the tables. An unreachable catalog is not an error, because tasks wait for it."""
        definition: ConfigDef = cls.config_def()
        found = add_conflicts(definition, config)
        if any(each.errors for each in found.values()):
            return found
        for name, message in cls.own_problems(config).items():
            key = name if name in found else cls.location_key
            found[key].errors.append(message if name not in found else str(ConfigError(name, config.get(name), message)))
        if not any(each.errors for each in found.values()):
            cls._try_tables(config, found)
        return found

    def start(self, config: Mapping[str, str]) -> None:
        self._tables = self.options_of(config).tables
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        count = min(max_tasks, len(self._tables))
        return [{**self._config, self.prefix + TABLES: ",".join(self._tables[task::count])} for task in range(count)]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        tables = self.options_of(config).tables
        for partition, offset in offsets:
            check_offset(partition, offset, tables)
        return True

    @classmethod
    def _try_tables(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        """Load the tables; add failures to the errors of the keys that cause them."""
        try:
            options = cls.options_of(config)
            with closing(cls.store_of(options)) as store:
                for name in options.tables:
                    cls._try_table(name, options, store, found)
        except RetriableError as error:
            log.warning("%s", error)
        except ConnectError as error:
            found[cls.location_key].errors.append(str(error))
        except ImportError as error:
            found[cls.location_key].errors.append(f"{error}. Install sluiceway[{cls.prefix.rstrip('.')}] on this machine.")

    @classmethod
    def _try_table(cls, name: str, options: SourceOptions, store: SourceStore, found: Mapping[str, ValidatedValue]) -> None:
        tables, ids = found[cls.prefix + TABLES], found[cls.prefix + ID_COLUMNS]
        table = store.table(name, options.selection(name))
        if table is None:
            tables.errors.append(f"Table {name} does not exist.")
            return
        columns = table.columns.names
        missing = [column for column in options.id_columns(name) if column not in columns]
        if missing:
            ids.errors.append(f"Table {name} has no column {', '.join(missing)} among the columns to read.")
