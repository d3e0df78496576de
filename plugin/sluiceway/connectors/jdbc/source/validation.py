"""What validation of a JDBC source's config finds out beyond single keys, with a look into the database. API server or driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.config.definition import ValidatedValue
from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.connection_keys import CONNECTION_PASSWORD, CONNECTION_USER
from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.login_check import check_login
from sluiceway.connectors.jdbc.source.columns import check_not_null, check_types, found_column, incrementing_column
from sluiceway.connectors.jdbc.source.config import (
    CONFIG,
    INCREMENTING_COLUMN_NAME,
    MODE,
    QUERY,
    TABLE_BLACKLIST,
    TABLE_WHITELIST,
    TIMESTAMP_COLUMN_NAME,
    SourceConfig,
    misfits,
    source_config,
)
from sluiceway.connectors.jdbc.source.errors import explained
from sluiceway.connectors.jdbc.url import CONNECTION_URL
from sluiceway.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    import sqlalchemy as sa

_MOST_TABLES = 100  # whose columns are looked at


def validate(config: Mapping[str, str]) -> dict[str, ValidatedValue]:
    """Return what is wrong with each key, and the tables to choose from."""
    found = CONFIG.validate(config)
    clashes = {} if found[MODE].errors else misfits({name: each.value for name, each in found.items()})
    for key, message in clashes.items():
        found[key].errors.append(str(ConfigError(key, config.get(key, ""), message)))
    if not any(each.errors for each in found.values()):
        _look_into_the_database(source_config(config), found)
    return found


def _look_into_the_database(config: SourceConfig, found: dict[str, ValidatedValue]) -> None:
    def look(database: Database, connection: sa.Connection) -> None:
        tables = database.dialect.list_tables(connection, config.selection.types)
        for key in (TABLE_WHITELIST, TABLE_BLACKLIST):
            found[key].recommended_values = [str(table) for table in tables]
        if config.query:
            _ask(database, lambda: database.dialect.query_columns(connection, config.query), found[QUERY])
            return
        for table in config.selection.chosen(tables, database.dialect)[:_MOST_TABLES]:
            if not _check_table(config, table, database.dialect.columns(connection, table), found):
                return

    check_login(config.connection, found, (CONNECTION_URL, CONNECTION_USER, CONNECTION_PASSWORD), look)


def _check_table(config: SourceConfig, table: TableId, columns: Sequence[Column], found: dict[str, ValidatedValue]) -> bool:
    """Note what is wrong with a table's columns; True if nothing is."""
    place, by_name = f"table {table}", {column.name: column for column in columns}
    try:
        if config.uses_incrementing:
            number = incrementing_column(config, columns, place)
            check_not_null(config, columns, number, (), place)
            check_types(by_name, number, (), place)
    except ConnectError as error:
        found[INCREMENTING_COLUMN_NAME].errors.append(str(error))
        return False
    try:
        stamps = [found_column(list(by_name), name, place) for name in config.timestamp_columns]
        check_not_null(config, columns, "", stamps, place)
        check_types(by_name, "", stamps, place)
    except ConnectError as error:
        found[TIMESTAMP_COLUMN_NAME].errors.append(str(error))
        return False
    return True


def _ask(database: Database, question: Callable[[], object], value: ValidatedValue) -> None:
    """Note what the database has against a query."""
    try:
        question()
    except Exception as error:
        told = explained(error, database, "The query")
        if told is error:
            raise
        value.errors.append(str(told))
