"""Which tables of a database are meant, and what columns they have."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.dialects.base import Dialect, TableId
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import sqlalchemy as sa


@dataclass(frozen=True, slots=True)
class TableSelection:
    """What ``table.whitelist``, ``table.include.list`` and their like ask for.

    Whitelists and blacklists hold names, with or without catalog and schema; include and exclude lists hold regular
    expressions that match full names. ``catalog`` and ``schema`` are JDBC patterns (``%`` for anything, ``_`` for one character).
    """

    types: tuple[str, ...] = ("TABLE",)
    catalog: str | None = None
    schema: str | None = None
    whitelist: tuple[str, ...] = ()
    blacklist: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def chosen(self, tables: Sequence[TableId], dialect: Dialect) -> list[TableId]:
        """Return those of the tables that are asked for, in order. Pure."""
        takes = [_like(self.catalog, 0), _like(self.schema, 1)]
        if self.whitelist:
            named = [dialect.parse_table(name) for name in self.whitelist]
            takes.append(lambda table: any(_means(name, table) for name in named))
        if self.blacklist:
            refused = [dialect.parse_table(name) for name in self.blacklist]
            takes.append(lambda table: not any(_means(name, table) for name in refused))
        if self.include:
            included = [re.compile(pattern) for pattern in self.include]
            takes.append(lambda table: _matches(included, table))
        if self.exclude:
            excluded = [re.compile(pattern) for pattern in self.exclude]
            takes.append(lambda table: not _matches(excluded, table))
        return [table for table in tables if all(take(table) for take in takes)]


def find_tables(connection: sa.Connection, dialect: Dialect, selection: TableSelection) -> list[TableId]:
    """Return the tables that there are and that are asked for."""
    return selection.chosen(dialect.list_tables(connection, selection.types), dialect)


def find_table(connection: sa.Connection, dialect: Dialect, table: TableId) -> list[Column] | None:
    """Return a table's columns, None if there is no such table."""
    return dialect.columns(connection, table) or None


def columns_of(connection: sa.Connection, dialect: Dialect, table: TableId) -> list[Column]:
    """Return a table's columns; raises ConnectError if there is no such table."""
    columns = find_table(connection, dialect, table)
    if columns is None:
        raise ConnectError(f"There is no table {table}, or this user may not see it.")
    return columns


def _like(pattern: str | None, part: int) -> Callable[[TableId], bool]:
    if not pattern:
        return lambda _table: True
    expression = re.compile("".join({"%": ".*", "_": "."}.get(char, re.escape(char)) for char in pattern))
    return lambda table: expression.fullmatch(table[part] or "") is not None


def _means(name: TableId, table: TableId) -> bool:
    """Whether a name, which may leave out catalog and schema, is that table's."""
    return name.table == table.table and all(mine is None or mine == its for mine, its in zip(name[:2], table[:2], strict=True))


def _matches(patterns: Sequence[re.Pattern[str]], table: TableId) -> bool:
    names = {str(table), ".".join(part for part in table[1:] if part), table.table}
    return any(pattern.fullmatch(name) for pattern in patterns for name in names)
