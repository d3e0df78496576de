"""Reads tables and columns from MySQL's information schema."""

# ruff: noqa: S608 (names are quoted, values are parameters)
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.dialects.base import TableKind
from sluiceway.connectors.jdbc.dialects.mysql.types import parse_type
from sluiceway.connectors.jdbc.dialects.sql import TableId, subquery

if TYPE_CHECKING:
    import sqlalchemy as sa

_TABLE_TYPES = {"TABLE": "BASE TABLE", "VIEW": "VIEW", "SYSTEM VERSIONED": "SYSTEM VERSIONED", "SEQUENCE": "SEQUENCE"}
_SYSTEM_SCHEMAS = ("information_schema", "mysql", "performance_schema", "sys")
_TRANSACTIONAL = frozenset({"innodb", "rocksdb", "tokudb", "ndbcluster", "xpand"})

# Field types of the protocol (https://dev.mysql.com/doc/dev/mysql-server/latest/field__types_8h.html), for queries.
_FIELD_TYPES = {
    0: "decimal",
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    14: "date",
    15: "varchar",
    16: "bit",
    245: "json",
    246: "decimal",
    247: "enum",
    248: "set",
    249: "blob",
    250: "blob",
    251: "blob",
    252: "blob",
    253: "varchar",
    254: "char",
    255: "geometry",
}
_BINARY_CHARSET = 63
_UNSIGNED_FLAG = 32


def list_tables(connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
    """Return the tables of these types in the current database, or in all databases if there is no current one."""
    wanted = [_TABLE_TYPES[each.upper()] for each in types if each.upper() in _TABLE_TYPES] or [""]
    if "BASE TABLE" in wanted:
        wanted.append("SYSTEM VERSIONED")
    current = connection.exec_driver_sql("select database()").scalar()
    marks = ",".join(["%s"] * len(wanted))
    where = "table_schema = %s" if current else f"table_schema not in {_SYSTEM_SCHEMAS!r} and %s is null"
    rows = connection.exec_driver_sql(
        f"select table_schema, table_name from information_schema.tables where {where} and table_type in ({marks}) "
        "order by table_schema, table_name",
        (current, *wanted),
    )
    return [TableId(catalog, None, table) for catalog, table in rows]


def columns(connection: sa.Connection, table: TableId) -> list[Column]:
    """Return a table's columns."""
    rows = connection.exec_driver_sql(
        "select column_name, column_type, is_nullable, column_key, extra, column_default from information_schema.columns "
        "where table_schema = coalesce(%s, database()) and table_name = %s order by ordinal_position",
        (table.catalog, table.table),
    )
    return [
        Column(
            name,
            parse_type(text),
            text,
            nullable=nullable == "YES",
            primary_key=key == "PRI",
            auto_increment="auto_increment" in extra.lower(),
            has_default=default is not None,
            generated="generated" in extra.lower() and "default_generated" not in extra.lower(),
        )
        for name, text, nullable, key, extra, default in rows
    ]


def query_columns(connection: sa.Connection, query: str) -> list[Column]:
    """Return the columns of a query."""
    raw: Any = connection.connection
    with raw.cursor() as cursor:
        cursor.execute(f"select * from {subquery(query, 'q')} where false")
        result: Any = getattr(cursor, "_result", None)  # PyMySQL has flags and character sets nowhere else
        return [_described(field) for field in result.fields]


def _described(field: Any) -> Column:
    name = _FIELD_TYPES.get(field.type_code, "text")
    binary = field.charsetnr == _BINARY_CHARSET
    if name in ("varchar", "char"):
        text = f"var{'binary' if binary else 'char'}({field.length})"
    elif name == "blob":
        text = "longblob" if binary else "longtext"
    elif name == "decimal":
        signed = not field.flags & _UNSIGNED_FLAG
        text = f"decimal({field.length - (1 if field.scale else 0) - int(signed)},{field.scale})"
    elif name == "bit":
        text = f"bit({field.length})"
    elif name in ("timestamp", "datetime", "time"):
        text = f"{name}({min(field.scale, 6)})"
    else:
        text = name + (" unsigned" if field.flags & _UNSIGNED_FLAG else "")
    return Column(field.name, parse_type(text), text)


def unique_keys(connection: sa.Connection, table: TableId) -> list[frozenset[str]]:
    """Return the columns of each unique key of a table, of which one with a beginning alone is none of the table's columns.

    A view shows none of the keys of its table, and has an unknown one.
    """
    sql = (
        "select index_name, concat(column_name, ifnull(concat('(', sub_part, ')'), '')) "
        "from information_schema.statistics where non_unique = 0 "
        "and table_schema = coalesce(%s, database()) and table_name = %s"
    )
    keys: dict[str, set[str]] = {}
    for name, column in connection.exec_driver_sql(sql, (table.catalog, table.table)):
        keys.setdefault(name, set()).add(str(column))
    return [frozenset(key) for key in keys.values()] or [frozenset()]


def table_kind(connection: sa.Connection, table: TableId) -> TableKind:
    """Return whether a table is a view, and its storage engine if that has no transactions."""
    sql = (
        "select table_type, engine from information_schema.tables "
        "where table_schema = coalesce(%s, database()) and table_name = %s"
    )
    kind, engine = connection.exec_driver_sql(sql, (table.catalog, table.table)).one()
    unsafe = engine is not None and engine.lower() not in _TRANSACTIONAL
    return TableKind("VIEW" in kind, engine if unsafe else None)
