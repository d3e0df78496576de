"""Validates a JDBC source's config against the database: the login, tables and columns.

Runs on the REST API and on the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway.config.definition import ValidatedValue
from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.connection_keys import CONNECTION_PASSWORD, CONNECTION_USER
from sluiceway.connectors.jdbc.dialects import dialect_class
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.login_check import check_login
from sluiceway.connectors.jdbc.source.columns import check_not_null, check_types, find_column, incrementing_column
from sluiceway.connectors.jdbc.source.config import SourceConfig, source_config
from sluiceway.connectors.jdbc.source.errors import as_connect_error
from sluiceway.connectors.jdbc.source.keys import (
    INCREMENTING_COLUMN_NAME,
    QUERY,
    TABLE_BLACKLIST,
    TABLE_WHITELIST,
    TIMESTAMP_COLUMN_NAME,
)
from sluiceway.connectors.jdbc.url import CONNECTION_URL
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import sqlalchemy as sa

_MAX_TABLES = 100  # whose columns are checked


def try_database(config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
    """Add errors and recommended values: the tables of the database."""
    source = source_config(config)
    if missing := _missing_file(source):
        found[CONNECTION_URL].errors.append(missing)
    else:
        _check_database(source, found)


def _missing_file(config: SourceConfig) -> str | None:
    """Return an error if the database is a file that does not exist: SQLite would create an empty one."""
    url = config.connection.url
    if not dialect_class(url.dialect).local_file or url.database == ":memory:" or Path(url.database).exists():
        return None
    return (
        f"The database file {url.database} does not exist. Check {CONNECTION_URL}: it needs the path as seen from here, and "
        "drivers and executors must find the file there, too."
    )


def _check_database(config: SourceConfig, found: Mapping[str, ValidatedValue]) -> None:
    def check(database: Database, connection: sa.Connection) -> None:
        tables = database.dialect.list_tables(connection, config.selection.types)
        for key in (TABLE_WHITELIST, TABLE_BLACKLIST):
            found[key].recommended_values = [str(table) for table in tables]
        if config.query:
            _check_query(database, connection, config.query, found[QUERY])
            return
        for table in config.selection.select(tables, database.dialect)[:_MAX_TABLES]:
            if not _check_table(config, table, database.dialect.columns(connection, table), found):
                return

    check_login(config.connection, found, (CONNECTION_URL, CONNECTION_USER, CONNECTION_PASSWORD), check)


def _check_table(config: SourceConfig, table: TableId, columns: Sequence[Column], found: Mapping[str, ValidatedValue]) -> bool:
    """Add the errors of a table's columns; return whether there are none."""
    label, by_name = f"table {table}", {column.name: column for column in columns}
    try:
        if config.uses_incrementing:
            number = incrementing_column(config, columns, label)
            check_not_null(config, columns, number, (), label)
            check_types(by_name, number, (), label)
    except ConnectError as error:
        found[INCREMENTING_COLUMN_NAME].errors.append(str(error))
        return False
    try:
        stamps = [find_column(list(by_name), name, label) for name in config.timestamp_columns]
        check_not_null(config, columns, "", stamps, label)
        check_types(by_name, "", stamps, label)
    except ConnectError as error:
        found[TIMESTAMP_COLUMN_NAME].errors.append(str(error))
        return False
    return True


def _check_query(database: Database, connection: sa.Connection, query: str, value: ValidatedValue) -> None:
    """Add the database's error for a query."""
    try:
        database.dialect.query_columns(connection, query)
    except Exception as error:
        converted = as_connect_error(error, database, "The query")
        if converted is error:
            raise
        value.errors.append(str(converted))
