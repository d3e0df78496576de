"""Builds the SQL of identifiers, writes and the offsets table in standard form; dialects override what they write differently.

No I/O.
"""

# ruff: noqa: S608 (names are quoted, values are parameters)
from __future__ import annotations

import abc
import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from sluiceway.errors import ConfigError

MARK = "\0"
"""Stands for a parameter in SQL that is still being built. No SQL contains this character."""

_PARTS = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|(?P<comment>--[^\n]*|/\*.*?\*/)|/\*.*|;|(?P<blank>\s+)|.""", re.DOTALL)


class TableId(NamedTuple):
    """A table's full name. A part is None if the database does not have it, or if the default is meant."""

    catalog: str | None
    schema: str | None
    table: str

    def __str__(self) -> str:
        return ".".join(part for part in self if part)


class Statement(NamedTuple):
    """SQL with the driver's parameter markers, and the parameters."""

    sql: str
    parameters: tuple[Any, ...] = ()


class OffsetsSql(NamedTuple):
    """The statements of an offsets table: one row for each connector, topic and partition.

    Parameters: ``claim`` and ``select`` take connector, topic, partition; ``update`` takes next_offset, connector, topic,
    partition, generation.
    """

    create: str
    claim: str
    """Inserts a row of generation 1 without an offset, or raises the row's generation."""
    select: str
    """Returns next_offset and generation."""
    update: str
    """Stores next_offset if the generation is unchanged."""


class SqlBuilder(abc.ABC):
    """Writes identifiers and statements. Table names are passed as ``qualified`` returns them, column names unquoted."""

    quotes: ClassVar[tuple[str, str]] = ('"', '"')
    """The characters around a quoted identifier."""
    marker: ClassVar[str] = "%s"
    """The parameter marker of the Python driver."""
    doubles_percent: ClassVar[bool] = True
    """Whether a percent sign in SQL with parameters must be written twice."""
    offsets_text: ClassVar[str] = "VARCHAR(255)"
    """The column type of connector and topic in the offsets table. Must tell apart names that differ only by case."""
    offsets_options: ClassVar[str] = ""
    """Follows the column list in the statement that creates the offsets table."""
    offsets_key: ClassVar[str] = "PRIMARY KEY"
    add_column_keyword: ClassVar[str] = "ADD COLUMN"

    def __init__(self, *, quote: bool = True) -> None:
        self._quote = quote

    # --- identifiers ---

    def quote(self, identifier: str) -> str:
        """Return an identifier as written in SQL, unquoted if ``quote.sql.identifiers`` is ``never``."""
        return self.delimited(identifier) if self._quote else identifier

    def delimited(self, identifier: str) -> str:
        """Return a quoted identifier."""
        opening, closing = self.quotes
        return opening + identifier.replace(closing, closing + closing) + closing

    def qualified(self, table: TableId) -> str:
        """Return a table's full name as written in SQL."""
        return ".".join(self.quote(part) for part in table if part)

    def names(self, columns: Sequence[str]) -> str:
        """Return a comma-separated list of columns."""
        return ", ".join(map(self.quote, columns))

    def with_parameters(self, sql: str) -> str:
        """Return SQL with the driver's markers for each ``MARK``; other percent signs are doubled if the driver needs that."""
        if self.doubles_percent:
            sql = sql.replace("%", "%%")
        return sql.replace(MARK, self.marker)

    def parse_table(self, text: str) -> TableId:
        """Return the table named by ``table``, ``schema.table`` or ``catalog.schema.table``; parts may be quoted.

        Raises ConfigError for an empty part and for more than three parts.
        """
        parts = split_name(text, self.quotes)
        if not parts or len(parts) > 3 or not all(parts):
            raise ConfigError(f"{text!r} is not the name of a table: write table, schema.table or catalog.schema.table.")
        padded = [None] * (3 - len(parts)) + parts
        return self.table_id(padded[0], padded[1], parts[-1])

    def table_id(self, catalog: str | None, schema: str | None, table: str) -> TableId:
        """Return a table id with the parts that this database has."""
        return TableId(catalog, schema, table)

    # --- statements for each row ---

    def insert(self, table: str, columns: Sequence[str]) -> str:
        """Return the statement that inserts a row."""
        return self.with_parameters(self._insert(table, columns))

    @abc.abstractmethod
    def upsert(self, table: str, columns: Sequence[str], keys: int) -> str:
        """Return the statement that inserts a row or updates the row with the same key: the first ``keys`` columns."""

    def update(self, table: str, columns: Sequence[str], keys: int) -> str:
        """Return the statement that updates the row with a key. Parameters: the other columns' values, then the key's."""
        changes = ", ".join(f"{self.quote(name)} = {MARK}" for name in columns[keys:])
        return self.with_parameters(f"UPDATE {table} SET {changes} WHERE {self._matches(columns[:keys])}")

    def delete(self, table: str, keys: Sequence[str]) -> str:
        """Return the statement that deletes the row with a key."""
        return self.with_parameters(f"DELETE FROM {table} WHERE {self._matches(keys)}")

    def _insert(self, table: str, columns: Sequence[str]) -> str:
        return f"INSERT INTO {table} ({self.names(columns)}) VALUES ({', '.join([MARK] * len(columns))})"

    def _matches(self, keys: Sequence[str]) -> str:
        return " AND ".join(f"{self.quote(name)} = {MARK}" for name in keys)

    # --- tables ---

    def create_table(self, table: str, columns: Sequence[tuple[str, str]], keys: Sequence[str]) -> str:
        """Return the statement that creates a table; each column is a name and its definition."""
        lines = [f"{self.quote(name)} {definition}" for name, definition in columns]
        if keys:
            lines.append(f"PRIMARY KEY ({self.names(keys)})")
        return f"CREATE TABLE {table} ({', '.join(lines)})"

    def add_column(self, table: str, name: str, definition: str) -> str:
        """Return the statement that adds a column."""
        return f"ALTER TABLE {table} {self.add_column_keyword} {self.quote(name)} {definition}"

    def offsets_sql(self, table: str) -> OffsetsSql:
        """Return the statements of the offsets table of that qualified name."""
        partition, mark, text = self.delimited("partition"), self.marker, self.offsets_text
        where = f"connector = {mark} AND topic = {mark} AND {partition} = {mark}"
        key = f"{self.offsets_key} (connector, topic, {partition})"
        return OffsetsSql(
            f"{self._create_offsets(table)} (connector {text} NOT NULL, topic {text} NOT NULL, {partition} INTEGER NOT NULL, "
            f"next_offset BIGINT, generation BIGINT NOT NULL, {key}){self.offsets_options}",
            self._claim_offsets(table, partition),
            f"SELECT next_offset, generation FROM {table} WHERE {where}",
            f"UPDATE {table} SET next_offset = {mark} WHERE {where} AND generation = {mark}",
        )

    def _create_offsets(self, table: str) -> str:
        return f"CREATE TABLE IF NOT EXISTS {table}"

    @abc.abstractmethod
    def _claim_offsets(self, table: str, partition: str) -> str:
        """Return ``OffsetsSql.claim``; ``partition`` is the quoted column."""

    def _insert_generation(self, table: str, partition: str) -> str:
        marks = ", ".join([self.marker] * 3)
        return f"INSERT INTO {table} (connector, topic, {partition}, next_offset, generation) VALUES ({marks}, NULL, 1)"


class OnConflictSql(SqlBuilder):
    """Upserts with ``INSERT ... ON CONFLICT``, which PostgreSQL and SQLite share."""

    def upsert(self, table: str, columns: Sequence[str], keys: int) -> str:
        return self.with_parameters(f"{self._insert(table, columns)} {self.on_conflict(columns, keys)}")

    def on_conflict(self, columns: Sequence[str], keys: int) -> str:
        """Return the clause of an INSERT that updates existing rows with the same key."""
        changes = ", ".join(f"{name} = excluded.{name}" for name in map(self.quote, columns[keys:]))
        return f"ON CONFLICT ({self.names(columns[:keys])}) DO " + (f"UPDATE SET {changes}" if changes else "NOTHING")

    def _claim_offsets(self, table: str, partition: str) -> str:
        conflict = (
            f"ON CONFLICT (connector, topic, {partition}) DO UPDATE SET generation = {self._stored(table, 'generation')} + 1"
        )
        return f"{self._insert_generation(table, partition)} {conflict}"

    def _stored(self, table: str, column: str) -> str:
        """Return the stored row's column inside ON CONFLICT."""
        return column


def split_name(text: str, quotes: tuple[str, str]) -> list[str]:
    """Return the parts of a dotted name; a quoted part may contain dots."""
    opening, closing = quotes
    parts, part, quoted, i = [], "", False, 0
    while i < len(text):
        char = text[i]
        if quoted and char == closing and text[i + 1 : i + 2] == closing:
            part, i = part + closing, i + 1
        elif char == (closing if quoted else opening):
            quoted = not quoted
        elif char == "." and not quoted:
            parts.append(part)
            part = ""
        else:
            part += char
        i += 1
    return [*parts, part]


def subquery(query: str, alias: str) -> str:
    """Return what follows FROM to read a user's query, which may end in a comment or a semicolon."""
    return f"({without_end(query)}\n) as {alias}"


def without_end(query: str) -> str:
    """Return a query without its last semicolon, and the comments behind that."""
    end = len(query)
    for part in _PARTS.finditer(query):
        if part[0] == ";":
            end = min(end, part.start())
        elif part.lastgroup is None:
            end = len(query)
    return query[:end].strip()
