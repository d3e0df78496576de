"""The JDBC source connector: finds tables and assigns them to tasks."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

from sluiceway.api import ExactlyOnceSupport, Offset, OffsetTarget, Partition, SourceConnector, SourceWatch
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.groups import Groups
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.source.config import SourceConfig, checked, interval_refusal, source_config
from sluiceway.connectors.jdbc.source.keys import (
    BULK,
    CONFIG,
    INCREMENTING,
    MODE,
    QUERY,
    RANGE,
    RANGE_PLAN,
    TABLES,
    TIMESTAMP_INCREMENTING,
)
from sluiceway.connectors.jdbc.source.offsets import check_offset
from sluiceway.connectors.jdbc.source.snapshot import plan_for
from sluiceway.connectors.jdbc.source.task import JdbcSourceTask, reading_settings
from sluiceway.connectors.jdbc.tables import selected_tables
from sluiceway.connectors.periodic import Job, Periodic
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)


class JdbcSourceConnector(SourceConnector):
    """Reads tables of PostgreSQL, MySQL, MariaDB, SQLite and SQL Server into a topic for each table, or a query into one topic:
    all rows at each poll, or only those that are new or changed, by a number or a timestamp. Needs the
    extra ``jdbc``, no Java driver. Configs and stored offsets of Confluent's JDBC source keep working.

    A thread checks for new and dropped tables and assigns them to ``tasks.max`` tasks. Tables that are altered while it runs
    get new schemas. Rows that are committed late with older timestamps or numbers are not missed if the user may see the
    database's open transactions (``sluiceway.horizon``). SQL Server support is tested by its SQL only.
    """

    task_class = JdbcSourceTask
    java_class = "io.confluent.connect.jdbc.JdbcSourceConnector"
    java_task_class = "io.confluent.connect.jdbc.source.JdbcSourceTask"
    interval_by_timestamp = False

    _database: Database | None = None
    _table_monitor: Periodic | None = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        from sluiceway.connectors.jdbc.source.validation import try_database

        try_database(config, found)

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        return checked(config)

    @classmethod
    def interval_refusal(cls, config: Mapping[str, str]) -> str:
        return interval_refusal(config)

    @classmethod
    def watch_refusal(cls, config: Mapping[str, str]) -> str:
        return "the newest row of a query can only be found by running it: name tables instead" if config.get(QUERY) else ""

    @classmethod
    def watch(cls, config: Mapping[str, str]) -> SourceWatch:
        from sluiceway.connectors.jdbc.source.watch import NewestRows

        return NewestRows(source_config(config))

    def start(self, config: Mapping[str, str]) -> None:
        self._properties = dict(config)
        self._config: SourceConfig = source_config(config)
        self._groups = Groups[TableId]()
        self._plans: dict[str, str] = {}
        self._tables: list[TableId] = []
        self._missing: Sequence[str] = ()
        self._database = database = Database(reading_settings(self._config.connection))
        if self._config.query:
            database.connect().close()
            return
        self._tables = self._find(database)
        log.info("Found %d tables", len(self._tables))
        job = Job("to check for new tables", lambda: self._refresh(database), self._config.table_poll_interval)
        self._table_monitor = Periodic(f"jdbc-{config.get('name', '')}", [job])
        self._table_monitor.start()

    def _find(self, database: Database) -> list[TableId]:
        with database.connect() as connection:
            tables, missing = selected_tables(connection, database.dialect, self._config.selection)
            if self._config.ranges > 1:
                for table in tables:
                    if str(table) not in self._plans:
                        self._plans[str(table)] = plan_for(self._config, database, connection, table).text
        _check_topics(tables)
        self._show_missing(missing)
        return tables

    def _show_missing(self, missing: Sequence[str]) -> None:
        """Show in the status and the log what the config names and the database does not have, or not for this user."""
        if missing != self._missing and missing:
            log.warning("%s", _no_table(missing))
        self._missing = missing
        if missing:
            self.context.waiting(_no_table(missing), self._config.table_poll_interval or 0.0)
        else:
            self.context.waiting()

    def _refresh(self, database: Database) -> None:
        """Check for new and dropped tables. Runs on the monitor's thread."""
        found = self._find(database)
        if found != self._tables:
            for change, names in (("New", set(found) - set(self._tables)), ("Dropped", set(self._tables) - set(found))):
                if names:
                    log.info("%s tables: %s", change, ", ".join(sorted(map(str, names))))
            self._tables = found
            self.context.request_task_reconfiguration()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign tables to tasks. A table stays with its task, so that the configs of other tasks do not change."""
        if self._config.query:
            return [dict(self._properties)]
        dialect = dialect_of(self._config.connection.url.dialect)
        if self._config.ranges > 1:
            return self._range_configs(max_tasks, [dialect.qualified(table) for table in self._tables])
        groups = self._groups.assign(self._tables, max_tasks)
        return [{**self._properties, TABLES: json.dumps([dialect.qualified(each) for each in group])} for group in groups]

    def _range_configs(self, max_tasks: int, names: Sequence[str]) -> list[dict[str, str]]:
        count = self._config.ranges
        tasks = min(max_tasks, count) if names else 0
        common = {**self._properties, TABLES: json.dumps(list(names)), RANGE_PLAN: json.dumps(self._plans)}
        return [{**common, RANGE: f"{','.join(map(str, range(count)[task::tasks]))}/{count}"} for task in range(tasks)]

    def stop(self) -> None:
        if self._table_monitor is not None:
            self._table_monitor.stop()
        if self._database is not None:
            self._database.dispose()

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # A timestamp alone does not identify one of several rows, and bulk mode has no offsets.
        exact = config.get(MODE) in (INCREMENTING, TIMESTAMP_INCREMENTING)
        return ExactlyOnceSupport.SUPPORTED if exact else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        if config.get(MODE) == BULK and any(offset for _, offset in offsets):
            raise ConnectError("With mode=bulk all rows are read at each poll, so offsets can only be deleted, not set.")
        for partition, offset in offsets:
            check_offset(partition, offset)
        return True

    def find_offsets(
        self, config: Mapping[str, str], target: OffsetTarget, offsets: Sequence[tuple[Partition, Offset]]
    ) -> Sequence[tuple[Partition, Offset | None]]:
        from sluiceway.connectors.jdbc.source.targets import find_offsets

        settings = source_config(config)
        database = Database(reading_settings(settings.connection))
        try:
            return find_offsets(settings, database, target, offsets)
        finally:
            database.dispose()


def _no_table(missing: Sequence[str]) -> str:
    return (
        f"The database has no table {', '.join(missing)}, or its user has no privilege on it. Check table.whitelist, "
        "table.include.list, table.types, and the privileges."
    )


def _check_topics(tables: Sequence[TableId]) -> None:
    """Raise ConnectError if two tables would go to the same topic."""
    by_name: dict[str, TableId] = {}
    for table in tables:
        other = by_name.setdefault(table.table, table)
        if other != table:
            raise ConnectError(
                f"The tables {other} and {table} have the same name, and would go to the same topic. Choose one with "
                "schema.pattern, catalog.pattern, or table.include.list, and read the other one with a connector of its own."
            )
