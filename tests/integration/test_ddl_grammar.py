"""Each clause of the DDL grammar, run on a real MariaDB: the model then has the table's columns, or the table is read again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, JdbcType, TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import apply_statement
from support import ddl_grammar
from support.mariadb import MariaDbServer

pytestmark = pytest.mark.long

T = TableId("db", "t")
# The type that SHOW CREATE TABLE names for another one.
_SAME = {
    JdbcType.BOOLEAN: JdbcType.SMALLINT,
    JdbcType.REAL: JdbcType.DOUBLE,
    JdbcType.NUMERIC: JdbcType.DECIMAL,
    JdbcType.NCHAR: JdbcType.CHAR,
    JdbcType.NVARCHAR: JdbcType.VARCHAR,
}
_SIZED = frozenset({JdbcType.DECIMAL, JdbcType.BIT, JdbcType.TIME, JdbcType.TIMESTAMP, JdbcType.TIMESTAMP_WITH_TIMEZONE})
# Debezium's model differs from the server in these: the optionality of AUTO_INCREMENT, the unsigned numbers of ZEROFILL, the
# precision of FLOAT(30), and the key of a table that has lost its own and has a unique index.
_DEBEZIUMS = ("zerofill", "auto_increment unique", "float(30)", "drop primary key", "`primary`")


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDbServer]:
    with MariaDbServer() as started:
        yield started


def _model(sql: str) -> Tables:
    tables = Tables(charsets={"db": "utf8mb4"})
    apply_statement(tables, sql, "db")
    return tables


def _fact(column: ColumnDefinition) -> tuple[object, ...]:
    is_json = column.type_name == "JSON"
    kind = JdbcType.VARCHAR if is_json else _SAME.get(column.jdbc_type, column.jdbc_type)
    charset = "utf8mb4" if is_json else {"utf8": "utf8mb3"}.get(column.charset or "", column.charset)
    size = (column.length, column.scale) if kind in _SIZED else None
    return column.name, kind, "UNSIGNED" in column.type_name, size, column.optional, charset, column.enum_values


def _facts(table: TableDefinition | None) -> tuple[list[tuple[object, ...]], tuple[str, ...]]:
    return ([], ()) if table is None else ([_fact(column) for column in table.columns], table.primary_key)


def test_the_model_follows_each_clause(server: MariaDbServer) -> None:
    run = refused = 0
    wrong: list[str] = []
    server.execute("create database db")
    with server.database("db").connect() as connection, connection.cursor() as cursor:

        def shown() -> str:
            cursor.execute("show create table t")
            row = cursor.fetchone()
            assert row is not None
            return str(row[1])

        for create, statement in ddl_grammar.statements():
            cursor.execute("create or replace database db charset utf8mb4")
            cursor.execute("use db")
            cursor.execute(ddl_grammar.TABLE.replace("table t", "table u", 1).replace("unique key ua (a), ", ""))
            cursor.execute(create)
            tables = _model(shown())
            outcome = apply_statement(tables, statement, "db")
            try:
                cursor.execute(statement)
            except Exception:  # noqa: BLE001 (a clause of another version or of MySQL)
                refused += 1
                continue
            run += 1
            cursor.execute("drop temporary table if exists t")
            if T not in outcome.unread and not any(word in statement for word in _DEBEZIUMS):
                expected, found = _facts(_model(shown()).get(T)), _facts(tables.get(T))
                if expected != found:
                    wrong.append(f"{statement}: {found}, not {expected}")
    assert not wrong
    assert run > 2 * refused > 0
