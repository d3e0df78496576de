"""Defines the writer: how rows get into tables over one driver connection. Runs on the executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from sluiceway.connectors.jdbc.dialects.base import Dialect
    from sluiceway.connectors.jdbc.dialects.sql import TableId

Row = tuple[Any, ...]

_SAVEPOINT = "sluiceway_batch"


@dataclass(frozen=True, slots=True, eq=False)
class TargetTable:
    """A table and the columns that rows are written to, the ``keys`` columns of the primary key first.

    ``other_keys``: whether the table has a unique key of other columns, where the database does not tell them apart.
    """

    table: TableId
    sql_name: str
    columns: tuple[str, ...]
    keys: int
    view: bool = field(default=False, kw_only=True)
    other_keys: bool = field(default=False, kw_only=True)


class Writer:
    """Writes inside the transaction that is open on its connection. Raises the driver's errors, and DataError.

    The standard form: one statement for each row, sent with ``executemany``. Dialects override it with their driver's
    fastest way. Not thread-safe.
    """

    begin_sql: str | None = None
    """The statement that begins a transaction; None if the driver begins one by itself."""

    def __init__(self, dialect: Dialect, connection: Any, zone: ZoneInfo) -> None:
        """Set up a new connection; ``zone`` is ``db.timezone``."""
        self.dialect = dialect
        self.connection = connection
        self.uses_savepoints = False
        """Whether parts of the open transaction may be rolled back to a savepoint."""

    # --- transactions ---

    def begin(self) -> None:
        """Begin a transaction."""
        if self.begin_sql is not None:
            self.execute(self.begin_sql)

    def commit(self) -> None:
        self.connection.commit()

    def roll_back(self) -> None:
        self.connection.rollback()

    def savepoint(self) -> None:
        """Set the savepoint; there is never more than one."""
        self.execute(f"SAVEPOINT {_SAVEPOINT}")

    def roll_back_to_savepoint(self) -> None:
        """Roll back to the savepoint and release it."""
        self.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        self.release_savepoint()

    def release_savepoint(self) -> None:
        self.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")

    # --- rows ---

    def insert(self, target: TargetTable, rows: Sequence[Row]) -> None:
        """Insert rows."""
        self.execute_many(self.dialect.insert(target.sql_name, target.columns), rows)

    def upsert(self, target: TargetTable, rows: Sequence[Row]) -> None:
        """Insert rows or update those with the same key. No two rows have the same key."""
        self.execute_many(self.dialect.upsert(target.sql_name, target.columns, target.keys), rows)

    def update(self, target: TargetTable, rows: Sequence[Row]) -> None:
        """Update the rows with the same keys; a table with key columns only is left unchanged."""
        keys = target.keys
        if len(target.columns) > keys:
            sql = self.dialect.update(target.sql_name, target.columns, keys)
            self.execute_many(sql, [row[keys:] + row[:keys] for row in rows])

    def delete(self, target: TargetTable, keys: Sequence[Row]) -> None:
        """Delete the rows with these keys; the target has key columns only."""
        self.execute_many(self.dialect.delete(target.sql_name, target.columns), keys)

    # --- statements ---

    def execute_many(self, sql: str, rows: Sequence[Row]) -> int:
        """Execute a statement for each row; return how many rows of the database it changed."""
        cursor = self.connection.cursor()
        try:
            cursor.executemany(sql, rows)
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def execute(self, sql: str, parameters: Sequence[Any] | None = None) -> list[Any]:
        """Execute a statement and return its rows, if it has any."""
        cursor = self.connection.cursor()
        try:
            if parameters is None:
                cursor.execute(sql)
            else:
                cursor.execute(sql, parameters)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            cursor.close()
