"""The connector of the table sources: divides the tables among tasks, and validates the tables of a config, and offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector
from sluiceway.config.definition import ConfigValue, ValidatedValue
from sluiceway.connectors.tables.config import ID_COLUMNS, TABLES
from sluiceway.connectors.tables.source.config import SourceOptions, conflicts
from sluiceway.connectors.tables.source.format import SourceFormat
from sluiceway.connectors.tables.source.position import check_offset
from sluiceway.connectors.tables.source.store import SourceStore
from sluiceway.connectors.tables.validation import TableConnector


class TableSourceConnector(SourceFormat, TableConnector[SourceOptions, SourceStore], SourceConnector):
    """Gives each task a part of the tables."""

    interval_by_timestamp = False

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return conflicts(values)

    @classmethod
    def try_tables(cls, options: SourceOptions, store: SourceStore, found: Mapping[str, ValidatedValue]) -> None:
        tables, ids = found[cls.prefix + TABLES], found[cls.prefix + ID_COLUMNS]
        for name in options.tables:
            table = store.table(name, options.selection(name))
            if table is None:
                tables.errors.append(f"Table {name} does not exist.")
                continue
            columns = table.columns.names
            missing = [column for column in options.id_columns(name) if column not in columns]
            if missing:
                ids.errors.append(f"Table {name} has no column {', '.join(missing)} among the columns to read.")

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
