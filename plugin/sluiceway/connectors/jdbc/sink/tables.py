"""Creates missing tables and adds missing columns, as far as the config allows.

With ``auto.create`` a missing table is created, with ``auto.evolve`` missing columns are added. The sink never drops, renames
or widens a column, never changes a column's type or nullability, and never changes a key.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.sink.columns import Column, Layout
from sluiceway.connectors.jdbc.sink.config import (
    AUTO_CREATE,
    AUTO_EVOLVE,
    EXACTLY_ONCE,
    FIELDS_WHITELIST,
    PK_FIELDS,
    TABLE_NAME_FORMAT,
    TABLE_TYPES,
    TOPIC_PLACEHOLDER,
    SinkOptions,
)
from sluiceway.connectors.jdbc.sink.types import column_definition
from sluiceway.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    import sqlalchemy as sa

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the database. ``engine_without_transactions`` names its storage engine if that has none.

    ``bits`` are the columns that take booleans only as the texts 0 and 1. ``unique`` are the unique keys that the database's
    upsert does not tell apart.
    """

    name: TableId
    columns: tuple[str, ...]
    view: bool = False
    engine_without_transactions: str | None = None
    bits: frozenset[str] = frozenset()
    unique: tuple[frozenset[str], ...] = ()

    def column(self, name: str) -> str | None:
        """Return the column for a field: the one of the same name, else the only one that differs by case alone."""
        if name in self.columns:
            return name
        alike = [column for column in self.columns if column.casefold() == name.casefold()]
        return alike[0] if len(alike) == 1 else None


def table_of(dialect: Dialect, table_format: str, topic: str) -> TableId:
    """Return the table for a topic's records. Raises ConfigError if the format does not make a table name of the topic."""
    name = table_format.replace(TOPIC_PLACEHOLDER, topic)
    try:
        return dialect.parse_table(name)
    except ConfigError as error:
        raise ConfigError(
            f"{error} The name was made of {TABLE_NAME_FORMAT}={table_format} and topic {topic}; dots separate catalog, schema "
            "and table. Rename the topic for the sink (RegexRouter), or name the table."
        ) from None


def changes(options: SinkOptions, dialect: Dialect, name: TableId, table: Table | None, layout: Layout) -> list[str]:
    """Return the statements that let a table take what a layout writes. No I/O.

    Raises ConnectError, with what to do, if the config does not allow them or the sink never makes such a change.
    """
    sql_name = dialect.qualified(name)
    if table is None:
        if not options.auto_create:
            raise ConnectError(
                f"There is no table {name}, and {AUTO_CREATE} is false. Create it, set {AUTO_CREATE}=true, or let "
                f"{TABLE_NAME_FORMAT} name another. It would be created by: {_create(dialect, sql_name, layout)}"
            )
        return [_create(dialect, sql_name, layout)]
    _check_kind(options, table)
    missing = [column for column in layout.columns if table.column(column.name) is None]
    if not missing:
        return []
    for column in missing:
        if column.key:
            raise ConnectError(
                f"Table {name} has no column {column.name}, which {PK_FIELDS} makes part of the primary key; keys are never "
                f"changed. It has {', '.join(table.columns)}."
            )
    added = [dialect.add_column(sql_name, column.name, _addition(dialect, column)) for column in missing]
    if not options.auto_evolve:
        raise ConnectError(
            f"Table {name} has no column for {', '.join(column.name for column in missing)}, and {AUTO_EVOLVE} is false. Set "
            f"{AUTO_EVOLVE}=true, leave fields out with {FIELDS_WHITELIST}, or add what is missing: {'; '.join(added)}"
        )
    if table.view:
        raise ConnectError(
            f"{name} is a view without a column for {', '.join(column.name for column in missing)}; "
            "columns are only added to tables."
        )
    return added


def _create(dialect: Dialect, sql_name: str, layout: Layout) -> str:
    definitions = [
        (column.name, column_definition(dialect, column.name, column.schema, key=column.key)) for column in layout.columns
    ]
    return dialect.create_table(sql_name, definitions, layout.names[: layout.keys])


def _addition(dialect: Dialect, column: Column) -> str:
    """Return the definition of a column to add: nullable without a default, because existing rows have no value."""
    schema = column.schema
    required = not schema.optional and schema.default is None
    return column_definition(dialect, column.name, schema.replace(optional=True) if required else schema)


def _check_kind(options: SinkOptions, table: Table) -> None:
    if not (options.views if table.view else options.tables):
        kind = "VIEW" if table.view else "TABLE"
        raise ConnectError(f"{table.name} is a {kind.lower()}, and {TABLE_TYPES} does not name {kind}.")
    if options.exactly_once and table.engine_without_transactions is not None:
        raise ConnectError(
            f"Table {table.name} is stored by {table.engine_without_transactions}, which has no transactions, so records cannot "
            f"be applied exactly once. Make it an InnoDB table, or set {EXACTLY_ONCE}=false."
        )


class Tables:
    """Caches the tables that a task writes to, for one connection; reads a table's columns again after each change."""

    def __init__(
        self,
        options: SinkOptions,
        dialect: Dialect,
        connection: sa.Connection,
        execute: Callable[[str], object],
        end: Callable[[], object],
    ) -> None:
        """``execute`` runs a statement in a transaction of its own; ``end`` ends the transaction that reads the catalog."""
        self._options = options
        self._dialect = dialect
        self._connection = connection
        self._execute = execute
        self._end = end
        self._known: dict[TableId, Table] = {}

    def prepare(self, name: TableId, layout: Layout, *, create: bool = True) -> Table | None:
        """Return a table that takes what a layout writes, after creating or extending it if necessary.

        Returns None if it does not exist and ``create`` is False. Raises ConnectError, and the database's errors.
        """
        table = self.find(name)
        if table is None and not create:
            return None
        statements = changes(self._options, self._dialect, name, table, layout)
        if statements:
            table = self._change(name, layout, statements)
        if table is None:
            raise ConnectError(f"Table {name} was dropped while it was being changed. Restart the task once it exists.")
        self._known[name] = table
        return table

    def find(self, name: TableId) -> Table | None:
        """Return a table as it is; None if it does not exist."""
        return self._known.get(name) or self._read(name)

    def _change(self, name: TableId, layout: Layout, statements: Sequence[str]) -> Table | None:
        for number, sql in enumerate(statements):
            try:
                self._execute(sql)
                log.info("Changed the database: %s", sql)
            except Exception:
                # Another task may have made some or all of the changes first.
                table = self._read(name)
                left = changes(self._options, self._dialect, name, table, layout)
                if left == list(statements[number:]):
                    raise
                return self._change(name, layout, left) if left else table
        return self._read(name)

    def _read(self, name: TableId) -> Table | None:
        dialect = self._dialect
        try:
            columns = dialect.columns(self._connection, name)
            if not columns:
                return None
            kind = dialect.table_kind(self._connection, name)
            bits = frozenset(column.name for column in columns if dialect.stores_booleans_as_bits(column))
            unique = tuple(dialect.unique_keys(self._connection, name))
            return Table(name, tuple(column.name for column in columns), *kind, bits, unique)
        finally:
            self._end()
