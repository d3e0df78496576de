"""The dialect of MySQL and MariaDB, by way of PyMySQL."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sluiceway.connectors.jdbc.columns import Column, ColumnType
from sluiceway.connectors.jdbc.dialects.base import Dialect, Rows, TableKind
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind
from sluiceway.connectors.jdbc.dialects.horizon import Horizon
from sluiceway.connectors.jdbc.dialects.mysql import catalog, errors, reading, types
from sluiceway.connectors.jdbc.dialects.mysql.horizon import MySqlHorizon
from sluiceway.connectors.jdbc.dialects.mysql.url import PARAMETERS, PORT
from sluiceway.connectors.jdbc.dialects.mysql.writer import MySqlWriter
from sluiceway.connectors.jdbc.dialects.sql import Statement, TableId
from sluiceway.connectors.jdbc.dialects.values import UTC, Convert, SinkValue, decimal_in_plain_digits, moment_of
from sluiceway.connectors.jdbc.dialects.writer import Writer
from sluiceway.connectors.jdbc.url import DatabaseUrl, Login, server_url

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    import sqlalchemy as sa

_CONNECT_SECONDS = 10


class MySqlDialect(Dialect):
    """MySQL and MariaDB. Their databases are catalogs and there are no schemas. ``tinyint(1)`` is a number."""

    name = "mysql"
    schemes = ("mysql", "mariadb")
    url_forms = ("jdbc:mysql://host:3306/database", "jdbc:mariadb://...")
    java_names = ("MySqlDatabaseDialect", "MariaDbDatabaseDialect")
    quotes = ("`", "`")
    # The default collations take names that differ only by case for equal.
    offsets_text = "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    offsets_options = " ENGINE=InnoDB"
    driver = "pymysql"
    sqlalchemy_name = "mysql+pymysql"
    column_types = types.COLUMN_TYPES
    key_column_types = types.KEY_COLUMN_TYPES
    adapters: ClassVar[Mapping[SinkValue, Convert]] = {SinkValue.DECIMAL: decimal_in_plain_digits}

    @classmethod
    def parse_url(cls, text: str, login: Login) -> DatabaseUrl:
        return server_url(cls.name, text, PORT, PARAMETERS, login)

    def connect_arguments(self, url: DatabaseUrl) -> dict[str, object]:
        return {"connect_timeout": _CONNECT_SECONDS, "charset": "utf8mb4", **url.options}

    def prepare(self, connection: Any) -> None:
        """Set the session to UTC."""
        with connection.cursor() as cursor:
            cursor.execute("set session time_zone = '+00:00'")

    def refuses_login(self, error: BaseException) -> bool:
        return errors.refuses_login(error)

    def table_id(self, catalog: str | None, schema: str | None, table: str) -> TableId:
        return TableId(catalog or schema, None, table)

    # --- statements ---

    def upsert(self, table: str, columns: Sequence[str], keys: int) -> str:
        # VALUES() is the one form that both MySQL and MariaDB have. A row of key columns only is left as it is.
        changed = map(self.quote, columns[keys:] or columns[:1])
        changes = ", ".join(f"{name} = VALUES({name})" for name in changed)
        return self.with_parameters(f"{self._insert(table, columns)} ON DUPLICATE KEY UPDATE {changes}")

    def _claim_offsets(self, table: str, partition: str) -> str:
        return f"{self._insert_generation(table, partition)} ON DUPLICATE KEY UPDATE generation = generation + 1"

    # --- catalog ---

    def list_tables(self, connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
        return catalog.list_tables(connection, types)

    def columns(self, connection: sa.Connection, table: TableId) -> list[Column]:
        return catalog.columns(connection, table)

    def query_columns(self, connection: sa.Connection, query: str) -> list[Column]:
        return catalog.query_columns(connection, query)

    def unique_keys(self, connection: sa.Connection, table: TableId) -> list[frozenset[str]]:
        return catalog.unique_keys(connection, table)

    def parse_type(self, text: str) -> ColumnType:
        return types.parse_type(text)

    def table_kind(self, connection: sa.Connection, table: TableId) -> TableKind:
        return catalog.table_kind(connection, table)

    # --- types and values ---

    def decimal_type(self, precision: int | None, scale: int) -> str:
        return types.decimal_type(precision, scale)

    def default_value(self, literal: str) -> str:
        return f"({literal})" if literal.startswith("'") else literal  # LONGTEXT takes expressions only

    def reader(self, column_type: ColumnType) -> Convert | None:
        return types.reader(column_type)

    def timestamp_reader(self, zone: dt.tzinfo, *, zoned: bool) -> Convert | None:
        # PyMySQL's datetimes never have a zone.
        return functools.partial(dt.datetime.replace, tzinfo=UTC) if zone is UTC else moment_of(zone)

    # --- source ---

    def prepare_for_reading(self, connection: Any, zone: dt.tzinfo) -> None:
        reading.prepare(connection)

    def rows(self, connection: Any, statement: Statement) -> contextlib.AbstractContextManager[Rows]:
        return reading.rows(connection, statement)

    def horizon(self, open_connection: Callable[[], Any]) -> Horizon:
        return MySqlHorizon(open_connection)

    # --- sink ---

    def writer(self, connection: Any, zone: ZoneInfo) -> Writer:
        return MySqlWriter(self, connection, zone)

    def driver_error_kind(self, error: BaseException) -> ErrorKind:
        return errors.error_kind(error)
