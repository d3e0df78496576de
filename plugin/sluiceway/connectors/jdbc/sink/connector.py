"""The JDBC sink connector: writes records to tables of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from sluiceway.api import IntervalRepeat, SinkConnector, SinkRecord, TopicPartition
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.config.intervals import COLUMN
from sluiceway.connectors.jdbc.connection_keys import CONNECTION_PASSWORD, CONNECTION_USER
from sluiceway.connectors.jdbc.dialects import dialect_class
from sluiceway.connectors.jdbc.sink.config import (
    DELETE_ENABLED,
    FIELDS_WHITELIST,
    INSERT_MODE,
    SINK,
    InsertMode,
    SinkOptions,
    add_conflicts,
)
from sluiceway.connectors.jdbc.sink.session import Session
from sluiceway.connectors.jdbc.sink.task import JdbcSinkTask
from sluiceway.connectors.jdbc.url import CONNECTION_URL
from sluiceway.errors import ConfigError, ConnectError


class JdbcSinkConnector(SinkConnector):
    """Writes the records of its topics to tables of PostgreSQL, MySQL, MariaDB, SQLite or SQL Server: inserts, updates and
    deletes rows, creates tables and adds columns. Offsets are stored in the database with the rows, so each record is applied
    exactly once. Values, and keys that become columns, need schemas. SQL Server support is tested by its SQL only.
    """

    task_class = JdbcSinkTask
    replaces_rows = True
    java_class = "io.confluent.connect.jdbc.JdbcSinkConnector"
    java_task_class = "io.confluent.connect.jdbc.sink.JdbcSinkTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return SINK

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        from sluiceway.connectors.jdbc.login_check import check_login

        connection = SinkOptions.of(config).connection
        if not dialect_class(connection.url.dialect).local_file:
            check_login(connection, found, (CONNECTION_URL, CONNECTION_USER, CONNECTION_PASSWORD), may_be_unreachable=True)

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = add_conflicts(SINK.validate(config))
        column, fields = config.get(COLUMN), found[FIELDS_WHITELIST]
        if column and isinstance(fields.value, list) and fields.value and column not in fields.value:
            fields.errors.append(str(ConfigError(FIELDS_WHITELIST, fields.value, f"must have {column}, which {COLUMN} names")))
        return found

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str]:
        from sluiceway.connectors.jdbc.sink.preview import statements

        return statements(SinkOptions.of(config), records)

    @classmethod
    def interval_repeat(cls, config: Mapping[str, str]) -> IntervalRepeat:
        if config.get(INSERT_MODE, "").strip().lower() in (InsertMode.UPSERT.value, InsertMode.UPDATE.value):
            return IntervalRepeat.MERGES
        deletes = config.get(DELETE_ENABLED, "").strip().lower() == "true"
        return IntervalRepeat.REPLACES if config.get(COLUMN) and not deletes else IntervalRepeat.ADDS

    def start(self, config: Mapping[str, str]) -> None:
        SinkOptions.of(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Set the offsets in the database too, because tasks start from those. Connects to the database."""
        for partition, offset in offsets.items():
            if offset is not None and offset < 0:
                raise ConnectError(f"The offset of {partition[0]}-{partition[1]} must not be negative, but is {offset}.")
        options = SinkOptions.of(config)
        if options.exactly_once and offsets:
            with closing(Session(options)) as session:
                session.set_offsets({TopicPartition._make(partition): offset for partition, offset in offsets.items()})
        return True
