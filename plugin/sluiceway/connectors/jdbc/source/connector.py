"""JdbcSource: the rows of tables, or of a query, become records."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.source.config import (
    BULK,
    CONFIG,
    INCREMENTING,
    MODE,
    RANGE,
    RANGE_PLAN,
    TABLES,
    TIMESTAMP_INCREMENTING,
    SourceConfig,
    source_config,
)
from sluiceway.connectors.jdbc.source.offsets import check_offset
from sluiceway.connectors.jdbc.source.snapshot_planning import plan_for
from sluiceway.connectors.jdbc.source.task import JdbcSourceTask, for_reading
from sluiceway.connectors.jdbc.tables import find_tables
from sluiceway.connectors.periodic import Job, Periodic
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)


class JdbcSourceConnector(SourceConnector):
    """Reads tables of PostgreSQL, MySQL, MariaDB and SQLite into a topic for each, or a query into one topic: all rows again
    and again, or only those that are new or changed by a number or a time. Needs ``pip install 'sluiceway[jdbc]'``, no Java
    driver; configs and stored offsets of the usual JDBC source connector go on working.

    Looks for tables that come and go in a thread of its own, and shares them out over ``tasks.max`` tasks. Tables that are
    altered while it runs get new schemas. Rows that are committed late with older times or numbers are not overlooked where
    the user may see the database's open transactions (``sluiceway.horizon``).
    """

    task_class = JdbcSourceTask
    java_class = "io.confluent.connect.jdbc.JdbcSourceConnector"
    java_task_class = "io.confluent.connect.jdbc.source.JdbcSourceTask"

    _database: Database | None = None
    _watch: Periodic | None = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        from sluiceway.connectors.jdbc.source.validation import validate

        return validate(config)

    def start(self, config: Mapping[str, str]) -> None:
        self._properties = dict(config)
        self._config: SourceConfig = source_config(config)
        self._assignment = Assignment()
        self._plans: dict[str, str] = {}
        self._tables: list[TableId] = []
        self._database = Database(for_reading(self._config.connection))
        if self._config.query:
            self._database.connect().close()
            return
        self._tables = self._find()
        log.info("Found %d tables", len(self._tables))
        self._watch = Periodic(
            f"jdbc-{config.get('name', '')}", [Job("to look for tables", self._refresh, self._config.table_poll_interval)]
        )
        self._watch.start()

    def _find(self) -> list[TableId]:
        assert self._database is not None  # noqa: S101 (start made it)
        with self._database.connect() as connection:
            tables = find_tables(connection, self._database.dialect, self._config.selection)
            if self._config.ranges > 1:
                for table in tables:
                    if str(table) not in self._plans:
                        self._plans[str(table)] = plan_for(self._config, self._database, connection, table).text
        _check_topics(tables)
        return tables

    def _refresh(self) -> None:
        """Called on the watching thread."""
        found = self._find()
        if found != self._tables:
            for what, names in (("new", set(found) - set(self._tables)), ("gone", set(self._tables) - set(found))):
                if names:
                    log.info("Tables that are %s: %s", what, ", ".join(sorted(map(str, names))))
            self._tables = found
            self.context.request_task_reconfiguration()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Share the tables out; one that a task has already stays there, so that other tasks go on undisturbed."""
        if self._config.query:
            return [dict(self._properties)]
        quoting = dialect_of(self._config.connection.url.dialect)
        if self._config.ranges > 1:
            return self._range_configs(max_tasks, [quoting.qualified(table) for table in self._tables])
        groups = self._assignment.shared(self._tables, max_tasks)
        return [{**self._properties, TABLES: json.dumps([quoting.qualified(each) for each in group])} for group in groups]

    def _range_configs(self, max_tasks: int, names: Sequence[str]) -> list[dict[str, str]]:
        count = self._config.ranges
        tasks = min(max_tasks, count) if names else 0
        common = {**self._properties, TABLES: json.dumps(list(names)), RANGE_PLAN: json.dumps(self._plans)}
        return [{**common, RANGE: f"{','.join(map(str, range(count)[task::tasks]))}/{count}"} for task in range(tasks)]

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.stop()
        if self._database is not None:
            self._database.dispose()

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # A time alone does not tell which of several rows of that time was read; bulk has no place at all.
        exact = config.get(MODE) in (INCREMENTING, TIMESTAMP_INCREMENTING)
        return ExactlyOnceSupport.SUPPORTED if exact else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        if config.get(MODE) == BULK and any(offset for _, offset in offsets):
            raise ConnectError("With mode=bulk everything is read each time: there are no offsets to set, only to forget.")
        for partition, offset in offsets:
            check_offset(partition, offset)
        return True


class Assignment:
    """Which task reads which tables. It changes as little as it can: a task whose tables stay the same is not restarted."""

    def __init__(self) -> None:
        self._groups: list[list[TableId]] = []

    def shared(self, tables: Sequence[TableId], most: int) -> list[list[TableId]]:
        """Return the tables in groups, ``most`` of them or one for each table. Pure but for remembering them."""
        there, taken = set(tables), {table for group in self._groups for table in group}
        count = min(most, len(tables))
        groups = [[table for table in group if table in there] for group in self._groups]
        groups += [[] for _ in range(count - len(groups))]
        for table in tables:
            if table not in taken:
                min(groups, key=len).append(table)
        for group in groups[count:]:  # tasks are numbered without gaps, so it is the last ones that end
            for table in group:
                min(groups[:count], key=len).append(table)
        groups = groups[:count]
        for group in groups:
            if not group:  # its tables are all gone
                group.append(max(groups, key=len).pop())
        self._groups = groups
        return [list(group) for group in groups]


def _check_topics(tables: Sequence[TableId]) -> None:
    """Raise ConnectError for two tables that would share a topic."""
    by_name: dict[str, TableId] = {}
    for table in tables:
        other = by_name.setdefault(table.table, table)
        if other != table:
            raise ConnectError(
                f"The tables {other} and {table} have the same name, and would go to the same topic. Choose one with "
                "schema.pattern, catalog.pattern, or table.include.list, and read the other one with a connector of its own."
            )
