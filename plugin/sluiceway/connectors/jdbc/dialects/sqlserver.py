"""The dialect of Microsoft SQL Server, by way of pymssql.

Tested by its SQL only, which the unit tests compare with SQLAlchemy's SQL Server dialect: no test runs it on a server.
pymssql is optional, beside the extra ``jdbc``.
"""

# ruff: noqa: S608 (names are quoted, values are parameters)
from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import OTHER, TEXT, Column, ColumnType, Kind
from sluiceway.connectors.jdbc.dialects.base import Dialect, TableKind
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind, error_number, kind_by_number, numbered_kind, numbers
from sluiceway.connectors.jdbc.dialects.horizon import APPLICATION, Horizon, query_rows, query_value, utc_moment
from sluiceway.connectors.jdbc.dialects.sql import MARK, SqlBuilder, TableId
from sluiceway.connectors.jdbc.dialects.values import ISO_TEXTS, SinkValue, decimal_in_plain_digits, local_time
from sluiceway.connectors.jdbc.dialects.writer import Writer
from sluiceway.connectors.jdbc.url import CONNECTION_URL, DatabaseUrl, Login, Parameters, host_and_port, is_true, renamed
from sluiceway.data import Type
from sluiceway.data.logical import DATE, TIME, TIMESTAMP
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    import sqlalchemy as sa

_PORT = 1433
_CONNECT_SECONDS = 10

_PROPERTY = re.compile(r";\s*(?P<name>[^=;]+)=(?:\{(?P<braced>(?:[^}]|\}\})*)\}|(?P<plain>[^;]*))")


def _certificates(value: str) -> Mapping[str, object]:
    if not is_true(value):
        raise ValueError("has no effect here: FreeTDS checks certificates as freetds.conf says; leave it out")
    return {}


# https://learn.microsoft.com/sql/connect/jdbc/setting-the-connection-properties
_PARAMETERS = Parameters(
    translated={
        "encrypt": lambda value: {"encryption": "off" if value.lower() in ("false", "optional", "no") else "require"},
        "trustServerCertificate": _certificates,
        "applicationName": renamed("appname"),
        "loginTimeout": renamed("login_timeout", int),
        "socketTimeout": renamed("timeout", lambda value: max(1, -(-int(value) // 1000))),
    },
    ignored=frozenset(
        {
            "sendStringParametersAsUnicode",
            "selectMethod",
            "responseBuffering",
            "packetSize",
            "useBulkCopyForBatchInsert",
            "statementPoolingCacheSize",
            "disableStatementPooling",
            "sendTimeAsDatetime",
            "lastUpdateCount",
            "workstationID",
        }
    ),
)
_DATABASE_PROPERTIES = ("databaseName", "database")
_USER_PROPERTIES = ("user", "userName")

_COLUMN_TYPES: dict[Type | str, str] = {
    Type.INT8: "SMALLINT",  # TINYINT has no sign
    Type.INT16: "SMALLINT",
    Type.INT32: "INTEGER",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "DOUBLE PRECISION",
    Type.BOOLEAN: "BIT",
    Type.STRING: "NVARCHAR(max)",
    Type.BYTES: "VARBINARY(max)",
    DATE: "DATE",
    TIME: "TIME(3)",
    TIMESTAMP: "DATETIME2(3)",
    "io.debezium.time.Timestamp": "DATETIME2(3)",
    "io.debezium.time.MicroTimestamp": "DATETIME2(6)",
    "io.debezium.time.NanoTimestamp": "DATETIME2(6)",
    "io.debezium.time.ZonedTimestamp": "DATETIME2(6)",
    "io.debezium.time.Date": "DATE",
    "io.debezium.time.Time": "TIME(3)",
    "io.debezium.time.MicroTime": "TIME(6)",
    "io.debezium.time.NanoTime": "TIME(6)",
    "io.debezium.time.ZonedTime": "TIME(6)",
    "io.debezium.data.Json": "NVARCHAR(max)",
    "io.debezium.data.Uuid": "UNIQUEIDENTIFIER",
    "io.debezium.data.Xml": "XML",
    "io.debezium.data.VariableScaleDecimal": "NUMERIC(38, 18)",
}
_DIGITS = 38

_KINDS = {
    "bit": ColumnType(Kind.BOOLEAN),
    "tinyint": ColumnType(Kind.INT16),  # 0 to 255
    "smallint": ColumnType(Kind.INT16),
    "int": ColumnType(Kind.INT32),
    "bigint": ColumnType(Kind.INT64),
    "real": ColumnType(Kind.FLOAT32),
    "float": ColumnType(Kind.FLOAT64),
    "money": ColumnType(Kind.DECIMAL, 19, 4),
    "smallmoney": ColumnType(Kind.DECIMAL, 10, 4),
    "date": ColumnType(Kind.DATE),
    "datetime": ColumnType(Kind.TIMESTAMP, fraction=2),  # rounded to 1/300 second
    "smalldatetime": ColumnType(Kind.TIMESTAMP, fraction=0),
    **dict.fromkeys(("binary", "varbinary", "image", "timestamp", "rowversion"), ColumnType(Kind.BYTES)),
    **dict.fromkeys(("char", "varchar", "text", "nchar", "nvarchar", "ntext", "sysname"), TEXT),
}
_TYPE = re.compile(r"^(?P<name>\w+)(?:\((?P<arguments>[^)]*)\))?$")

_TABLE_TYPES = {"TABLE": "BASE TABLE", "VIEW": "VIEW"}
_COLUMNS = """
select c.name, t.name, c.precision, c.scale, c.is_nullable, c.is_identity, c.default_object_id, c.is_computed,
    (select count(*) from sys.indexes i join sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id
     where i.object_id = c.object_id and i.is_primary_key = 1 and k.column_id = c.column_id)
from sys.columns c join sys.types t on t.user_type_id = c.system_type_id
where c.object_id = object_id(%s) order by c.column_id
"""

# https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors; 20000 and above are
# FreeTDS's.
_NUMBERS = {
    ErrorKind.AGAIN: numbers("701 1105 1205 1222 3906 3960 8645 9002 10928 10929 40197 40501 40613 49918 49919 49920"),
    ErrorKind.UNREACHABLE: numbers("0 64 121 233 596 6005 10053 10054 10060 20002 20003 20004 20006 20009 20017 20047"),
    ErrorKind.CHANGED: numbers("207 208 213"),
    ErrorKind.RECORD: numbers("220 232 241 242 245 248 271 295 296 515 544 547 2601 2627 2628 8114 8115 8152 8672"),
    ErrorKind.DENIED: numbers("102 156 229 230 262 297 300 916 4060 18452 18456"),
}
_REFUSED = numbers("916 4060 18452 18456 18470 18487 18488")


class SqlServerDialect(Dialect):
    """Microsoft SQL Server 2016 and later. Dates and times are written as ISO texts, which the server converts."""

    name = "sqlserver"
    schemes = ("sqlserver",)
    url_forms = ("jdbc:sqlserver://host:1433;databaseName=database",)
    java_names = ("SqlServerDatabaseDialect",)
    quotes = ("[", "]")
    doubles_percent = False
    add_column_keyword = "ADD"
    # The default collations take names that differ only by case for equal. Clustered keys hold 900 bytes, others 1700.
    offsets_text = "NVARCHAR(255) COLLATE Latin1_General_BIN2"
    offsets_key = "PRIMARY KEY NONCLUSTERED"
    driver = "pymssql"
    sqlalchemy_name = "mssql+pymssql"
    packages = ("pymssql",)
    reading_options = {"appname": APPLICATION}
    column_types = _COLUMN_TYPES
    key_column_types = {Type.STRING: "NVARCHAR(450)", Type.BYTES: "VARBINARY(900)"}
    # pymssql writes bytes that are ASCII as text, which the server does not convert.
    adapters = {**ISO_TEXTS, SinkValue.BYTES: bytearray, SinkValue.DECIMAL: decimal_in_plain_digits}
    exact_decimals = False
    timestamp_mark = f"CAST({MARK} AS datetime2(6))"

    @classmethod
    def parse_url(cls, text: str, login: Login) -> DatabaseUrl:
        """Return the location that ``//host:port;databaseName=...;name=value`` names; a value in braces may hold semicolons."""
        address, separator, rest = text.removeprefix("//").partition(";")
        if "\\" in address or "@" in address or "/" in address:
            reason = "names an instance or a login; write //host:port;databaseName=...;user=...;password=..."
            raise ConfigError(CONNECTION_URL, "//...", reason)
        values: dict[str, str] = {}
        for found in _PROPERTY.finditer(separator + rest):
            braced = found["braced"]
            values[found["name"].strip()] = found["plain"] if braced is None else braced.replace("}}", "}")
        database = _taken(values, _DATABASE_PROPERTIES)
        password = values.pop("password") if "password" in values else None
        login = login.or_else(_taken(values, _USER_PROPERTIES), password)
        host, port = host_and_port(values.pop("serverName", "") or address, _port(values.pop("portNumber", "")))
        options = _PARAMETERS.options(values, beside_password=password is not None)
        return DatabaseUrl(cls.name, host, port, database or "", login.user, login.password, options)

    def connect_arguments(self, url: DatabaseUrl) -> dict[str, object]:
        return {"login_timeout": _CONNECT_SECONDS, **url.options}

    def refuses_login(self, error: BaseException) -> bool:
        return error_number(error) in _REFUSED

    # --- statements ---

    def upsert(self, table: str, columns: Sequence[str], keys: int) -> str:
        # Without HOLDLOCK two MERGEs may both insert the same new key.
        given = ", ".join(f"{MARK} AS {name}" for name in map(self.quote, columns))
        matches = " AND ".join(f"stored.{name} = given.{name}" for name in map(self.quote, columns[:keys]))
        changes = ", ".join(f"{name} = given.{name}" for name in map(self.quote, columns[keys:]))
        values = ", ".join(f"given.{name}" for name in map(self.quote, columns))
        return self.with_parameters(
            f"MERGE INTO {table} WITH (HOLDLOCK) AS stored USING (SELECT {given}) AS given ON {matches} "
            + (f"WHEN MATCHED THEN UPDATE SET {changes} " if changes else "")
            + f"WHEN NOT MATCHED THEN INSERT ({self.names(columns)}) VALUES ({values});"
        )

    def _create_offsets(self, table: str) -> str:
        return f"CREATE TABLE {table}"

    def _claim_offsets(self, table: str, partition: str) -> str:
        return (
            f"MERGE INTO {table} WITH (HOLDLOCK) AS stored "
            f"USING (SELECT %s AS connector, %s AS topic, %s AS {partition}) AS given ON stored.connector = given.connector "
            f"AND stored.topic = given.topic AND stored.{partition} = given.{partition} "
            "WHEN MATCHED THEN UPDATE SET generation = stored.generation + 1 "
            f"WHEN NOT MATCHED THEN INSERT (connector, topic, {partition}, next_offset, generation) "
            f"VALUES (given.connector, given.topic, given.{partition}, NULL, 1);"
        )

    # --- catalog ---

    def list_tables(self, connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
        wanted = [_TABLE_TYPES[each.upper()] for each in types if each.upper() in _TABLE_TYPES]
        rows = connection.exec_driver_sql(
            "select table_catalog, table_schema, table_name, table_type from information_schema.tables "
            "order by table_schema, table_name"
        )
        return [TableId(*row[:3]) for row in rows if row[3] in wanted]

    def columns(self, connection: sa.Connection, table: TableId) -> list[Column]:
        rows = connection.exec_driver_sql(_COLUMNS, (self.qualified(table),))
        found = []
        for name, kind, precision, scale, nullable, identity, default, computed, key in rows:
            text = kind
            if kind in ("decimal", "numeric"):
                text = f"{kind}({precision},{scale})"
            elif kind in ("datetime2", "datetimeoffset", "time"):
                text = f"{kind}({scale})"
            found.append(
                Column(
                    name,
                    self.parse_type(text),
                    text,
                    nullable=bool(nullable),
                    primary_key=bool(key),
                    auto_increment=bool(identity),
                    has_default=bool(default),
                    generated=bool(computed) or kind in ("timestamp", "rowversion"),
                )
            )
        return found

    def query_columns(self, connection: sa.Connection, query: str) -> list[Column]:
        rows = connection.exec_driver_sql(
            "select name, system_type_name, is_nullable from sys.dm_exec_describe_first_result_set(%s, null, 0) "
            "order by column_ordinal",
            (query,),
        )
        return [Column(name, self.parse_type(text), text, nullable=bool(nullable)) for name, text, nullable in rows]

    def parse_type(self, text: str) -> ColumnType:
        """Return the type that ``sys.types`` describes: ``int``, ``decimal(10,2)``, ``datetime2(7)``, ``nvarchar(max)``."""
        parts = _TYPE.match(text.strip().lower())
        if parts is None:
            return OTHER
        name = parts["name"]
        arguments = [int(each) for each in (parts["arguments"] or "").split(",") if each.strip().isdigit()]
        if name in ("decimal", "numeric"):
            precision, scale = [*arguments, *(18, 0)[len(arguments) :]][:2]
            return ColumnType(Kind.DECIMAL, precision, scale)
        if name in ("datetime2", "datetimeoffset", "time"):
            fraction = min(arguments[0] if arguments else 7, 6)
            kind = Kind.TIME if name == "time" else Kind.TIMESTAMP
            return ColumnType(kind, fraction=fraction, zoned=name == "datetimeoffset")
        return _KINDS.get(name, OTHER)

    def table_kind(self, connection: sa.Connection, table: TableId) -> TableKind:
        name = self.qualified(table)
        kind = connection.exec_driver_sql("select type from sys.objects where object_id = object_id(%s)", (name,)).scalar()
        return TableKind(str(kind).strip() == "V")

    # --- types and values ---

    def decimal_type(self, precision: int | None, scale: int) -> str:
        return f"NUMERIC({min(precision or _DIGITS, _DIGITS)}, {min(scale, _DIGITS)})"

    def default_value(self, literal: str) -> str:
        if literal.startswith("'"):
            return f"N{literal}"
        return {"TRUE": "1", "FALSE": "0"}.get(literal, literal)

    def select_field(self, column: Column) -> str:
        name = self.quote(column.name)
        return f"CAST({name} AS nvarchar(max)) as {name}" if column.type.as_text else name

    def timestamp_parameter(self, moment: dt.datetime, zone: dt.tzinfo, *, zoned: bool) -> Any:
        return local_time(moment, zone).isoformat(" ", "microseconds")

    def horizon(self, open_connection: Callable[[], Any]) -> Horizon:
        return SqlServerHorizon(self)

    def writer(self, connection: Any, zone: ZoneInfo) -> Writer:
        return SqlServerWriter(self, connection, zone)

    def driver_error_kind(self, error: BaseException) -> ErrorKind:
        return numbered_kind(error, lambda number: kind_by_number(number, _NUMBERS, lambda each: 20000 <= each < 20100))


class SqlServerHorizon(Horizon):
    """Reads ``sys.dm_tran_active_transactions`` and ``sys.dm_tran_locks``, which need VIEW SERVER STATE."""

    hint = "GRANT VIEW SERVER STATE TO the user's login"

    def __init__(self, sql: SqlBuilder) -> None:
        self._sql = sql

    def may_see(self, connection: Any) -> bool:
        return bool(query_value(connection, "select has_perms_by_name(null, null, 'VIEW SERVER STATE')"))

    def clock(self, connection: Any) -> dt.datetime:
        return utc_moment(query_value(connection, "select sysutcdatetime()"))

    def open_since(self, connection: Any) -> dt.datetime | None:
        found = query_value(  # starts are in the zone of the server's machine
            connection,
            "select dateadd(minute, -datepart(tzoffset, sysdatetimeoffset()), min(t.transaction_begin_time)) "
            "from sys.dm_tran_active_transactions t "
            "join sys.dm_tran_session_transactions s on s.transaction_id = t.transaction_id "
            "join sys.dm_exec_sessions e on e.session_id = s.session_id "
            "where s.session_id <> @@spid and e.program_name <> %s",
            APPLICATION,
        )
        return None if found is None else utc_moment(found)

    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        sql = (
            "select distinct request_owner_id from sys.dm_tran_locks where resource_type = 'OBJECT' "
            "and request_status = 'GRANT' and request_mode in ('IX', 'SIX', 'UIX', 'X', 'BU') "
            "and resource_database_id = db_id() and request_session_id <> @@spid"
        )
        if table is None:
            return frozenset(str(row[0]) for row in query_rows(connection, sql))
        sql += " and resource_associated_entity_id = object_id(%s)"
        return frozenset(str(row[0]) for row in query_rows(connection, sql, self._sql.qualified(table)))


class SqlServerWriter(Writer):
    """Sends one statement for each row. SQL Server has savepoints of its own form, and no release."""

    def savepoint(self) -> None:
        self.execute("SAVE TRANSACTION sluiceway_batch")

    def roll_back_to_savepoint(self) -> None:
        self.execute("ROLLBACK TRANSACTION sluiceway_batch")

    def release_savepoint(self) -> None:
        """Do nothing: the next savepoint of the same name replaces this one."""


def _taken(values: dict[str, str], names: Sequence[str]) -> str | None:
    """Remove properties that mean the same; return the first one's value, None if there is none."""
    found = [values.pop(name) for name in names if name in values]
    return found[0] if found else None


def _port(text: str) -> int:
    """Return a port number, SQL Server's default for an empty text. Raises ConfigError."""
    if text and not text.isdigit():
        raise ConfigError(CONNECTION_URL, "...portNumber=...", "is not a number")
    return int(text or _PORT)
