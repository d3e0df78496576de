"""What validation of a JDBC source's config finds out beyond single keys, with a look into the database. API server or driver."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from sluiceway.config.definition import ValidatedValue
from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.connection_keys import CONNECTION_PASSWORD, CONNECTION_USER
from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.source_columns import check_not_null, found_column, incrementing_column
from sluiceway.connectors.jdbc.source_errors import explained
from sluiceway.connectors.jdbc.source_keys import (
    CONFIG,
    INCREMENTING_COLUMN_NAME,
    QUERY,
    TABLE_BLACKLIST,
    TABLE_WHITELIST,
    TIMESTAMP_COLUMN_NAME,
    SourceConfig,
    misfits,
    source_config,
)
from sluiceway.connectors.jdbc.url import CONNECTION_URL
from sluiceway.errors import ConnectError, MissingToolError, RetriableError

_MOST_TABLES = 100  # whose columns are looked at


def validate(config: Mapping[str, str]) -> dict[str, ValidatedValue]:
    """Return what is wrong with each key, and the tables to choose from."""
    found = CONFIG.validate(config)
    for key, message in misfits({name: each.value for name, each in found.items()}).items():
        found[key].errors.append(f"Invalid value {found[key].value} for configuration {key}: {message}")
    if not any(each.errors for each in found.values()):
        _look_into_the_database(source_config(config), found)
    return found


def _look_into_the_database(config: SourceConfig, found: dict[str, ValidatedValue]) -> None:
    database = Database(dataclasses.replace(config.connection, attempts=1))
    try:
        with database.connect() as connection:
            tables = database.dialect.list_tables(connection, config.selection.types)
            names = [str(table) for table in tables]
            for key in (TABLE_WHITELIST, TABLE_BLACKLIST):
                found[key].recommended_values = list(names)
            if config.query:
                _ask(database, lambda: database.dialect.query_columns(connection, config.query), found[QUERY])
                return
            for table in config.selection.chosen(tables, database.dialect)[:_MOST_TABLES]:
                if not _check_table(config, table, database.dialect.columns(connection, table), found):
                    return
    except MissingToolError as error:
        found[CONNECTION_URL].errors.append(str(error))
    except RetriableError as error:
        found[CONNECTION_URL].errors.append(str(error))
    except ConnectError as error:
        for key in (CONNECTION_URL, CONNECTION_USER, CONNECTION_PASSWORD):
            found[key].errors.append(str(error))
    finally:
        database.dispose()


def _check_table(config: SourceConfig, table: TableId, columns: Sequence[Column], found: dict[str, ValidatedValue]) -> bool:
    """Note what is wrong with a table's columns; True if nothing is."""
    place, names = f"table {table}", [column.name for column in columns]
    number = ""
    try:
        if config.uses_incrementing:
            number = incrementing_column(config, columns, place)
            check_not_null(config, columns, number, (), place)
    except ConnectError as error:
        found[INCREMENTING_COLUMN_NAME].errors.append(str(error))
        return False
    try:
        stamps = [found_column(names, name, place) for name in config.timestamp_columns]
        check_not_null(config, columns, "", stamps, place)
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
