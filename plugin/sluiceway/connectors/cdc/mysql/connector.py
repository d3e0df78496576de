"""MariaDbConnector and MySqlConnector: validation and the config of their one task."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector, SourceWatch
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.cdc.catch_up import interval_refusal, position_time
from sluiceway.connectors.cdc.ignored_options import warn_of_ignored
from sluiceway.connectors.cdc.log_watches import watch_refusal
from sluiceway.connectors.cdc.mysql.config import DEFINITION, source_config
from sluiceway.connectors.cdc.mysql.connection import ConnectionSettings, Server, in_words, is_transient
from sluiceway.connectors.cdc.mysql.converters import converters
from sluiceway.connectors.cdc.mysql.task import MariaDbSourceTask, MySqlSourceTask
from sluiceway.connectors.cdc.option_checks import add_problems
from sluiceway.errors import ConfigError, ConnectError, RetriableError, TemporaryProblem

_EXCLUSIVE = (
    ("database.include.list", "database.exclude.list"),
    ("table.include.list", "table.exclude.list"),
    ("column.include.list", "column.exclude.list"),
)
_LOG_END_SECONDS = 30.0


class BinlogConnector(SourceConnector):
    """Reads one server with one task, regardless of ``tasks.max``."""

    interval_in_order = True

    @classmethod
    def config_def(cls) -> ConfigDef:
        return DEFINITION

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        try:
            Server(source_config(config).connection).close()
        except ConnectError as error:
            text = f"Unable to connect: {error}"
            found["database.hostname"].errors.append(TemporaryProblem(text) if isinstance(error, RetriableError) else text)

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        values = super().check(config)
        for include, exclude in _EXCLUSIVE:
            if config.get(include) and config.get(exclude):
                values[exclude].errors.append(f"The '{exclude}' value is invalid: \"{include}\" is already specified")
        try:
            converters(config)
        except ConfigError as error:
            values["converters"].errors.append(str(error))
        add_problems(values, config, postgresql=False)
        return values

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "it writes the schema history topic, locks tables for its snapshot, and registers as a replica of the server"

    @classmethod
    def interval_refusal(cls, config: Mapping[str, str]) -> str:
        return interval_refusal(config)

    @classmethod
    def watch_refusal(cls, config: Mapping[str, str]) -> str:
        return watch_refusal(config)

    @classmethod
    def watch(cls, config: Mapping[str, str]) -> SourceWatch:
        return LogEnd(source_config(config).connection)

    @classmethod
    def position_time(cls, offset: Offset) -> int | None:
        return position_time(offset)

    def start(self, config: Mapping[str, str]) -> None:
        source_config(config)
        warn_of_ignored(config, DEFINITION, postgresql=False)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for _, offset in offsets:
            if offset is not None and not ("file" in offset and "pos" in offset):
                raise ConnectError("An offset must have the keys 'file' and 'pos', and 'gtids' if the server has GTIDs.")
        return True


class MariaDbConnector(BinlogConnector):
    """Captures changes of a MariaDB server."""

    task_class = MariaDbSourceTask
    java_class = "io.debezium.connector.mariadb.MariaDbConnector"
    java_task_class = "io.debezium.connector.mariadb.MariaDbConnectorTask"


class MySqlConnector(BinlogConnector):
    """Captures changes of a MySQL server."""

    task_class = MySqlSourceTask
    java_class = "io.debezium.connector.mysql.MySqlConnector"
    java_task_class = "io.debezium.connector.mysql.MySqlConnectorTask"


class LogEnd:
    """The end of a server's binary log. Only what is written moves it, and a restart of the server, which begins a new file."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = dataclasses.replace(settings, read_timeout=_LOG_END_SECONDS)
        self._server: Server | None = None

    def mark(self) -> str:
        """Return the position. Raises RetriableError, and ConnectError if the server refuses the login or has no log."""
        try:
            if self._server is None:
                self._server = Server(self._settings)
            found = self._server.position()
        except ConnectError:
            self.close()
            raise
        except Exception as error:
            self.close()
            if is_transient(error):
                host = f"{self._settings.host}:{self._settings.port}"
                raise RetriableError(f"The connection to {host} was lost while its log was watched: {error}") from error
            raise in_words(error) from error
        return f"{found.file}:{found.position} {found.gtids or ''}"

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
