"""Shows the SQL that the JDBC sink would execute for some records. Reads the database's catalog, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.dialects import dialect_class
from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.dialects.writer import Row, Writer
from sluiceway.connectors.jdbc.sink.batch import Planner
from sluiceway.connectors.jdbc.sink.columns import Layout
from sluiceway.connectors.jdbc.sink.config import InsertMode, SinkOptions
from sluiceway.connectors.jdbc.sink.steps import in_order, last_of_each_key, write_step
from sluiceway.connectors.jdbc.sink.tables import Table, Tables

if TYPE_CHECKING:
    import sqlalchemy as sa

_NOWHERE = ":memory:"


def statements(options: SinkOptions, records: Sequence[SinkRecord]) -> list[str]:
    """Return the statements for a batch of records, with the parameters of each row, and why records cannot be written.

    Drivers may use a faster way with the same result, such as COPY for PostgreSQL. Raises ConnectError.
    """
    settings = replace(options.connection, attempts=1)
    if dialect_class(settings.url.dialect).local_file:
        settings = replace(settings, url=replace(settings.url, database=_existing(settings.url.database)))
    database = Database(settings)
    with database.connect() as opened:
        driver = opened.connection.driver_connection
        assert driver is not None  # noqa: S101 (the connection is open)
        recorder = _Recorder(database.dialect)
        tables = _PlannedTables(options, database.dialect, opened, recorder.statements.append, driver.rollback)
        plan = Planner(options, database.dialect, tables).plan(records)
        arrange = last_of_each_key if options.insert_mode is InsertMode.UPSERT else in_order
        for step in arrange(plan.items):
            write_step(recorder, step, options.insert_mode)
    return [*recorder.statements, *(str(error) for _, error in plan.refused)]


def _existing(file: str) -> str:
    """Return the file of a SQLite database; a database in memory if there is none, because opening it would create it."""
    return file if Path(file).exists() else _NOWHERE


class _Recorder(Writer):
    """Keeps the statements instead of executing them."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.statements: list[str] = []

    def execute_many(self, sql: str, rows: Sequence[Row]) -> int:
        self.statements += [f"{sql} with {row!r}" for row in rows]
        return len(rows)


class _PlannedTables(Tables):
    """Returns tables as they would be after the changes, which ``record`` is given."""

    def __init__(
        self,
        options: SinkOptions,
        dialect: Dialect,
        connection: sa.Connection,
        record: Callable[[str], object],
        end: Callable[[], object],
    ) -> None:
        super().__init__(options, dialect, connection, record, end)
        self._record = record

    def _change(self, name: TableId, layout: Layout, statements: Sequence[str]) -> Table | None:
        for sql in statements:
            self._record(sql)
        table = self._known.get(name) or self._read(name) or Table(name, ())
        added = [column for column in layout.names if table.column(column) is None]
        return replace(table, columns=(*table.columns, *added))
