"""Defines the config keys of the MariaDB and MySQL connectors, and parses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluiceway.config.definition import ConfigDef, ConfigValue, Validator
from sluiceway.config.validators import Check
from sluiceway.connectors.cdc.config import CommonConfig, common_config
from sluiceway.connectors.cdc.filters import Matcher, TableId, filter_of, table_filter_of
from sluiceway.connectors.cdc.keys import (
    BOOLEAN,
    HIGH,
    INT,
    LONG,
    LOW,
    MEDIUM,
    OVERRIDES,
    PATTERNS,
    REQUIRED,
    STRING,
    Entry,
    config_def,
    invalid,
    one_of,
)
from sluiceway.connectors.cdc.mysql.connection import BUILT_IN_DATABASES, ConnectionSettings
from sluiceway.connectors.cdc.mysql.ddl_filter import DDL_FILTER
from sluiceway.connectors.cdc.naming_strategies import NAMING_STRATEGY, NAMING_STRATEGY_DOC
from sluiceway.connectors.cdc.without_effect import OF_BINLOG, UNREAD_IN_BINLOG
from sluiceway.errors import ConnectError

HISTORY = "schema.history.internal."

_OWN: list[Entry] = [
    ("database.port", INT, 3306, HIGH, "The port of the database server."),
    ("database.server.id", LONG, None, HIGH, "The id of this connector among all replicas of the server, which must be unique."),
    ("database.server.id.offset", LONG, 10000, HIGH, "An offset of the id for further connections."),
    ("database.include.list", STRING, None, HIGH, "Regular expressions of the databases to capture; all others are left out."),
    ("database.exclude.list", STRING, None, MEDIUM, "Regular expressions of the databases not to capture."),
    (
        "database.ssl.mode",
        STRING,
        "preferred",
        MEDIUM,
        "Whether connections are encrypted: disabled, preferred, required, verify_ca, verify_identity.",
    ),
    ("connect.timeout.ms", INT, 30000, MEDIUM, "Milliseconds to wait for a connection."),
    ("connect.keep.alive", BOOLEAN, True, LOW, "Whether a lost connection to the log is opened again."),
    ("connect.keep.alive.interval.ms", LONG, 60000, LOW, "Milliseconds between checks of the connection to the log."),
    (
        "snapshot.mode",
        STRING,
        "initial",
        LOW,
        "When to read the tables: initial, always, initial_only, no_data, never, when_needed, recovery, configuration_based.",
    ),
    ("snapshot.locking.mode", STRING, "minimal", LOW, "The locks of snapshots."),
    ("snapshot.query.mode", STRING, "select_all", LOW, "How snapshots read tables: select_all."),
    (
        "time.precision.mode",
        STRING,
        "adaptive_time_microseconds",
        MEDIUM,
        "The form of dates and times: adaptive_time_microseconds, connect, isostring, microseconds, nanoseconds.",
    ),
    ("bigint.unsigned.handling.mode", STRING, "long", MEDIUM, "The form of BIGINT UNSIGNED: long or precise."),
    ("enable.time.adjuster", BOOLEAN, True, MEDIUM, "Whether years of two digits are years from 1970 to 2069."),
    ("include.schema.changes", BOOLEAN, True, MEDIUM, "Whether DDL statements have records in the topic of the prefix's name."),
    (
        "include.query",
        BOOLEAN,
        False,
        MEDIUM,
        "Whether records have the statement that made the change; needs binlog_annotate_row_events.",
    ),
    (
        NAMING_STRATEGY,
        STRING,
        "io.debezium.schema.DefaultTopicNamingStrategy",
        MEDIUM,
        NAMING_STRATEGY_DOC,
    ),
    (
        "gtid.source.includes",
        STRING,
        None,
        HIGH,
        "Regular expressions of the GTID sources to read: servers' UUIDs in MySQL, domain-server, as 0-1, in MariaDB.",
    ),
    ("gtid.source.excludes", STRING, None, MEDIUM, "Regular expressions of the GTID sources not to read."),
    (
        "gtid.source.filter.dml.events",
        BOOLEAN,
        True,
        MEDIUM,
        "Whether rows of other GTID sources are left out; else the log need only have the included ones at the start.",
    ),
    (
        "inconsistent.schema.handling.mode",
        STRING,
        "fail",
        MEDIUM,
        "What to do with rows of a table whose structure is unknown: fail, warn, skip.",
    ),
    (
        "event.deserialization.failure.handling.mode",
        STRING,
        "fail",
        MEDIUM,
        "What to do with an event that cannot be read: fail, warn, ignore.",
    ),
    (
        "sluiceway.cdc.statements",
        STRING,
        "warn",
        MEDIUM,
        "What to do with a statement that changes rows of captured tables and is in the log instead of the rows: warn or fail.",
    ),
    (
        "binlog.buffer.size",
        INT,
        0,
        MEDIUM,
        "Above 0, rows that a transaction takes back are not sent. The number does not matter: large transactions are in a file.",
    ),
    ("use.nongraceful.disconnect", BOOLEAN, False, LOW, "Whether connections are closed without waiting."),
    (
        "schema.history.internal",
        STRING,
        "io.debezium.storage.kafka.history.KafkaSchemaHistory",
        LOW,
        "The class that keeps the schema history; only the default.",
    ),
    (f"{HISTORY}kafka.bootstrap.servers", STRING, None, HIGH, "The brokers of the schema history topic."),
    (f"{HISTORY}kafka.topic", STRING, None, HIGH, "The topic of the schema history, in Debezium's format."),
    (f"{HISTORY}store.only.captured.tables.ddl", BOOLEAN, False, LOW, "Whether the schema history has captured tables only."),
    (
        f"{HISTORY}store.only.captured.databases.ddl",
        BOOLEAN,
        False,
        LOW,
        "Whether the schema history has captured databases only.",
    ),
    (
        f"{HISTORY}skip.unparseable.ddl",
        BOOLEAN,
        False,
        LOW,
        "What an unknown statement is: never an error.",
    ),
    (
        f"{HISTORY}ddl.filter",
        STRING,
        DDL_FILTER,
        LOW,
        "Regular expressions of statements that are neither recorded nor reported.",
    ),
]

_MODES = ("always", "never", "initial_only", "configuration_based", "when_needed", "initial", "custom", "no_data", "recovery")


def _required_number(name: str, value: ConfigValue) -> None:
    if value is None:
        raise invalid(name, "A value is required")


_VALIDATORS: dict[str, Validator] = {
    "database.server.id": Check(_required_number, "a number"),
    "database.include.list": PATTERNS,
    "database.exclude.list": PATTERNS,
    "gtid.source.includes": PATTERNS,
    "gtid.source.excludes": PATTERNS,
    "snapshot.mode": one_of(*_MODES),
    "snapshot.locking.mode": one_of(
        "minimal", "minimal_percona", "minimal_percona_no_table_locks", "minimal_at_least_once", "extended", "none", "custom"
    ),
    "time.precision.mode": one_of("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"),
    "bigint.unsigned.handling.mode": one_of("precise", "long"),
    "event.deserialization.failure.handling.mode": one_of("skip", "warn", "fail", "ignore"),
    "inconsistent.schema.handling.mode": one_of("skip", "warn", "fail", "ignore"),
    "sluiceway.cdc.statements": one_of("warn", "fail"),
    f"{HISTORY}kafka.bootstrap.servers": REQUIRED,
    f"{HISTORY}kafka.topic": REQUIRED,
}

DEFINITION: ConfigDef = config_def([*_OWN, *UNREAD_IN_BINLOG], _VALIDATORS, "Connector", OF_BINLOG)


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """The parsed settings of a task.

    ``gtid_sources`` tells whether a GTID source is included, None if all are; ``filters_rows`` whether others' rows are left out.
    """

    common: CommonConfig
    values: Mapping[str, Any]
    connection: ConnectionSettings
    server_id: int
    databases: Matcher
    tables: Matcher
    history: Mapping[str, str]
    gtid_sources: Matcher | None
    filters_rows: bool

    def captures_database(self, database: str) -> bool:
        return database.lower() not in BUILT_IN_DATABASES and self.databases(database)

    def captures(self, table: TableId) -> bool:
        return self.captures_database(table.schema) and self.tables(str(table))

    def check_names(self, *, lower_case: bool) -> None:
        """Raise ConnectError for names of tables that a server with all names in lower case does not have.

        Lists of patterns ignore case; these names do not.
        """
        named = {"signal.data.collection": [self.common.signals.table or ""], OVERRIDES: self.common.snapshots.select_overrides}
        for key, names in named.items():
            for name in names:
                if lower_case and name != name.lower():
                    raise ConnectError(
                        f"{key} names {name}, but this server has all names in lower case (lower_case_table_names). "
                        f"Write {name.lower()} in {key} and in the keys that begin with it."
                    )

    def flag(self, name: str) -> bool:
        return bool(self.values[name])

    def choice(self, name: str) -> str:
        return str(self.values[name] or "").strip().lower()

    @property
    def looks_ahead(self) -> bool:
        """Whether the end of a transaction is read before its rows are sent."""
        return self.common.correct or int(str(self.values["binlog.buffer.size"])) > 0

    @property
    def only_captured_tables(self) -> bool:
        return self.flag(f"{HISTORY}store.only.captured.tables.ddl")

    @property
    def only_captured_databases(self) -> bool:
        return self.flag(f"{HISTORY}store.only.captured.databases.ddl")


def source_config(config: Mapping[str, str]) -> SourceConfig:
    """Parse a valid config."""
    values = DEFINITION.parse(config)

    def text(name: str) -> str | None:
        value = values[name]
        return None if value is None else str(value)

    return SourceConfig(
        common=common_config(DEFINITION, config),
        values=values,
        connection=ConnectionSettings.of(values),
        server_id=int(str(values["database.server.id"])),
        databases=filter_of(text("database.include.list"), text("database.exclude.list")),
        tables=table_filter_of(text("table.include.list"), text("table.exclude.list")),
        gtid_sources=_gtid_sources(text("gtid.source.includes"), text("gtid.source.excludes")),
        filters_rows=bool(values["gtid.source.filter.dml.events"]),
        history={key.removeprefix(HISTORY): value for key, value in config.items() if key.startswith(HISTORY)},
    )


def _gtid_sources(include: str | None, exclude: str | None) -> Matcher | None:
    return filter_of(include, exclude) if include or exclude else None
