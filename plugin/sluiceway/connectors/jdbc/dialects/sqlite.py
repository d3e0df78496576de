"""The dialect of SQLite, by way of Python's sqlite3.

SQLite has one writer at a time, so its horizon needs no open transactions. Its columns hold values of any type; the source
converts them by the type that the column was declared with.
"""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import TEXT, WHOLE_NUMBERS, Column, ColumnType, Kind
from sluiceway.connectors.jdbc.dialects.base import Dialect, TableKind
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind, contains, kind_by_class
from sluiceway.connectors.jdbc.dialects.horizon import Horizon, query_value, utc_moment
from sluiceway.connectors.jdbc.dialects.sql import OnConflictSql, TableId
from sluiceway.connectors.jdbc.dialects.values import ISO_TEXTS, Convert, SinkValue, local_time
from sluiceway.connectors.jdbc.dialects.writer import Writer
from sluiceway.connectors.jdbc.url import DatabaseUrl, Login
from sluiceway.data import Type
from sluiceway.data.instant import EPOCH
from sluiceway.data.logical import DATE, TIME, TIMESTAMP
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    import sqlalchemy as sa

_COLUMN_TYPES: dict[Type | str, str] = {
    Type.INT8: "INTEGER",
    Type.INT16: "INTEGER",
    Type.INT32: "INTEGER",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "TEXT",
    Type.BYTES: "BLOB",
    DATE: "DATE",
    TIME: "TIME",
    TIMESTAMP: "TIMESTAMP",
    "io.debezium.time.Timestamp": "TIMESTAMP",
    "io.debezium.time.MicroTimestamp": "TIMESTAMP",
    "io.debezium.time.NanoTimestamp": "TIMESTAMP",
    "io.debezium.time.ZonedTimestamp": "TIMESTAMP",
    "io.debezium.time.Date": "DATE",
    "io.debezium.time.Time": "TIME",
    "io.debezium.time.MicroTime": "TIME",
    "io.debezium.time.NanoTime": "TIME",
    "io.debezium.time.ZonedTime": "TIME",
    "io.debezium.data.Json": "TEXT",
    "io.debezium.data.Uuid": "TEXT",
    "io.debezium.data.Xml": "TEXT",
    "io.debezium.data.VariableScaleDecimal": "DECIMAL",
}

# SQLite accepts any name as a type. Well-known names come first, then SQLite's own rules of affinity
# (https://www.sqlite.org/datatype3.html#determination_of_column_affinity).
_TYPE_NAMES = {
    "boolean": Kind.BOOLEAN,
    "bool": Kind.BOOLEAN,
    "tinyint": Kind.INT8,
    "smallint": Kind.INT16,
    "int2": Kind.INT16,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "datetime": Kind.TIMESTAMP,
    "timestamp": Kind.TIMESTAMP,
    "float": Kind.FLOAT64,
}
_AFFINITIES = (
    (("int",), Kind.INT64),
    (("char", "clob", "text"), Kind.STRING),
    (("blob",), Kind.BYTES),
    (("real", "floa", "doub"), Kind.FLOAT64),
)
_TYPE = re.compile(r"^\s*(?P<name>[^()]*?)\s*(?:\((?P<arguments>[^)]*)\))?\s*$")
_TIME_FORMAT = "'%Y-%m-%d %H:%M:%f'"

_LOCKED = ("database is locked", "table is locked", "database schema is locked", "is busy")
_DISK = ("disk I/O", "unable to open", "is full")
_MISSING = ("no such table", "no such column", "has no column")


class SqliteDialect(OnConflictSql, Dialect):
    """SQLite. Dates and times are written as ISO texts, and read from ISO texts or milliseconds since the epoch."""

    name = "sqlite"
    schemes = ("sqlite",)
    url_forms = ("jdbc:sqlite:/path/file.db",)
    java_names = ("SqliteDatabaseDialect",)
    marker = "?"
    doubles_percent = False
    driver = "sqlite3"
    sqlalchemy_name = "sqlite"
    local_file = True
    column_types = _COLUMN_TYPES
    adapters = {**ISO_TEXTS, SinkValue.DECIMAL: str, SinkValue.BOOLEAN: int}
    exact_decimals = False

    @classmethod
    def parse_url(cls, text: str, login: Login) -> DatabaseUrl:
        return DatabaseUrl(cls.name, database=text.split("?")[0].removeprefix("file:") or ":memory:")

    def connect_arguments(self, url: DatabaseUrl) -> dict[str, object]:
        return {**url.options, "check_same_thread": False, "timeout": 30}

    def prepare(self, connection: Any) -> None:
        """Accept texts that are not UTF-8."""
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")

    def refuses_login(self, error: BaseException) -> bool:
        return "unable to open database file" in str(error)

    def table_id(self, catalog: str | None, schema: str | None, table: str) -> TableId:
        return TableId(None, None, table)

    # --- catalog ---

    def list_tables(self, connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
        wanted = {each.lower() for each in types}
        rows = connection.exec_driver_sql(
            "select type, name from sqlite_master where name not like 'sqlite\\_%' escape '\\' order by name"
        )
        return [TableId(None, None, name) for kind, name in rows if kind in wanted]

    def columns(self, connection: sa.Connection, table: TableId) -> list[Column]:
        rows = connection.exec_driver_sql(
            'select name, type, "notnull", pk, hidden, dflt_value from pragma_table_xinfo(?)', (table.table,)
        ).all()
        keys = [row for row in rows if row[3]]
        return [
            Column(
                field,
                self.parse_type(text),
                text,
                nullable=not (not_null or (key and len(keys) == 1 and text.lower() == "integer")),
                primary_key=bool(key),
                auto_increment=bool(key) and len(keys) == 1 and text.lower() == "integer",
                has_default=default is not None,
                generated=hidden in (2, 3),
            )
            for field, text, not_null, key, hidden, default in rows
        ]

    def query_columns(self, connection: sa.Connection, query: str) -> list[Column]:
        # A temporary view keeps the types that the columns of its tables were declared with.
        connection.exec_driver_sql(f"create temp view sluiceway_query as {query}")
        try:
            return self.columns(connection, TableId(None, None, "sluiceway_query"))
        finally:
            connection.exec_driver_sql("drop view temp.sluiceway_query")

    def parse_type(self, text: str) -> ColumnType:
        parts = _TYPE.match(text.lower())
        if parts is None:
            return TEXT
        name = parts["name"]
        arguments = [int(each) for each in (parts["arguments"] or "").split(",") if each.strip().isdigit()]
        if name in _TYPE_NAMES:
            return ColumnType(_TYPE_NAMES[name])
        if name.startswith(("decimal", "numeric")):
            precision, scale = [*arguments, 0][:2] if arguments else (None, None)
            return ColumnType(Kind.DECIMAL, precision, scale)
        for parts_of_names, kind in _AFFINITIES:
            if contains(name, parts_of_names):
                return ColumnType(kind)
        return TEXT

    def table_kind(self, connection: sa.Connection, table: TableId) -> TableKind:
        kind = connection.exec_driver_sql("select type from sqlite_master where name = ?", (table.table,)).scalar()
        return TableKind(kind == "view")

    # --- types and values ---

    def decimal_type(self, precision: int | None, scale: int) -> str:
        return f"DECIMAL({precision or 65},{scale})"

    def reader(self, column_type: ColumnType) -> Convert | None:
        return _READERS.get(column_type.kind)

    # --- source ---

    def timestamp_expression(self, column: str) -> str:
        """Return texts and milliseconds in one form, so that they compare with each other."""
        return (
            f"case typeof({column}) when 'text' then strftime({_TIME_FORMAT}, {column}) "
            f"else strftime({_TIME_FORMAT}, {column} / 1000.0, 'unixepoch') end"
        )

    def timestamp_parameter(self, moment: dt.datetime, zone: dt.tzinfo, *, zoned: bool) -> Any:
        return local_time(moment, zone).isoformat(" ", "milliseconds")

    def prepare_for_columns(self, connection: Any) -> None:
        connection.text_factory = bytes  # half of a row's time would be the calls that decode its texts

    def horizon(self, open_connection: Callable[[], Any]) -> Horizon:
        return SqliteHorizon()

    def writer(self, connection: Any, zone: ZoneInfo) -> Writer:
        return SqliteWriter(self, connection, zone)

    def driver_error_kind(self, error: BaseException) -> ErrorKind:
        if not isinstance(error, sqlite3.Error):
            return kind_by_class(error)
        text = str(error)
        if contains(text, _LOCKED) or (isinstance(error, sqlite3.OperationalError) and contains(text, _DISK)):
            return ErrorKind.AGAIN
        if contains(text, _MISSING):
            return ErrorKind.CHANGED
        if isinstance(error, (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError)):
            return ErrorKind.RECORD
        if contains(text, ("binding parameter", "too big")):
            return ErrorKind.RECORD
        return ErrorKind.DENIED  # SQLite has no server that is away


class SqliteHorizon(Horizon):
    """Reports no open transactions: SQLite has one writer at a time, and its rows are committed in order."""

    def clock(self, connection: Any) -> dt.datetime:
        return utc_moment(query_value(connection, "select strftime('%Y-%m-%d %H:%M:%f', 'now')"))

    def open_since(self, connection: Any) -> dt.datetime | None:
        return None

    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        return frozenset()


class SqliteWriter(Writer):
    """Sends one statement, prepared once, for each row. Takes the write lock when the transaction begins."""

    begin_sql = "BEGIN IMMEDIATE"


def _timestamp(value: Any) -> dt.datetime:
    if isinstance(value, (int, float)):
        return EPOCH + dt.timedelta(milliseconds=value)
    try:
        return dt.datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError as error:
        raise DataError(f"{value!r} in a timestamp column is neither an ISO time nor a number of milliseconds.") from error


def _date(value: Any) -> dt.date:
    return _timestamp(value).date()


def _time(value: Any) -> dt.time:
    return _timestamp(value).time() if isinstance(value, (int, float)) else dt.time.fromisoformat(str(value))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _number(convert: Callable[[Any], Any]) -> Convert:
    def number(value: Any) -> Any:
        try:
            return convert(value)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise DataError(f"{value!r} is in a column that was declared to hold numbers.") from error

    return number


_READERS: dict[Kind, Convert] = {
    Kind.BOOLEAN: bool,
    Kind.STRING: _text,
    Kind.BYTES: _bytes,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.DECIMAL: _number(lambda value: Decimal(str(value))),
    **dict.fromkeys(WHOLE_NUMBERS, _number(int)),
    **dict.fromkeys((Kind.FLOAT32, Kind.FLOAT64), _number(float)),
}
