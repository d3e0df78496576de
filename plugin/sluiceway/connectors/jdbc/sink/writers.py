"""Writes rows by the quickest way of each database's driver, which was chosen by measurement (see docs/jdbc-sink.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from sluiceway.connectors.jdbc.sink.columns import Row
from sluiceway.connectors.jdbc.sink.config import InsertMode
from sluiceway.connectors.jdbc.sink.statements import Statements
from sluiceway.connectors.jdbc.sink.steps import Step, Target
from sluiceway.connectors.jdbc.url import MYSQL, POSTGRESQL
from sluiceway.errors import ConnectError, DataError

_FEW_ROWS = 20  # for which a staging table costs more than it saves
_KEYS_AT_ONCE = 1000
_LONGEST_STATEMENT = 4 << 20
_UNKNOWN_ZONE = 1298


class Writer:
    """Writes with one connection, inside the transaction that is open on it. Raises what the driver raises, and DataError."""

    begin_sql: str | None = None
    """What opens a transaction; None where the driver does that by itself."""
    careful = False
    """Whether parts of the transaction may be taken back, by savepoints."""

    def __init__(self, connection: Any, statements: Statements) -> None:
        self.connection = connection
        self.statements = statements

    def prepare(self, zone: ZoneInfo) -> None:
        """Set up a new connection."""

    def roll_back(self) -> None:
        """End the transaction with nothing written."""
        self.connection.rollback()

    def write(self, step: Step, mode: InsertMode) -> None:
        """Carry out a step."""
        target, rows = step
        if target.delete:
            self.delete(target, rows)
        elif mode is InsertMode.UPSERT:
            self.upsert(target, rows)
        elif mode is InsertMode.INSERT:
            self.insert(target, rows)
        elif len(target.columns) > target.keys:  # else there is nothing to change
            keys = target.keys
            sql = self.statements.update(target.sql_name, target.columns, keys)
            self.many(sql, [row[keys:] + row[:keys] for row in rows])

    def many(self, sql: str, rows: Sequence[Row]) -> None:
        """Carry out a statement for each row."""
        cursor = self.connection.cursor()
        try:
            cursor.executemany(sql, rows)
        finally:
            cursor.close()

    def execute(self, sql: str, parameters: Sequence[Any] | None = None) -> list[Any]:
        """Carry out a statement and return its rows, if it gives any."""
        cursor = self.connection.cursor()
        try:
            if parameters is None:
                cursor.execute(sql)
            else:
                cursor.execute(sql, parameters)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            cursor.close()

    def insert(self, target: Target, rows: Sequence[Row]) -> None:
        self.many(self.statements.insert(target.sql_name, target.columns), rows)

    def upsert(self, target: Target, rows: Sequence[Row]) -> None:
        """Write rows whose keys differ from each other."""
        self.many(self.statements.upsert(target.sql_name, target.columns, target.keys), rows)

    def delete(self, target: Target, keys: Sequence[Row]) -> None:
        self.many(self.statements.delete(target.sql_name, target.columns), keys)


class PostgreSqlWriter(Writer):
    """COPY, for upserts into a temporary table first; statements that have no such form are pipelined by psycopg."""

    def prepare(self, zone: ZoneInfo) -> None:
        self.execute("select set_config('TimeZone', %s, false)", (zone.key,))
        sql = "select has_database_privilege(current_database(), 'TEMPORARY')"
        self._may_stage = bool(self.execute(sql)[0][0])
        self._stages: dict[Target, str] = {}

    def insert(self, target: Target, rows: Sequence[Row]) -> None:
        if target.view:  # COPY takes no views
            super().insert(target, rows)
        else:
            self._copy(target.sql_name, target, rows)

    def upsert(self, target: Target, rows: Sequence[Row]) -> None:
        # What a savepoint takes back may be the staging table itself.
        if len(rows) < _FEW_ROWS or self.careful or not self._may_stage:
            super().upsert(target, rows)
            return
        names = self.statements.names(target.columns)
        stage = self._stages.get(target)
        if stage is None:
            stage = f"pg_temp.sluiceway_stage_{len(self._stages) + 1}"
            self.execute(f"CREATE TEMPORARY TABLE {stage} AS SELECT {names} FROM {target.sql_name} WITH NO DATA")  # noqa: S608
            self._stages[target] = stage
        self._copy(stage, target, rows)
        conflict = self.statements.on_conflict(target.columns, target.keys)
        self.execute(f"INSERT INTO {target.sql_name} ({names}) SELECT {names} FROM {stage} {conflict}; TRUNCATE {stage}")  # noqa: S608

    def roll_back(self) -> None:
        super().roll_back()
        for stage in self._stages.values():  # those that the transaction made are gone, others are not
            self.execute(f"DROP TABLE IF EXISTS {stage}")
        self._stages.clear()

    def _copy(self, table: str, target: Target, rows: Sequence[Row]) -> None:
        with (
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({self.statements.names(target.columns)}) FROM STDIN") as copy,
        ):
            write = copy.write_row
            for row in rows:
                write(row)


class MySqlWriter(Writer):
    """Statements with many rows each, made by PyMySQL, as long as the server takes them."""

    def prepare(self, zone: ZoneInfo) -> None:
        # Without it a value that does not fit is cut short, in silence.
        self.execute("SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES')")
        try:
            self.execute("SET SESSION time_zone = %s", ("+00:00" if zone.key in ("UTC", "Etc/UTC", "GMT") else zone.key,))
        except Exception as error:
            if _UNKNOWN_ZONE not in error.args:
                raise
            raise ConnectError(
                f"The database does not know the time zone {zone.key} of db.timezone: fill its tables of zones "
                "(mysql_tzinfo_to_sql), or set db.timezone=UTC."
            ) from error
        [(packet,)] = self.execute("SELECT @@max_allowed_packet")
        self._longest_row = int(packet) - 4096
        self._longest = min(self._longest_row, _LONGEST_STATEMENT)

    def many(self, sql: str, rows: Sequence[Row]) -> None:
        cursor = self.connection.cursor()
        try:
            for row in rows:
                # Characters take up to four bytes, escaped ones two: only rows that may be too long are written out to see.
                if 4 * sum(len(value) for value in row if type(value) is str or type(value) is bytes) > self._longest_row:
                    self._check_length(len(cursor.mogrify(sql, row).encode("utf-8", "surrogateescape")))
            cursor.max_stmt_length = self._longest
            cursor.executemany(sql, rows)
        finally:
            cursor.close()

    def _check_length(self, length: int) -> None:
        """Refuse a row that the server would not take: it would end the connection, again and again."""
        if length > self._longest_row:
            raise DataError(
                f"The row takes a statement of {length} bytes, and the server takes {self._longest_row} (max_allowed_packet). "
                "Raise max_allowed_packet, or leave fields out with fields.whitelist."
            )

    def delete(self, target: Target, keys: Sequence[Row]) -> None:
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[first : first + _KEYS_AT_ONCE]
            sql = self.statements.delete_many(target.sql_name, target.columns, len(some))
            self.execute(sql, [value for key in some for value in key])


class SqliteWriter(Writer):
    """Statements prepared once for many rows. The transaction has the only right to write from its beginning."""

    begin_sql = "BEGIN IMMEDIATE"


def writer_of(connection: Any, statements: Statements) -> Writer:
    """Return the writer for a connection of the database's Python driver."""
    kinds: dict[str, type[Writer]] = {POSTGRESQL: PostgreSqlWriter, MYSQL: MySqlWriter}
    return kinds.get(statements.dialect.name, SqliteWriter)(connection, statements)
