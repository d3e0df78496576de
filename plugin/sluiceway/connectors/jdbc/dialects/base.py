"""What every dialect says: names in SQL, and the tables and columns that there are. Column types to create: ``sink_types``."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sluiceway.connectors.jdbc.columns import Column, ColumnType
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    import sqlalchemy as sa


MARK = "\0"
"""A parameter's place in SQL that is not whole yet; no SQL has one."""


class TableId(NamedTuple):
    """A table's full name. A part is None where the database has none, or where its default is meant."""

    catalog: str | None
    schema: str | None
    table: str

    def __str__(self) -> str:
        return ".".join(part for part in self if part)


class Dialect(abc.ABC):
    """One database's SQL. Holds no connection; used on the driver, the executors and the API server."""

    name: ClassVar[str]
    quote_character: ClassVar[str] = '"'
    marker: ClassVar[str] = "%s"
    """What stands for a parameter in the driver's SQL."""

    def __init__(self, *, quote: bool = True) -> None:
        self._quote = quote

    # --- names ---

    def quote(self, identifier: str) -> str:
        """Return an identifier as it is written in SQL."""
        if not self._quote:
            return identifier
        q = self.quote_character
        return q + identifier.replace(q, q + q) + q

    def qualified(self, table: TableId) -> str:
        """Return a table's name as it is written in SQL."""
        return ".".join(self.quote(part) for part in table if part)

    def with_parameters(self, sql: str) -> str:
        """Return SQL as the driver wants it, its ``MARK`` made into parameters: one that writes them as %s takes no other %."""
        if self.marker != "?":
            sql = sql.replace("%", "%%")
        return sql.replace(MARK, self.marker)

    def parse_table(self, text: str) -> TableId:
        """Return the table that ``table``, ``schema.table`` or ``catalog.schema.table`` means; parts may be quoted.

        Raises ConfigError for more parts than the database knows.
        """
        parts = split_name(text, self.quote_character)
        if not parts or len(parts) > 3 or not all(parts):
            raise ConfigError(f"{text!r} is not the name of a table: write table, schema.table or catalog.schema.table.")
        padded = [None] * (3 - len(parts)) + parts
        return self.table_id(padded[0], padded[1], parts[-1])

    def table_id(self, catalog: str | None, schema: str | None, table: str) -> TableId:
        """Return a table id with the parts that this database has."""
        return TableId(catalog, schema, table)

    # --- the database ---

    def prepare(self, connection: Any) -> None:  # noqa: B027 (most need nothing)
        """Set up a new connection of the Python driver."""

    @abc.abstractmethod
    def list_tables(self, connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
        """Return all tables of these types (``TABLE``, ``VIEW``, ``MATERIALIZED VIEW``, ``PARTITIONED TABLE``, ...) but the
        database's own.
        """

    @abc.abstractmethod
    def columns(self, connection: sa.Connection, table: TableId) -> list[Column]:
        """Return a table's columns in order, none if there is no such table (any more)."""

    @abc.abstractmethod
    def query_columns(self, connection: sa.Connection, query: str) -> list[Column]:
        """Return the columns of a query, which is asked for no rows."""

    @abc.abstractmethod
    def column_type(self, text: str) -> ColumnType:
        """Return the type that the database calls this."""


def split_name(text: str, quote: str) -> list[str]:
    """Return the parts of a dotted name; a quoted part may have dots in it."""
    parts, part, quoted, i = [], "", False, 0
    while i < len(text):
        char = text[i]
        if char == quote and quoted and text[i + 1 : i + 2] == quote:
            part, i = part + quote, i + 1
        elif char == quote:
            quoted = not quoted
        elif char == "." and not quoted:
            parts.append(part)
            part = ""
        else:
            part += char
        i += 1
    return [*parts, part]
