"""Writes rows to PostgreSQL with COPY, chosen by measurement (see docs/jdbc-sink.md). Runs on the executors."""

# ruff: noqa: S608 (names are quoted, values are parameters)
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from sluiceway.connectors.jdbc.dialects.writer import Row, TargetTable, Writer

if TYPE_CHECKING:
    from sluiceway.connectors.jdbc.dialects.postgresql import PostgreSqlDialect

_FEW_ROWS = 20  # below this a staging table costs more than it saves


class PostgreSqlWriter(Writer):
    """Inserts with COPY, and upserts with COPY into a temporary table. psycopg pipelines all other statements."""

    def __init__(self, dialect: PostgreSqlDialect, connection: Any, zone: ZoneInfo) -> None:
        super().__init__(dialect, connection, zone)
        self._sql = dialect
        self.execute("select set_config('TimeZone', %s, false)", (zone.key,))
        sql = "select has_database_privilege(current_database(), 'TEMPORARY')"
        self._may_stage = bool(self.execute(sql)[0][0])
        self._stages: dict[TargetTable, str] = {}

    def insert(self, target: TargetTable, rows: Sequence[Row]) -> None:
        if target.view:  # COPY does not write to views
            super().insert(target, rows)
        else:
            self._copy(target.sql_name, target, rows)

    def upsert(self, target: TargetTable, rows: Sequence[Row]) -> None:
        # A rollback to a savepoint could remove the staging table itself.
        if len(rows) < _FEW_ROWS or self.uses_savepoints or not self._may_stage:
            super().upsert(target, rows)
            return
        names = self._sql.names(target.columns)
        stage = self._stages.get(target)
        if stage is None:
            stage = f"pg_temp.sluiceway_stage_{len(self._stages) + 1}"
            self.execute(f"CREATE TEMPORARY TABLE {stage} AS SELECT {names} FROM {target.sql_name} WITH NO DATA")
            self._stages[target] = stage
        self._copy(stage, target, rows)
        conflict = self._sql.on_conflict(target.columns, target.keys)
        self.execute(f"INSERT INTO {target.sql_name} ({names}) SELECT {names} FROM {stage} {conflict}; TRUNCATE {stage}")

    def roll_back(self) -> None:
        super().roll_back()
        for stage in self._stages.values():  # those that this transaction created are gone already
            self.execute(f"DROP TABLE IF EXISTS {stage}")
        self._stages.clear()

    def _copy(self, table: str, target: TargetTable, rows: Sequence[Row]) -> None:
        with (
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({self._sql.names(target.columns)}) FROM STDIN") as copy,
        ):
            write = copy.write_row
            for row in rows:
                write(row)
