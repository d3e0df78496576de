"""The dialect of PostgreSQL, by way of psycopg 3."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import Column, ColumnType, Kind
from sluiceway.connectors.jdbc.dialects.base import Dialect, Rows, TableKind
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind
from sluiceway.connectors.jdbc.dialects.horizon import APPLICATION, Horizon
from sluiceway.connectors.jdbc.dialects.postgresql import catalog, errors, reading, types
from sluiceway.connectors.jdbc.dialects.postgresql.horizon import PostgreSqlHorizon
from sluiceway.connectors.jdbc.dialects.postgresql.url import PARAMETERS, PORT
from sluiceway.connectors.jdbc.dialects.postgresql.writer import PostgreSqlWriter
from sluiceway.connectors.jdbc.dialects.sql import OnConflictSql, Statement, TableId
from sluiceway.connectors.jdbc.dialects.values import UTC, Convert, local_time, moment_of
from sluiceway.connectors.jdbc.dialects.writer import Writer
from sluiceway.connectors.jdbc.url import DatabaseUrl, Login, server_url

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    import sqlalchemy as sa

_CONNECT_SECONDS = 10
# A connection that waits for rows or a commit notices a lost host within a minute instead of the kernel's two hours
# (https://www.postgresql.org/docs/current/libpq-connect.html); seconds.
_KEEPALIVES: dict[str, object] = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


class PostgreSqlDialect(OnConflictSql, Dialect):
    """PostgreSQL. Types without a counterpart in Connect (uuid, json, interval, inet, ...) are read as text."""

    name = "postgresql"
    schemes = ("postgresql",)
    url_forms = ("jdbc:postgresql://host:5432/database",)
    java_names = ("PostgreSqlDatabaseDialect",)
    driver = "psycopg"
    sqlalchemy_name = "postgresql+psycopg"
    reading_options = {"application_name": APPLICATION}
    column_types = types.COLUMN_TYPES
    keeps_zones = True

    @classmethod
    def parse_url(cls, text: str, login: Login) -> DatabaseUrl:
        url = server_url(cls.name, text, PORT, PARAMETERS, login)
        return dataclasses.replace(url, database=url.database or url.user or "")

    def connect_arguments(self, url: DatabaseUrl) -> dict[str, object]:
        return {"connect_timeout": _CONNECT_SECONDS, **_KEEPALIVES, **url.options}

    def prepare(self, connection: Any) -> None:
        """Set the session to UTC and to text forms that do not depend on the server's settings."""
        before, connection.autocommit = connection.autocommit, True
        with connection.cursor() as cursor:
            cursor.execute(
                "select set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO, YMD', false), "
                "set_config('IntervalStyle', 'postgres', false), set_config('extra_float_digits', '1', false), "
                "set_config('bytea_output', 'hex', false)"
            )
        connection.autocommit = before

    def refuses_login(self, error: BaseException) -> bool:
        return errors.refuses_login(error)

    # --- catalog ---

    def list_tables(self, connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
        return catalog.list_tables(connection, types)

    def parents(self, connection: sa.Connection) -> Mapping[TableId, Sequence[TableId]]:
        return catalog.parents(connection)

    def columns(self, connection: sa.Connection, table: TableId) -> list[Column]:
        in_database = ".".join(self.delimited(part) for part in (table.schema, table.table) if part)
        return catalog.columns(connection, in_database if self._quote else self.qualified(table))

    def query_columns(self, connection: sa.Connection, query: str) -> list[Column]:
        return catalog.query_columns(connection, query)

    def parse_type(self, text: str) -> ColumnType:
        return types.parse_type(text)

    def table_kind(self, connection: sa.Connection, table: TableId) -> TableKind:
        return catalog.table_kind(connection, self.qualified(table))

    # --- types and values ---

    def decimal_type(self, precision: int | None, scale: int) -> str:
        return types.decimal_type(precision, scale)

    def array_type(self, item: str) -> str | None:
        return item + "[]"

    def stores_booleans_as_bits(self, column: Column) -> bool:
        return column.type_text == "bit(1)"

    def timestamp_reader(self, zone: dt.tzinfo, *, zoned: bool) -> Convert | None:
        return None if zoned or zone is UTC else moment_of(zone)  # see prepare_for_reading

    # --- source ---

    def select_field(self, column: Column) -> str:
        name = self.quote(column.name)
        if column.type.kind is Kind.BOOLEAN and column.type.precision == 1:
            return f"({name} = B'1') as {name}"
        if column.type.as_text:
            return f"{name}::text as {name}"
        if column.type.items is not None and column.type.items.as_text:
            return f"{name}::text[] as {name}"
        return name

    def timestamp_parameter(self, moment: dt.datetime, zone: dt.tzinfo, *, zoned: bool) -> Any:
        return moment if zoned else local_time(moment, zone)

    def prepare_for_reading(self, connection: Any, zone: dt.tzinfo) -> None:
        reading.prepare(connection, zone)

    def rows(self, connection: Any, statement: Statement) -> contextlib.AbstractContextManager[Rows]:
        return reading.rows(connection, statement)

    def horizon(self, open_connection: Callable[[], Any]) -> Horizon:
        return PostgreSqlHorizon(self)

    # --- sink ---

    def writer(self, connection: Any, zone: ZoneInfo) -> Writer:
        return PostgreSqlWriter(self, connection, zone)

    def _stored(self, table: str, column: str) -> str:
        return f"{table}.{column}"  # ambiguous without the table

    def driver_error_kind(self, error: BaseException) -> ErrorKind:
        return errors.error_kind(error)
