"""Tells whether tables have rows that a source has not read, or are new. Runs in Airflow's triggerer."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.dialects.horizon import Horizon
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.dialects.values import zone_of
from sluiceway.connectors.jdbc.source.columns import find_column, incrementing_column
from sluiceway.connectors.jdbc.source.config import SourceConfig
from sluiceway.connectors.jdbc.source.errors import as_connect_error
from sluiceway.connectors.jdbc.source.horizon import SafeNumbers, horizon_for, safe_time
from sluiceway.connectors.jdbc.source.keys import BULK, INCREMENTING
from sluiceway.connectors.jdbc.source.sql import SelectBuilder
from sluiceway.connectors.jdbc.source.table_reader import end_transaction, run
from sluiceway.connectors.jdbc.source.task import reading_settings
from sluiceway.connectors.jdbc.tables import selected_tables

if TYPE_CHECKING:
    import sqlalchemy as sa

_EVERY_SECONDS = 1.0
_REST = 20  # times the duration of the queries, which read whole tables where a column has no index


class NewestRows:
    """Counts tables that are new, and changes of the highest number or the latest timestamp of each table.

    A number or timestamp counts only when no open transaction can add a row before it, since the source reads it only then.
    With ``mode=bulk``, only new tables count. The queries take at most a twentieth of the time.
    """

    def __init__(self, config: SourceConfig) -> None:
        connection = dataclasses.replace(config.connection, attempts=1)  # the trigger waits between two attempts
        self._config = dataclasses.replace(config, connection=connection)
        self._database = Database(reading_settings(connection))
        self._connection: sa.Connection | None = None
        self._horizon: Horizon | None = None
        self._tables: dict[TableId, _Table] = {}
        self._changes = 0
        self._due = 0.0

    def mark(self) -> int:
        """Return the number of changes. Raises ConnectError, also as RetriableError."""
        began = time.monotonic()
        if began >= self._due:
            self._look()
            now = time.monotonic()
            self._due = now + max(_EVERY_SECONDS, _REST * (now - began))
        return self._changes

    def _look(self) -> None:
        try:
            connection = self._connected()
            found, _ = selected_tables(connection, self._database.dialect, self._config.selection)
            end_transaction(connection)
            self._tables = {table: self._tables.get(table) or _Table(table) for table in found}
            for table in self._tables.values():
                self._changes += table.has_changed(self._config, self._database, connection, self._horizon)
                end_transaction(connection)
        except Exception as error:
            self._disconnect()
            converted = as_connect_error(error, self._database, "the database")
            if converted is error:
                raise
            raise converted from error

    def _connected(self) -> sa.Connection:
        if self._connection is None:
            self._connection = connection = self._database.connect()
            raw: Any = connection.connection.driver_connection
            self._database.dialect.prepare_for_reading(raw, zone_of(self._config.connection.timezone))
            if self._horizon is None and self._config.mode != BULK:
                self._horizon = horizon_for(self._config, self._database, raw)
            end_transaction(connection)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()
                connection.close()
            except Exception:  # noqa: BLE001 (the connection is broken)
                return

    def close(self) -> None:
        self._disconnect()
        self._database.dispose()


class _Table:
    """The newest row of a table that was seen."""

    def __init__(self, table: TableId) -> None:
        self._table = table
        self._is_new = True
        self._newest: object = None
        self._numbers = SafeNumbers()
        self._select: tuple[SelectBuilder, str, int] | None = None

    def has_changed(self, config: SourceConfig, database: Database, connection: sa.Connection, horizon: Horizon | None) -> bool:
        """Return whether the table is new, or has a newer row than at the last call."""
        newest = None if horizon is None else self._find(config, database, connection, horizon)
        changed = self._is_new or newest != self._newest
        self._is_new, self._newest = False, newest
        return changed

    def _find(self, config: SourceConfig, database: Database, connection: sa.Connection, horizon: Horizon) -> object:
        raw: Any = connection.connection.driver_connection
        if self._select is None:
            self._select = _select(config, database, connection, self._table)
            end_transaction(connection)
        select, column, fraction = self._select
        if config.mode == INCREMENTING:
            [(_, highest)] = run(raw, select.highest(column))
            raw.rollback()
            return None if highest is None else self._numbers.add(int(highest), horizon.writers(raw, self._table))
        now, since = horizon.clock(raw), horizon.open_since(raw)
        raw.rollback()
        safe = safe_time(now, since, fraction=fraction, coarse=horizon.coarse, delay=config.timestamp_delay)
        [(latest,)] = run(raw, select.latest_before(safe))
        if not config.uses_incrementing:
            return latest
        [(_, highest)] = run(raw, select.highest(column))  # of rows with the same time
        return latest, highest


def _select(
    config: SourceConfig, database: Database, connection: sa.Connection, table: TableId
) -> tuple[SelectBuilder, str, int]:
    """Return what makes the statements of a table, its incrementing column, and the digits of its timestamps' seconds."""
    columns = database.dialect.columns(connection, table)
    by_name = {column.name: column for column in columns}
    number = incrementing_column(config, columns, f"table {table}") if config.uses_incrementing else ""
    stamps = [find_column(list(by_name), name, f"table {table}") for name in config.timestamp_columns]
    zone = zone_of(config.connection.timezone)
    select = SelectBuilder(database.dialect, columns, table, incrementing=number, timestamps=stamps, zone=zone)
    return select, number, min((by_name[name].type.fraction for name in stamps), default=6)
