"""What tables there are, what is missing from them, and what is done about that: created, added, or refused.

The policy: with ``auto.create`` a missing table is created, with ``auto.evolve`` missing columns are added. Nothing else
about a table is ever changed. No column is dropped, renamed, widened or given another type or nullability, and no key.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.sink.columns import Column, Layout
from sluiceway.connectors.jdbc.sink.config import (
    AUTO_CREATE,
    AUTO_EVOLVE,
    EXACTLY_ONCE,
    FIELDS_WHITELIST,
    PK_FIELDS,
    TABLE_NAME_FORMAT,
    TABLE_TYPES,
    SinkOptions,
)
from sluiceway.connectors.jdbc.sink.statements import Statements
from sluiceway.connectors.jdbc.sink.types import column_definition
from sluiceway.connectors.jdbc.url import MYSQL, POSTGRESQL, SQLITE
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import sqlalchemy as sa

log = logging.getLogger(__name__)

_TRANSACTIONAL = frozenset({"innodb", "rocksdb", "tokudb", "ndbcluster", "xpand"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is in the database. ``engine`` is MySQL's, for how it stores it; ``bits`` are the columns of
    PostgreSQL's bit(1), which takes no boolean.
    """

    name: TableId
    columns: tuple[str, ...]
    view: bool = False
    engine: str | None = None
    bits: frozenset[str] = frozenset()

    def column(self, name: str) -> str | None:
        """Return the column that a field belongs to: of the same name, else the only one that differs by letters' case alone."""
        if name in self.columns:
            return name
        alike = [column for column in self.columns if column.casefold() == name.casefold()]
        return alike[0] if len(alike) == 1 else None


def changes(options: SinkOptions, statements: Statements, name: TableId, table: Table | None, layout: Layout) -> list[str]:
    """Return the statements that make a table fit to take what a layout writes. Pure.

    Raises ConnectError where that is not allowed, or nothing that is ever done, saying what to do instead.
    """
    sql_name = statements.dialect.qualified(name)
    if table is None:
        if not options.auto_create:
            raise ConnectError(
                f"There is no table {name}, and {AUTO_CREATE} is false. Create it, set {AUTO_CREATE}=true, or let "
                f"{TABLE_NAME_FORMAT} name another. It would be made by: {_create(statements, sql_name, layout)}"
            )
        return [_create(statements, sql_name, layout)]
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
    added = [statements.add_column(sql_name, column.name, _addition(statements.dialect.name, column)) for column in missing]
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


def _create(statements: Statements, sql_name: str, layout: Layout) -> str:
    definitions = [
        (column.name, column_definition(statements.dialect.name, column.name, column.schema, key=column.key))
        for column in layout.columns
    ]
    return statements.create(sql_name, definitions, layout.names[: layout.keys])


def _addition(dialect: str, column: Column) -> str:
    """Return the definition of a column that is added: rows that are there already have no value, so it may be null."""
    schema = column.schema
    required = not schema.optional and schema.default is None
    return column_definition(dialect, column.name, schema.replace(optional=True) if required else schema)


def _check_kind(options: SinkOptions, table: Table) -> None:
    if not (options.views if table.view else options.tables):
        kind = "VIEW" if table.view else "TABLE"
        raise ConnectError(f"{table.name} is a {kind.lower()}, and {TABLE_TYPES} does not name {kind}.")
    if options.exactly_once and table.engine is not None and table.engine.lower() not in _TRANSACTIONAL:
        raise ConnectError(
            f"Table {table.name} is stored by {table.engine}, which has no transactions, so records cannot be applied exactly "
            f"once. Make it an InnoDB table, or set {EXACTLY_ONCE}=false."
        )


class Tables:
    """The tables that a task writes to, looked at once and again after each change. For one connection."""

    def __init__(
        self,
        options: SinkOptions,
        statements: Statements,
        connection: sa.Connection,
        execute: Callable[[str], object],
        end: Callable[[], object],
    ) -> None:
        """``execute`` carries out SQL by itself and commits; ``end`` ends the transaction of looking."""
        self._options = options
        self._statements = statements
        self._connection = connection
        self._execute = execute
        self._end = end
        self._known: dict[TableId, Table] = {}

    def fit(self, name: TableId, layout: Layout, *, create: bool = True) -> Table | None:
        """Return a table that takes what a layout writes, created or evolved if need be.

        None, if it is not there and ``create`` is False. Raises ConnectError, and what the database raises.
        """
        table = self._known.get(name) or self._look(name)
        if table is None and not create:
            return None
        statements = changes(self._options, self._statements, name, table, layout)
        if statements:
            table = self._change(name, layout, statements)
        assert table is not None  # noqa: S101 (it is there, or was made)
        self._known[name] = table
        return table

    def _change(self, name: TableId, layout: Layout, statements: Sequence[str]) -> Table | None:
        for number, sql in enumerate(statements):
            try:
                self._execute(sql)
                log.info("Changed the database: %s", sql)
            except Exception:
                # Another task may have been quicker, with all of it or with some.
                table = self._look(name)
                left = changes(self._options, self._statements, name, table, layout)
                if left == list(statements[number:]):
                    raise
                return self._change(name, layout, left) if left else table
        return self._look(name)

    def _look(self, name: TableId) -> Table | None:
        dialect = self._statements.dialect
        try:
            columns = dialect.columns(self._connection, name)
            if not columns:
                return None
            kind, engine = self._kind(name)
            bits = frozenset(column.name for column in columns if column.type_text == "bit(1)" and dialect.name == POSTGRESQL)
            return Table(name, tuple(column.name for column in columns), kind, engine, bits)
        finally:
            self._end()

    def _kind(self, name: TableId) -> tuple[bool, str | None]:
        """Return whether it is a view, and by what MySQL stores it."""
        dialect, ask = self._statements.dialect, self._connection.exec_driver_sql
        if dialect.name == MYSQL:
            sql = (
                "select table_type, engine from information_schema.tables "
                "where table_schema = coalesce(%s, database()) and table_name = %s"
            )
            kind, engine = ask(sql, (name.catalog, name.table)).one()
            return "VIEW" in kind, engine
        if dialect.name == SQLITE:
            return ask("select type from sqlite_master where name = ?", (name.table,)).scalar() == "view", None
        kind = ask(
            "select relkind::text from pg_catalog.pg_class where oid = pg_catalog.to_regclass(%s)", (dialect.qualified(name),)
        )
        return kind.scalar() in ("v", "m"), None
