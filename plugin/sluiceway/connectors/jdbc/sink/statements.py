"""The SQL of the sink, as text for each database. Pure: no I/O, no driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sluiceway.connectors.jdbc.dialects.base import MARK, Dialect, TableId
from sluiceway.connectors.jdbc.sink.config import TABLE_NAME_FORMAT, TOPIC_PLACEHOLDER
from sluiceway.connectors.jdbc.url import MYSQL
from sluiceway.errors import ConfigError


def table_of(dialect: Dialect, table_format: str, topic: str) -> TableId:
    """Return the table that a topic's records go to. Raises ConfigError for a name that is none."""
    name = table_format.replace(TOPIC_PLACEHOLDER, topic)
    try:
        return dialect.parse_table(name)
    except ConfigError as error:
        raise ConfigError(
            f"{error} It was made of {TABLE_NAME_FORMAT}={table_format} and topic {topic}, whose dots part catalog, schema and "
            "table: rename the topic for the sink (RegexRouter), or name the table."
        ) from None


@dataclass(frozen=True, slots=True)
class Statements:
    """Writes SQL for a database. Table names are given quoted, column names as they are."""

    dialect: Dialect

    def names(self, columns: Sequence[str]) -> str:
        return ", ".join(map(self.dialect.quote, columns))

    def insert(self, table: str, columns: Sequence[str]) -> str:
        """Return the statement that adds a row."""
        return self.dialect.with_parameters(self._insert(table, columns))

    def upsert(self, table: str, columns: Sequence[str], keys: int) -> str:
        """Return the statement that adds a row or changes the one with the same key; the first ``keys`` columns are the key."""
        return self.dialect.with_parameters(f"{self._insert(table, columns)} {self.on_conflict(columns, keys)}")

    def on_conflict(self, columns: Sequence[str], keys: int) -> str:
        """Return the end of an INSERT that changes the rows whose keys are there already."""
        others = [self.dialect.quote(name) for name in columns[keys:]]
        if self.dialect.name == MYSQL:
            # VALUES() is the one form that MySQL and MariaDB both know. A table without other columns is left as it is.
            chosen = others or [self.dialect.quote(columns[0])]
            return "ON DUPLICATE KEY UPDATE " + ", ".join(f"{name} = VALUES({name})" for name in chosen)
        target = f"ON CONFLICT ({self.names(columns[:keys])}) DO "
        return target + ("UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in others) if others else "NOTHING")

    def update(self, table: str, columns: Sequence[str], keys: int) -> str:
        """Return the statement that changes the row with a key; its parameters are the other columns' values, then the key's."""
        changes = ", ".join(f"{self.dialect.quote(name)} = {MARK}" for name in columns[keys:])
        return self.dialect.with_parameters(f"UPDATE {table} SET {changes} WHERE {self._matches(columns[:keys])}")  # noqa: S608

    def delete(self, table: str, keys: Sequence[str]) -> str:
        """Return the statement that deletes the row with a key."""
        return self.dialect.with_parameters(f"DELETE FROM {table} WHERE {self._matches(keys)}")  # noqa: S608

    def delete_many(self, table: str, keys: Sequence[str], count: int) -> str:
        """Return the statement that deletes the rows with so many keys; its parameters are their values, one after another."""
        one = ", ".join([MARK] * len(keys))
        marks, names = (one, self.names(keys)) if len(keys) == 1 else (f"({one})", f"({self.names(keys)})")
        return self.dialect.with_parameters(f"DELETE FROM {table} WHERE {names} IN ({', '.join([marks] * count)})")  # noqa: S608

    def create(self, table: str, columns: Sequence[tuple[str, str]], keys: Sequence[str]) -> str:
        """Return the statement that creates a table; each column is a name and its definition."""
        lines = [f"{self.dialect.quote(name)} {definition}" for name, definition in columns]
        if keys:
            lines.append(f"PRIMARY KEY ({self.names(keys)})")
        return f"CREATE TABLE {table} ({', '.join(lines)})"

    def add_column(self, table: str, name: str, definition: str) -> str:
        return f"ALTER TABLE {table} ADD COLUMN {self.dialect.quote(name)} {definition}"

    def _insert(self, table: str, columns: Sequence[str]) -> str:
        return f"INSERT INTO {table} ({self.names(columns)}) VALUES ({', '.join([MARK] * len(columns))})"  # noqa: S608

    def _matches(self, keys: Sequence[str]) -> str:
        return " AND ".join(f"{self.dialect.quote(name)} = {MARK}" for name in keys)
