"""Writes rows to MySQL and MariaDB with multi-row statements, chosen by measurement (see docs/jdbc-sink.md).

Runs on the executors.
"""

# ruff: noqa: S608 (names are quoted, values are parameters)
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from sluiceway.connectors.jdbc.dialects.sql import MARK
from sluiceway.connectors.jdbc.dialects.writer import Row, TargetTable, Writer
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    from sluiceway.connectors.jdbc.dialects.base import Dialect
    from sluiceway.connectors.jdbc.dialects.sql import SqlBuilder

_KEYS_AT_ONCE = 1000
_LONGEST_STATEMENT = 4 << 20  # bytes
_PACKET_OVERHEAD = 4096  # bytes
_UNKNOWN_ZONE = 1298
_SEVERAL_ROWS = 1242
# An error when it is evaluated, whatever the column and the SQL mode.
_REFUSAL = "(SELECT NULL UNION ALL SELECT NULL)"


class MySqlWriter(Writer):
    """Lets PyMySQL join rows into statements as long as the server accepts."""

    def __init__(self, dialect: Dialect, connection: Any, zone: ZoneInfo) -> None:
        super().__init__(dialect, connection, zone)
        # Without strict mode the server truncates values that do not fit, without an error.
        self.execute("SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES')")
        try:
            self.execute("SET SESSION time_zone = %s", ("+00:00" if zone.key in ("UTC", "Etc/UTC", "GMT") else zone.key,))
        except Exception as error:
            if _UNKNOWN_ZONE not in error.args:
                raise
            raise ConnectError(
                f"The database does not know the time zone {zone.key} of db.timezone. Load its time zone tables "
                "(mysql_tzinfo_to_sql), or set db.timezone=UTC."
            ) from error
        [(packet,)] = self.execute("SELECT @@max_allowed_packet")
        self._longest_row = int(packet) - _PACKET_OVERHEAD
        self._longest = min(self._longest_row, _LONGEST_STATEMENT)

    def execute_many(self, sql: str, rows: Sequence[Row]) -> int:
        cursor = self.connection.cursor()
        try:
            for row in rows:
                # A character takes up to four bytes and an escaped byte two: only rows that may be too long are rendered.
                if 4 * sum(len(value) for value in row if type(value) is str or type(value) is bytes) > self._longest_row:
                    self._check_length(len(cursor.mogrify(sql, row).encode("utf-8", "surrogateescape")))
            cursor.max_stmt_length = self._longest
            cursor.executemany(sql, rows)
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def _check_length(self, length: int) -> None:
        """Raise DataError for a row that the server would answer by closing the connection, at every attempt."""
        if length > self._longest_row:
            raise DataError(
                f"The row takes a statement of {length} bytes, and the server accepts {self._longest_row} (max_allowed_packet). "
                "Raise max_allowed_packet, or leave fields out with fields.whitelist."
            )

    def upsert(self, target: TargetTable, rows: Sequence[Row]) -> None:
        """Insert rows or update those with the same key.

        Raises DataError for a row that has the value of another unique key of another row. ON DUPLICATE KEY UPDATE would change
        that one.
        """
        if not target.other_keys:
            return super().upsert(target, rows)
        try:
            self.execute_many(guarded_upsert(self.dialect, target.sql_name, target.columns, target.keys), rows)
        except Exception as error:
            if error.args[:1] != (_SEVERAL_ROWS,):
                raise
            key = ", ".join(target.columns[: target.keys])
            raise DataError(
                f"Another row of table {target.table} has the same value in a unique key other than {key}."
            ) from error

    def delete(self, target: TargetTable, keys: Sequence[Row]) -> None:
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[first : first + _KEYS_AT_ONCE]
            sql = delete_many(self.dialect, target.sql_name, target.columns, len(some))
            self.execute(sql, [value for key in some for value in key])


def guarded_upsert(dialect: SqlBuilder, table: str, columns: Sequence[str], keys: int) -> str:
    """Return an upsert that fails where the row with the same unique key has other values in the key columns."""
    own = " AND ".join(f"{name} <=> VALUES({name})" for name in map(dialect.quote, columns[:keys]))
    first = dialect.quote(columns[0])
    changes = [
        f"{first} = IF({own}, {first}, {_REFUSAL})",
        *(f"{name} = VALUES({name})" for name in map(dialect.quote, columns[keys:])),
    ]
    insert = f"INSERT INTO {table} ({dialect.names(columns)}) VALUES ({', '.join([MARK] * len(columns))})"
    return dialect.with_parameters(f"{insert} ON DUPLICATE KEY UPDATE {', '.join(changes)}")


def delete_many(dialect: SqlBuilder, table: str, keys: Sequence[str], count: int) -> str:
    """Return the statement that deletes the rows with ``count`` keys; its parameters are the keys' values in order."""
    one = ", ".join([MARK] * len(keys))
    marks, names = (one, dialect.names(keys)) if len(keys) == 1 else (f"({one})", f"({dialect.names(keys)})")
    return dialect.with_parameters(f"DELETE FROM {table} WHERE {names} IN ({', '.join([marks] * count)})")
