"""The dialect of SQL Server: its SQL, compared with SQLAlchemy's SQL Server dialect where that has the statement."""

# ruff: noqa: S608 (SQL is only compared)
from __future__ import annotations

import datetime as dt
import re
import sys
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql
from sqlalchemy.schema import CreateColumn, CreateTable

from sluiceway.connectors.jdbc.columns import Column, ColumnType, Kind
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings
from sluiceway.connectors.jdbc.dialects import dialect_of, parse_url
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.sink.columns import Column as SinkColumn
from sluiceway.connectors.jdbc.sink.columns import Layout
from sluiceway.connectors.jdbc.sink.config import SinkOptions
from sluiceway.connectors.jdbc.sink.tables import Table, changes
from sluiceway.connectors.jdbc.sink.types import binder_of, column_definition, column_type
from sluiceway.connectors.jdbc.source.offsets import Position
from sluiceway.connectors.jdbc.source.sql import Bounds, KeyRange, SelectBuilder
from sluiceway.data import (
    BYTES_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Type,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from sluiceway.errors import ConfigError, MissingToolError
from sluiceway.installation import install_command

# Any, because several of its constructors have no annotations.
MSSQL: Any = mssql
DIALECT = dialect_of("sqlserver")
COMPILER = MSSQL.dialect(deprecate_large_types=True)
PEOPLE = TableId(None, "dbo", "people")
OPTIONS = SinkOptions.of({"connection.url": "jdbc:sqlserver://h;databaseName=d", "auto.create": "true", "auto.evolve": "true"})
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc)


def one_line(sql: object) -> str:
    return " ".join(str(sql).split()).replace("( ", "(").replace(" )", ")")


def layout(**schemas: Schema) -> Layout:
    columns = [SinkColumn(name, schema, name == "id", "") for name, schema in schemas.items()]
    return Layout(tuple(columns), 1, lambda _: (), lambda _: ())


# --- URLs ---


def test_a_url_names_location_login_and_options() -> None:
    url = parse_url(
        "jdbc:sqlserver://h:1500;databaseName=d;user=u;password={a;b}}c};encrypt=true;loginTimeout=5;selectMethod=cursor"
    )
    assert (url.location, url.user, url.password) == ("h:1500/d", "u", "a;b}c")
    assert url.options == {"encryption": "require", "login_timeout": 5}
    assert parse_url("jdbc:sqlserver://h;database=d").location == "h:1433/d"
    assert parse_url("jdbc:sqlserver://;serverName=h;portNumber=1;user=u", "other", "secret").user == "other"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("jdbc:sqlserver://h\\instance;databaseName=d", "names an instance"),
        ("jdbc:sqlserver://h;trustServerCertificate=false", r"freetds\.conf"),
        ("jdbc:sqlserver://h;authentication=ActiveDirectoryMSI", "without a counterpart"),
        ("jdbc:sqlserver://h;portNumber=x", "not a number"),
    ],
)
def test_urls_that_cannot_be_translated_are_refused(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_url(url)


def test_a_missing_driver_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymssql", None)
    database = Database(ConnectionSettings(parse_url("jdbc:sqlserver://h;databaseName=d")))
    with pytest.raises(MissingToolError, match=re.escape(f"pymssql is missing. Run {install_command('jdbc', 'pymssql')}")):
        database.connect()


# --- tables ---


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        (Schema(Type.INT16), sa.SmallInteger()),
        (Schema(Type.INT32), sa.Integer()),
        (INT64_SCHEMA, sa.BigInteger()),
        (Schema(Type.FLOAT32), MSSQL.REAL()),
        (Schema(Type.FLOAT64), MSSQL.DOUBLE_PRECISION()),
        (Schema(Type.BOOLEAN), sa.Boolean()),
        (STRING_SCHEMA, sa.UnicodeText()),
        (BYTES_SCHEMA, sa.LargeBinary()),
        (decimal_schema(2), sa.Numeric(38, 2)),
        (date_schema(), sa.DATE()),
        (time_schema(), MSSQL.TIME(3)),
        (timestamp_schema(), MSSQL.DATETIME2(3)),
        (Schema(Type.STRING, name="io.debezium.data.Uuid"), MSSQL.UNIQUEIDENTIFIER()),
    ],
)
def test_column_types_are_those_of_sqlalchemy(schema: Schema, type_: sa.types.TypeEngine[object]) -> None:
    assert column_type(DIALECT, "f", schema) == type_.compile(dialect=COMPILER)


def test_a_table_is_created_as_sqlalchemy_creates_it() -> None:
    [created] = changes(OPTIONS, DIALECT, PEOPLE, None, layout(id=INT64_SCHEMA, name=OPTIONAL_STRING_SCHEMA))
    assert created == "CREATE TABLE [dbo].[people] ([id] BIGINT NOT NULL, [name] NVARCHAR(max) NULL, PRIMARY KEY ([id]))"
    table = sa.Table(
        "people",
        sa.MetaData(),
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("name", sa.UnicodeText(), nullable=True),
        schema="dbo",
    )
    assert one_line(CreateTable(table).compile(dialect=COMPILER)) == created.replace("[", "").replace("]", "")


def test_a_missing_column_is_added_as_sqlalchemy_defines_it() -> None:
    schema = Schema(Type.STRING, optional=True, default="it's")
    [added] = changes(OPTIONS, DIALECT, PEOPLE, Table(PEOPLE, ("id",)), layout(id=INT64_SCHEMA, city=schema))
    assert added == "ALTER TABLE [dbo].[people] ADD [city] NVARCHAR(max) DEFAULT N'it''s' NULL"
    column = sa.Column("city", sa.UnicodeText(), server_default=sa.text("N'it''s'"), nullable=True)
    sa.Table("people", sa.MetaData(), column)
    in_sqlalchemy = one_line(CreateColumn(column).compile(dialect=COMPILER))
    assert set(in_sqlalchemy.split()) == set(added.partition(" ADD ")[2].replace("[", "").replace("]", "").split())


def test_keys_have_limited_length_and_booleans_numeric_defaults() -> None:
    assert column_type(DIALECT, "k", STRING_SCHEMA, key=True) == "NVARCHAR(450)"
    assert column_definition(DIALECT, "b", Schema(Type.BOOLEAN, default=True)) == "BIT DEFAULT 1 NOT NULL"


def test_identifiers_are_quoted_as_sqlalchemy_quotes_them() -> None:
    quote = COMPILER.identifier_preparer.quote_identifier
    for name in ("order", "a]b", "100%"):
        assert DIALECT.quote(name) == quote(name)
    assert DIALECT.parse_table("shop.[my.schema].[a]]b]") == TableId("shop", "my.schema", "a]b")


# --- writes ---


def test_rows_are_written_with_plain_statements_and_merge() -> None:
    assert DIALECT.insert("t", ("id", "100%")) == "INSERT INTO t ([id], [100%]) VALUES (%s, %s)"
    assert DIALECT.update("t", ("id", "name"), 1) == "UPDATE t SET [name] = %s WHERE [id] = %s"
    assert DIALECT.delete("t", ("a", "b")) == "DELETE FROM t WHERE [a] = %s AND [b] = %s"
    assert DIALECT.upsert("t", ("id", "name"), 1) == (
        "MERGE INTO t WITH (HOLDLOCK) AS stored USING (SELECT %s AS [id], %s AS [name]) AS given "
        "ON stored.[id] = given.[id] WHEN MATCHED THEN UPDATE SET [name] = given.[name] "
        "WHEN NOT MATCHED THEN INSERT ([id], [name]) VALUES (given.[id], given.[name]);"
    )
    assert "WHEN MATCHED" not in DIALECT.upsert("t", ("id",), 1)


def test_the_offsets_table_has_its_statements() -> None:
    sql = DIALECT.offsets_sql("[sluiceway_offsets]")
    assert sql.create == (
        "CREATE TABLE [sluiceway_offsets] (connector NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL, "
        "topic NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL, [partition] INTEGER NOT NULL, next_offset BIGINT, "
        "generation BIGINT NOT NULL, PRIMARY KEY NONCLUSTERED (connector, topic, [partition]))"
    )
    assert sql.claim.startswith("MERGE INTO [sluiceway_offsets] WITH (HOLDLOCK) AS stored USING (SELECT %s AS connector, ")
    assert "UPDATE SET generation = stored.generation + 1" in sql.claim
    assert sql.update == (
        "UPDATE [sluiceway_offsets] SET next_offset = %s "
        "WHERE connector = %s AND topic = %s AND [partition] = %s AND generation = %s"
    )
    assert (sql.claim.count("%s"), sql.select.count("%s")) == (3, 3)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (timestamp_schema(), NOON, "2024-01-01 13:00:00.000"),
        (date_schema(), dt.date(2024, 1, 2), "2024-01-02"),
        (BYTES_SCHEMA, b"abc", bytearray(b"abc")),
        (Schema(Type.INT64, name="io.debezium.time.MicroTimestamp"), 1_500_000, "1970-01-01 00:00:01.500000"),
        (Schema(Type.STRING, name="io.debezium.time.ZonedTimestamp"), "2024-01-01T12:00:00.5Z", "2024-01-01 13:00:00.500000"),
    ],
)
def test_values_become_what_pymssql_writes_exactly(schema: Schema, value: object, expected: object) -> None:
    binder = binder_of(DIALECT, ZoneInfo("Europe/Berlin"), "f", schema)
    assert binder is not None
    assert binder(value) == expected


# --- reads ---


def builder(**more: str | list[str]) -> SelectBuilder:
    columns = [
        Column("id", ColumnType(Kind.INT64), "bigint", nullable=False),
        Column("at", ColumnType(Kind.TIMESTAMP), "datetime2(6)"),
        Column("doc", ColumnType(Kind.STRING, as_text=True), "xml"),
    ]
    return SelectBuilder(DIALECT, columns, table=PEOPLE, **more)  # type: ignore[arg-type]  # keywords of the test's own


def test_rows_after_a_position_are_selected_with_datetime2_parameters() -> None:
    statement = builder(incrementing="id", timestamps=["at"]).rows(Position(7, NOON), Bounds(None, NOON))
    at = "CAST(%s AS datetime2(6))"
    assert statement.sql == (
        "select [id], [at], CAST([doc] AS nvarchar(max)) as [doc], [at] as sluiceway_time from [dbo].[people] "
        f"where [at] >= {at} and ([at] > {at} or [id] > %s) and [at] < {at} order by [at], [id]"
    )
    noon = "2024-01-01 12:00:00.000000"
    assert statement.parameters == (noon, noon, 7, noon)


def test_a_key_range_is_selected_as_sqlalchemy_selects_it() -> None:
    table = sa.table("people", sa.column("id"), schema="dbo")
    selected = sa.select(table.c.id).where(table.c.id > 3, table.c.id <= 9).order_by(table.c.id)
    compiled = one_line(selected.compile(dialect=MSSQL.dialect(paramstyle="format")))
    found = builder().rows(Position(), Bounds(), KeyRange("id", 3, 9)).sql
    condition = found[found.index("where") :].replace("[", "").replace("]", "")
    assert condition == compiled[compiled.index("WHERE") :].replace("people.", "").replace("dbo.", "").lower()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tinyint", ColumnType(Kind.INT16)),
        ("decimal(10,2)", ColumnType(Kind.DECIMAL, 10, 2)),
        ("money", ColumnType(Kind.DECIMAL, 19, 4)),
        ("datetime2(7)", ColumnType(Kind.TIMESTAMP, fraction=6)),
        ("datetimeoffset(3)", ColumnType(Kind.TIMESTAMP, fraction=3, zoned=True)),
        ("nvarchar(max)", ColumnType(Kind.STRING)),
        ("uniqueidentifier", ColumnType(Kind.STRING, as_text=True)),
    ],
)
def test_types_are_parsed_from_the_catalog(text: str, expected: ColumnType) -> None:
    assert DIALECT.parse_type(text) == expected
