"""Defines the dialect: everything about one database that connectors need to know.

``source`` and ``sink`` use dialects only through this class and never ask which database they have. A new database is one
module with a subclass, and one entry in the registry of this package.
"""

from __future__ import annotations

import abc
import contextlib
import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from sluiceway.connectors.jdbc.columns import Column, ColumnType
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind, connect_error_kind, kind_by_class
from sluiceway.connectors.jdbc.dialects.horizon import Horizon
from sluiceway.connectors.jdbc.dialects.sql import MARK, SqlBuilder, Statement, TableId
from sluiceway.connectors.jdbc.dialects.values import Convert, SinkValue, local_time, moment_of
from sluiceway.connectors.jdbc.dialects.writer import Writer
from sluiceway.connectors.jdbc.url import DatabaseUrl, Login
from sluiceway.data import Type

if TYPE_CHECKING:
    import sqlalchemy as sa


class Rows(Protocol):
    """The rows of a running statement."""

    def fetchmany(self, size: int) -> Sequence[tuple[Any, ...]]: ...


@contextlib.contextmanager
def cursor_rows(connection: Any, statement: Statement) -> Iterator[Rows]:
    """Give the rows of a driver whose plain cursor fetches as it goes."""
    cursor = connection.cursor()
    try:
        cursor.execute(statement.sql, statement.parameters)
        yield cursor
    except BaseException:
        with contextlib.suppress(Exception):  # the cursor may be what failed
            cursor.close()
        raise
    else:
        cursor.close()


class TableKind(NamedTuple):
    """Properties of a table that decide whether the sink may write to it."""

    view: bool
    engine_without_transactions: str | None = None
    """The name of the storage engine, if it has no transactions."""


class Dialect(SqlBuilder, abc.ABC):
    """One database's SQL, types, driver and errors.

    Holds no connection. Used on the driver, the executors and the API server, from any thread.
    """

    # --- identity ---

    name: ClassVar[str]
    """Names the dialect in ``DatabaseUrl.dialect`` and in messages."""
    schemes: ClassVar[tuple[str, ...]]
    """The URL schemes behind ``jdbc:``."""
    url_forms: ClassVar[tuple[str, ...]]
    """Example URLs for messages."""
    java_names: ClassVar[tuple[str, ...]]
    """The values of ``dialect.name`` that other JDBC connectors use for it."""

    # --- connecting ---

    driver: ClassVar[str]
    """The module of the Python driver; imported when a connection is opened."""
    sqlalchemy_name: ClassVar[str]
    """SQLAlchemy's name of the dialect and driver."""
    packages: ClassVar[tuple[str, ...]] = ()
    """What installs the driver, beside the extra ``jdbc``."""
    local_file: ClassVar[bool] = False
    """Whether the database is a file on the executors, which validation on another machine cannot reach."""
    reading_options: ClassVar[Mapping[str, object]] = {}
    """Arguments of the Python driver that mark the source's own sessions, so that the safe horizon leaves them out."""

    @classmethod
    @abc.abstractmethod
    def parse_url(cls, text: str, login: Login) -> DatabaseUrl:
        """Return the location that a URL names; ``text`` is what follows ``jdbc:<scheme>:``.

        ``login`` takes precedence over the URL. Raises ConfigError, which must not show passwords.
        """

    @abc.abstractmethod
    def connect_arguments(self, url: DatabaseUrl) -> dict[str, object]:
        """Return the driver's arguments beyond host, port, database, user and password."""

    def prepare(self, connection: Any) -> None:
        """Set up a new driver connection: sessions use UTC."""

    @abc.abstractmethod
    def refuses_login(self, error: BaseException) -> bool:
        """Return whether a failed connection is the database's refusal, so that another attempt does not help."""

    # --- catalog ---

    @abc.abstractmethod
    def list_tables(self, connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
        """Return the tables of these types (``TABLE``, ``VIEW``, ``MATERIALIZED VIEW``, ...) without system tables."""

    def parents(self, connection: sa.Connection) -> Mapping[TableId, Sequence[TableId]]:
        """Return the tables that are read through other ones, such as partitions, with those."""
        return {}

    def unique_keys(self, connection: sa.Connection, table: TableId) -> list[frozenset[str]]:
        """Return the columns of each unique key of a table, if an upsert may take one for another; else nothing."""
        return []

    @abc.abstractmethod
    def columns(self, connection: sa.Connection, table: TableId) -> list[Column]:
        """Return a table's columns in order; none if the table does not exist."""

    @abc.abstractmethod
    def query_columns(self, connection: sa.Connection, query: str) -> list[Column]:
        """Return the columns of a query without fetching its rows."""

    @abc.abstractmethod
    def parse_type(self, text: str) -> ColumnType:
        """Return the type that the database's catalog describes by this text."""

    @abc.abstractmethod
    def table_kind(self, connection: sa.Connection, table: TableId) -> TableKind:
        """Return the properties of a table that exists."""

    # --- types of the sink ---

    column_types: ClassVar[Mapping[Type | str, str]]
    """Column types to create, by schema type or schema name (Connect's logical types, Debezium's semantic types)."""
    key_column_types: ClassVar[Mapping[Type, str]] = {}
    """Column types that replace those in primary keys, for databases that limit the length of keys."""
    adapters: ClassVar[Mapping[SinkValue, Convert]] = {}
    """Convert values that the driver does not take as they are."""
    keeps_zones: ClassVar[bool] = False
    """Whether columns and driver keep the zone of Debezium's zoned types; if not, these are stored without a zone."""

    @abc.abstractmethod
    def decimal_type(self, precision: int | None, scale: int) -> str:
        """Return the column type for decimals; ``precision`` is None if the schema does not limit the digits."""

    def array_type(self, item: str) -> str | None:
        """Return the column type for arrays of a column type, None if there is none."""
        return None

    def default_value(self, literal: str) -> str:
        """Return the DEFAULT of a column for a literal of standard SQL: a number, TRUE, FALSE or a text in quotes."""
        return literal

    def stores_booleans_as_bits(self, column: Column) -> bool:
        """Return whether an existing column takes booleans only as the texts ``0`` and ``1``."""
        return False

    # --- values of the source ---

    exact_decimals: ClassVar[bool] = True
    """Whether the driver returns decimals with as many digits behind the point as the column has."""

    def reader(self, column_type: ColumnType) -> Convert | None:
        """Return the function from the driver's value to the one that Connect has for the column; None if they are the same."""
        return None

    def timestamp_reader(self, zone: dt.tzinfo, *, zoned: bool) -> Convert | None:
        """Return the function from what ``reader`` returns for a timestamp to a moment in UTC; None if they are the same.

        ``zone`` is that of columns without a zone. ``prepare_for_reading`` has prepared the connection.
        """
        return moment_of(zone)

    # --- statements of the source ---

    timestamp_mark: ClassVar[str] = MARK
    """Stands for a timestamp parameter in conditions."""

    def select_field(self, column: Column) -> str:
        """Return what SELECT lists for a column."""
        return self.quote(column.name)

    def timestamp_expression(self, column: str) -> str:
        """Return the expression by which rows are compared and sorted for a quoted timestamp column."""
        return column

    def timestamp_parameter(self, moment: dt.datetime, zone: dt.tzinfo, *, zoned: bool) -> Any:
        """Return the parameter for a moment in UTC, to compare it with a timestamp column; see ``timestamp_reader``."""
        return local_time(moment, zone)

    def prepare_for_reading(self, connection: Any, zone: dt.tzinfo) -> None:
        """Set up a new driver connection of a source; ``zone`` is that of columns without a zone."""

    def prepare_for_columns(self, connection: Any) -> None:
        """Set up a connection whose rows become Arrow arrays, which take a text as bytes, too: UTF-8 that they check."""

    def rows(self, connection: Any, statement: Statement) -> contextlib.AbstractContextManager[Rows]:
        """Return a context that executes a statement on a driver connection and gives its rows.

        The rows must not all be in memory at once. The caller ends the transaction. If the context is left early or with an
        exception, the connection may be unusable.
        """
        return cursor_rows(connection, statement)

    @abc.abstractmethod
    def horizon(self, open_connection: Callable[[], Any]) -> Horizon:
        """Return the safe horizon; ``open_connection`` opens another driver connection, which the horizon closes."""

    # --- writing ---

    def writer(self, connection: Any, zone: ZoneInfo) -> Writer:
        """Return the writer for a new driver connection, after setting the connection up; ``zone`` is ``db.timezone``."""
        return Writer(self, connection, zone)

    # --- errors ---

    def error_kind(self, error: BaseException) -> ErrorKind:
        """Return the kind of any error that a use of the database raised."""
        error = getattr(error, "orig", None) or error  # SQLAlchemy wraps the driver's errors
        return connect_error_kind(error) or self.driver_error_kind(error)

    def driver_error_kind(self, error: BaseException) -> ErrorKind:
        """Return the kind of an error that is not a ConnectError."""
        return kind_by_class(error)
