"""Reads tables and columns from PostgreSQL's system catalogs."""

# ruff: noqa: S608 (names are quoted, values are parameters)
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.dialects.base import TableKind
from sluiceway.connectors.jdbc.dialects.postgresql.types import parse_type
from sluiceway.connectors.jdbc.dialects.sql import TableId, subquery

if TYPE_CHECKING:
    import sqlalchemy as sa

# pg_class.relkind by JDBC's table types.
_RELATIONS = {
    "TABLE": "r",
    "PARTITIONED TABLE": "p",
    "VIEW": "v",
    "MATERIALIZED VIEW": "m",
    "FOREIGN TABLE": "f",
}

_LIST = """
select current_database(), n.nspname, c.relname from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind = any(:kinds) and n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg\\_toast%'
and n.nspname not like 'pg\\_temp%' order by n.nspname, c.relname
"""
# Children without columns of their own: partitions, and tables that inherit all their columns. Their rows are the parent's, too.
_PARENTS = """
select current_database(), cn.nspname, c.relname, current_database(), pn.nspname, p.relname from pg_catalog.pg_inherits i
join pg_catalog.pg_class c on c.oid = i.inhrelid join pg_catalog.pg_namespace cn on cn.oid = c.relnamespace
join pg_catalog.pg_class p on p.oid = i.inhparent join pg_catalog.pg_namespace pn on pn.oid = p.relnamespace
where c.relkind in ('r', 'p', 'f') and not exists (select from pg_catalog.pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attinhcount = 0)
"""
# A column of a domain has the type that the domain is based on.
_COLUMNS = """
select a.attname,
    pg_catalog.format_type(case when t.typtype = 'd' then t.typbasetype else a.atttypid end,
                           case when t.typtype = 'd' then t.typtypmod else a.atttypmod end),
    a.attnotnull or (t.typtype = 'd' and t.typnotnull),
    coalesce(a.attnum = any(i.indkey), false),
    a.attidentity <> '' or coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid) like 'nextval(%%', false),
    d.adbin is not null, a.attgenerated <> ''
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_type t on t.oid = a.atttypid
left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
left join pg_catalog.pg_index i on i.indrelid = c.oid and i.indisprimary
where c.oid = pg_catalog.to_regclass(%s) and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
_KIND = "select relkind::text from pg_catalog.pg_class where oid = pg_catalog.to_regclass(%s)"


def list_tables(connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
    """Return the tables of these types in the current database."""
    import sqlalchemy as sa

    kinds = [_RELATIONS[each.upper()] for each in types if each.upper() in _RELATIONS]
    if "r" in kinds:
        kinds.append("p")
    rows = connection.execute(sa.text(_LIST).bindparams(sa.bindparam("kinds", kinds)))
    return [TableId(*row) for row in rows]


def parents(connection: sa.Connection) -> dict[TableId, list[TableId]]:
    """Return the tables whose rows and columns are all in other ones, with those."""
    found: dict[TableId, list[TableId]] = {}
    for row in connection.exec_driver_sql(_PARENTS):
        found.setdefault(TableId(*row[:3]), []).append(TableId(*row[3:]))
    return found


def columns(connection: sa.Connection, sql_name: str) -> list[Column]:
    """Return the columns of the table that this name means in SQL."""
    return [
        Column(
            field,
            parse_type(text),
            text,
            nullable=not not_null,
            primary_key=key,
            auto_increment=auto,
            has_default=default,
            generated=generated,
        )
        for field, text, not_null, key, auto, default, generated in connection.exec_driver_sql(_COLUMNS, (sql_name,))
    ]


def query_columns(connection: sa.Connection, query: str) -> list[Column]:
    """Return the columns of a query."""
    raw: Any = connection.connection
    with raw.cursor() as cursor:
        cursor.execute(f"select * from {subquery(query, 'q')} where false")
        result: Any = getattr(cursor, "pgresult", None)
        found = [(result.fname(i).decode(), result.ftype(i), result.fmod(i)) for i in range(result.nfields)]
        described = []
        for name, oid, modifier in found:
            cursor.execute("select pg_catalog.format_type(%s, %s)", (oid, modifier))
            [(text,)] = cursor.fetchall()
            described.append(Column(name, parse_type(text), text))
    return described


def table_kind(connection: sa.Connection, sql_name: str) -> TableKind:
    """Return the kind of the table that this name means in SQL."""
    return TableKind(connection.exec_driver_sql(_KIND, (sql_name,)).scalar() in ("v", "m"))
