"""The JDBC sink: records become rows of a database's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from sluiceway.api import SinkConnector, TopicPartition
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.jdbc.connection_keys import CONNECTION_PASSWORD, CONNECTION_USER
from sluiceway.connectors.jdbc.sink.config import SINK, SinkOptions, add_clashes
from sluiceway.connectors.jdbc.sink.session import Session
from sluiceway.connectors.jdbc.sink.task import JdbcSinkTask
from sluiceway.connectors.jdbc.url import CONNECTION_URL, SQLITE
from sluiceway.errors import ConnectError


class JdbcSinkConnector(SinkConnector):
    """Writes the records of its topics to tables of PostgreSQL, MySQL, MariaDB or SQLite: rows are added, changed and deleted,
    tables created and given columns. Offsets are kept in the database with the rows, so each record is applied exactly once.
    Values, and keys that are columns, need schemas.
    """

    task_class = JdbcSinkTask
    java_class = "io.confluent.connect.jdbc.JdbcSinkConnector"
    java_task_class = "io.confluent.connect.jdbc.sink.JdbcSinkTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return SINK

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        """Beside the keys, the login to a server is checked; one that is away is waited for later, so that is no error."""
        from sluiceway.connectors.jdbc.login_check import check_login

        found = add_clashes(SINK.validate(config))
        if any(each.errors for each in found.values()):
            return found
        connection = SinkOptions.of(config).connection
        if connection.url.dialect != SQLITE:  # whose file is on the executors
            check_login(connection, found, (CONNECTION_URL, CONNECTION_USER, CONNECTION_PASSWORD), may_be_away=True)
        return found

    def start(self, config: Mapping[str, str]) -> None:
        SinkOptions.of(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Set the offsets in the database, too: those are what tasks read on from. Reaches for the database."""
        for partition, offset in offsets.items():
            if offset is not None and offset < 0:
                raise ConnectError(f"The offset of {partition[0]}-{partition[1]} must not be negative, and is {offset}.")
        options = SinkOptions.of(config)
        if options.exactly_once and offsets:
            with closing(Session(options)) as session:
                session.set_offsets({TopicPartition._make(place): offset for place, offset in offsets.items()})
        return True
