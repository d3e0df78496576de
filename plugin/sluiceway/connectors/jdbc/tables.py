"""Selects tables of a database by the keys that JDBC connectors share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.own_tables import is_own_table
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import sqlalchemy as sa


@dataclass(frozen=True, slots=True)
class TableSelection:
    """The tables chosen by ``table.whitelist``, ``table.include.list`` and related keys.

    Whitelists and blacklists hold names, with or without catalog and schema. Include and exclude lists hold regular
    expressions for full names. ``catalog`` and ``schema`` are JDBC patterns (``%`` for any text, ``_`` for one character).
    Without a list of what to include, the tables that sinks create for themselves are left out.
    """

    types: tuple[str, ...] = ("TABLE",)
    catalog: str | None = None
    schema: str | None = None
    whitelist: tuple[str, ...] = ()
    blacklist: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def select(self, tables: Sequence[TableId], dialect: Dialect) -> list[TableId]:
        """Return the selected tables in their order. No I/O."""
        conditions = [_like(self.catalog, 0), _like(self.schema, 1)]
        if not self.whitelist and not self.include:
            conditions.append(lambda table: not is_own_table(table.table))
        if self.whitelist:
            listed = [dialect.parse_table(name) for name in self.whitelist]
            conditions.append(lambda table: any(_names(name, table) for name in listed))
        if self.blacklist:
            unlisted = [dialect.parse_table(name) for name in self.blacklist]
            conditions.append(lambda table: not any(_names(name, table) for name in unlisted))
        if self.include:
            included = [re.compile(pattern) for pattern in self.include]
            conditions.append(lambda table: _matches(included, table))
        if self.exclude:
            excluded = [re.compile(pattern) for pattern in self.exclude]
            conditions.append(lambda table: not _matches(excluded, table))
        return [table for table in tables if all(condition(table) for condition in conditions)]

    def missing(self, tables: Sequence[TableId], dialect: Dialect) -> list[str]:
        """Return the names and expressions to include that fit none of a database's tables. No I/O."""
        found = [name for name in self.whitelist if not any(_names(dialect.parse_table(name), table) for table in tables)]
        return found + [each for each in self.include if not any(_matches([re.compile(each)], table) for table in tables)]


def find_tables(connection: sa.Connection, dialect: Dialect, selection: TableSelection) -> list[TableId]:
    """Return the selected tables that exist in the database, without those that are read through other selected ones."""
    return selected_tables(connection, dialect, selection)[0]


def selected_tables(connection: sa.Connection, dialect: Dialect, selection: TableSelection) -> tuple[list[TableId], list[str]]:
    """Return ``find_tables``, and the names and expressions of the selection that fit no table."""
    existing = dialect.list_tables(connection, selection.types)
    tables = selection.select(existing, dialect)
    chosen = without_children(tables, dialect.parents(connection)) if len(tables) > 1 else tables
    return chosen, selection.missing(existing, dialect)


def without_children(tables: Sequence[TableId], parents: Mapping[TableId, Sequence[TableId]]) -> list[TableId]:
    """Return tables without those that have one of the others among their parents, or their parents' parents. No I/O."""

    def is_read(table: TableId) -> bool:
        return any(parent in tables or is_read(parent) for parent in parents.get(table, ()))

    return [table for table in tables if not is_read(table)]


def columns_of(connection: sa.Connection, dialect: Dialect, table: TableId) -> list[Column]:
    """Return a table's columns. Raises ConnectError if the table does not exist."""
    columns = dialect.columns(connection, table)
    if not columns:
        raise ConnectError(f"There is no table {table}, or the user has no privilege on it. Check the name and the privileges.")
    return columns


def _like(pattern: str | None, part: int) -> Callable[[TableId], bool]:
    if not pattern:
        return lambda _table: True
    expression = re.compile("".join({"%": ".*", "_": "."}.get(char, re.escape(char)) for char in pattern))
    return lambda table: expression.fullmatch(table[part] or "") is not None


def _names(name: TableId, table: TableId) -> bool:
    """Return whether a name, possibly without catalog and schema, is that of a table."""
    parts = zip(name[:2], table[:2], strict=True)
    return name.table == table.table and all(given is None or given == actual for given, actual in parts)


def _matches(patterns: Sequence[re.Pattern[str]], table: TableId) -> bool:
    names = {str(table), ".".join(part for part in table[1:] if part), table.table}
    return any(pattern.fullmatch(name) for pattern in patterns for name in names)
