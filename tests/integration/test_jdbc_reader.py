"""Rows of databases read by Python drivers are the rows that Spark reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluiceway.connectors.spark.jdbc_reader import JdbcReaders
from sluiceway.connectors.spark.ranges import ValueRange
from sluiceway.connectors.spark.reading import check_names, load
from sluiceway.connectors.spark.source_config import SourceConfig
from sluiceway.errors import ConnectError
from sluiceway.spark.session import local_conf, spark_context
from sluiceway.stack import maven
from support.database import MYSQL, POSTGRESQL, SQLITE, DatabaseForTest
from support.eventually import LIMIT

pytestmark = pytest.mark.spark

DRIVERS = {
    POSTGRESQL: ("org.postgresql:postgresql:42.7.7", "org.postgresql.Driver"),
    MYSQL: ("com.mysql:mysql-connector-j:9.4.0", "com.mysql.cj.jdbc.Driver"),
    SQLITE: ("org.xerial:sqlite-jdbc:3.50.3.0", "org.sqlite.JDBC"),
}
# Types, and two of their values as SQL; each column also has a null.
TYPES = {
    POSTGRESQL: {
        "smallint": ("-32768", "32767"),
        "integer": ("-2147483648", "2147483647"),
        "bigint": ("-9223372036854775808", "9223372036854775807"),
        "real": ("0.1", "'-Infinity'"),
        "double precision": ("0.1", "'NaN'"),
        "boolean": ("true", "false"),
        "text": ("'ä\U0001f389 %s {}'", "''"),
        "varchar(10)": ("'a '", "'0123456789'"),
        "bytea": (r"'\x00ff'", "''"),
        "date": ("'0001-01-01'", "'9999-12-31'"),
        "numeric(38,2)": ("-123456789012345678901234567890123456.78", "0.01"),
        "numeric(5,0)": ("-99999", "0"),
        "timestamp with time zone": ("'1900-01-01 00:00:00.000001+00'", "'2026-07-01 12:00:00.999999+02'"),
        "timestamp without time zone": ("'1900-01-01 00:00:00.000001'", "'2026-03-29 02:30:00'"),
    },
    MYSQL: {
        "smallint": ("-32768", "32767"),
        "int unsigned": ("0", "4294967295"),
        "bigint": ("-9223372036854775808", "9223372036854775807"),
        "bigint unsigned": ("0", "18446744073709551615"),
        "double": ("0.1", "-1e300"),
        "text": ("'ä\U0001f389 %s {}'", "''"),
        "varchar(10)": ("'a '", "'0123456789'"),
        "blob": ("x'00ff'", "''"),
        "date": ("'1000-01-01'", "'9999-12-31'"),
        "decimal(38,2)": ("-123456789012345678901234567890123456.78", "0.01"),
        "timestamp(6)": ("'1971-01-01 00:00:00.000001'", "'2026-07-01 12:00:00.999999'"),
        "datetime(6)": ("'1900-01-01 00:00:00.000001'", "'2026-03-29 02:30:00'"),
    },
    SQLITE: {
        "integer": ("-2147483648", "2147483647"),
        "bigint": ("-9223372036854775808", "9223372036854775807"),
        "real": ("0.1", "1e300"),
        "text": ("'ä\U0001f389 %s {}'", "''"),
        "blob": ("x'00ff'", "x''"),
    },
}
# Types of which Spark reads other values than Connect's JDBC connectors do.
ONLY_SPARK = {
    POSTGRESQL: ["char(5)", "uuid", "json", "numeric", "integer[]", "time", "interval", "bit(8)"],
    MYSQL: ["tinyint(1)", "year", "bit(1)", "time", "char(5)"],
    SQLITE: ["decimal(10,2)", "timestamp", "date"],
}


def end_jvm() -> None:
    """End this process's JVM, which keeps the time zone and the classes of its first Spark context."""
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(LIMIT)
        SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    end_jvm()
    jars = ",".join(map(str, maven.resolve([jar for jar, _ in DRIVERS.values()])))
    conf = {**local_conf(), "spark.jars": jars}
    conf["spark.driver.extraJavaOptions"] += " -Duser.timezone=UTC"
    context = spark_context("test-jdbc-reader", conf, master="local[2]")
    session = SparkSession(context)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    context.stop()
    end_jvm()


def source(database: DatabaseForTest, **more: str) -> SourceConfig:
    login = {} if database.dialect == SQLITE else {"option.user": database.user, "option.password": database.password}
    url = database.jdbc_url.replace("jdbc:mariadb", "jdbc:mysql")
    driver = {"option.url": url, "option.driver": DRIVERS[database.dialect][1]}
    place = {} if "query" in more else {"table": "o"}
    return SourceConfig.of({"format": "jdbc", "topic": "t", "incrementing.column.name": "id", **place, **driver, **login, **more})


def by_both(spark: SparkSession, config: SourceConfig, low: int = 0, high: int = 100) -> tuple[list[Any], list[Any]] | None:
    """Return the rows that Python's driver and Spark read, ordered by id; None if only Spark may read them."""
    frame = load(spark, config)
    readers = JdbcReaders(config).readers(frame, [ValueRange("id", low, high)])
    if readers is None:
        return None
    found = pa.Table.from_batches(list(readers[0].batches()), readers[0].schema)
    return rows(found), rows(frame.where(f"id > {low} and id <= {high}").toArrow())


def rows(table: pa.Table) -> list[Any]:
    ordered = sorted(table.to_pylist(), key=lambda row: int(row["id"]))
    return [[repr(value) for value in row.values()] for row in ordered]


def create(database: DatabaseForTest, *types: str) -> None:
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(types))
    database.execute(f"create table o (id bigint primary key, {columns})")


def test_all_types_are_read_as_spark_reads_them(spark: SparkSession, database: DatabaseForTest) -> None:
    types = TYPES[database.dialect]
    create(database, *types)
    for number, values in enumerate([*zip(*types.values(), strict=True), ["null"] * len(types)], 1):
        database.execute(f"insert into o values ({number}, {', '.join(values)})")  # noqa: S608
    found = by_both(spark, source(database))
    assert found is not None
    mine, theirs = found
    assert mine == theirs
    assert len(mine) == 3


def test_only_spark_reads_types_that_it_reads_otherwise(spark: SparkSession, database: DatabaseForTest) -> None:
    for kind in ONLY_SPARK[database.dialect]:
        create(database, kind)
        assert by_both(spark, source(database)) is None, kind
        database.execute("drop table o")


def test_a_range_excludes_its_start_and_has_its_end(spark: SparkSession, database: DatabaseForTest) -> None:
    create(database, "integer")
    database.execute(f"insert into o values {', '.join(f'({each}, {each})' for each in range(1, 30_001))}")  # noqa: S608
    found = by_both(spark, source(database), 2, 25_000)
    assert found is not None
    mine, theirs = found
    assert mine == theirs
    assert [int(re.sub(r"\D", "", row[0])) for row in mine] == list(range(3, 25_001))


def test_a_query_is_read_as_spark_reads_it(spark: SparkSession, database: DatabaseForTest) -> None:
    create(database, "varchar(10)")
    database.execute("insert into o values (1, 'a%b'), (2, 'ab'), (3, 'a%c')")
    found = by_both(spark, source(database, query="select id, c0 as name from o where c0 like 'a%%' and c0 <> 'ab'"))
    assert found is not None
    mine, theirs = found
    assert mine == theirs
    assert [row[1] for row in mine] == ["'a%b'", "'a%c'"]


def test_names_are_quoted(spark: SparkSession, sqlite: DatabaseForTest) -> None:
    sqlite.execute('create table o ("Id ""x" integer primary key, "a.b" text, "select" text)')
    sqlite.execute("insert into o values (1, 'a', 'b')")
    config = source(sqlite, **{"incrementing.column.name": 'Id "x'})
    [reader] = JdbcReaders(config).readers(load(spark, config), [ValueRange('Id "x', 0, 1)]) or ()
    assert [batch.to_pylist() for batch in reader.batches()] == [[{'Id "x': 1, "a.b": "a", "select": "b"}]]


def test_spark_reads_with_options_of_its_own(
    spark: SparkSession, sqlite: DatabaseForTest, caplog: pytest.LogCaptureFixture
) -> None:
    create(sqlite, "text")
    caplog.set_level("INFO")
    assert by_both(spark, source(sqlite, **{"option.fetchsize": "10"})) is None
    assert "fetchsize can only be given to Spark" in caplog.text


def test_a_value_of_another_type_than_the_columns_is_named(spark: SparkSession, sqlite: DatabaseForTest) -> None:
    create(sqlite, "bigint")
    sqlite.execute("insert into o values (1, 'seven')")
    with pytest.raises(ConnectError, match=r"c0 \(bigint\) in o.*seven.*cast the column in a query"):
        by_both(spark, source(sqlite))


def test_texts_that_are_not_utf_8_are_read_as_java_reads_them(spark: SparkSession, sqlite: DatabaseForTest) -> None:
    create(sqlite, "text")
    sqlite.execute("insert into o values (1, cast(x'61ff62' as text)), (2, null), (3, 7)")
    found = by_both(spark, source(sqlite))
    assert found is not None
    mine, theirs = found
    assert mine == theirs
    assert [row[1] for row in mine] == ["'a\ufffdb'", "None", "'7'"]


def test_a_table_that_was_dropped_is_named(spark: SparkSession, sqlite: DatabaseForTest) -> None:
    create(sqlite, "text")
    config = source(sqlite)
    [reader] = JdbcReaders(config).readers(load(spark, config), [ValueRange("id", 0, 1)]) or ()
    sqlite.execute("drop table o")
    with pytest.raises(ConnectError, match=r"o of .* cannot be read: no such table: o"):
        list(reader.batches())


def test_no_password_is_shown(spark: SparkSession, postgresql: DatabaseForTest) -> None:
    create(postgresql, "text")
    config = source(postgresql)
    readers = JdbcReaders(config).readers(load(spark, config), [ValueRange("id", 0, 1)])
    assert readers is not None
    assert postgresql.password not in repr(readers)


@pytest.mark.parametrize("more", [{"option.fetchsize": "10"}, {"incrementing.column.name": ""}])
def test_spark_does_not_read_the_names_of_columns_for_values(more: dict[str, str]) -> None:
    config = {"format": "jdbc", "topic": "t", "incrementing.column.name": "id", "table": "o", **more}
    url = "jdbc:mariadb://db/shop"
    with pytest.raises(ConnectError, match="jdbc:mysql with the parameter permitMysqlScheme"):
        check_names(SourceConfig.of({**config, "option.URL": url}))
    check_names(SourceConfig.of({**config, "option.URL": f"{url}?sessionVariables=sql_mode=ANSI_QUOTES"}))
