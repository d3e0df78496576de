"""PostgreSQL, by way of psycopg 3."""

# ruff: noqa: S608 (names are quoted, values are parameters)
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import OTHER, TEXT, Column, ColumnType, Kind
from sluiceway.connectors.jdbc.dialects.base import Dialect, TableId

if TYPE_CHECKING:
    import sqlalchemy as sa

_PLAIN = {
    "boolean": Kind.BOOLEAN,
    "smallint": Kind.INT16,
    "integer": Kind.INT32,
    "bigint": Kind.INT64,
    "oid": Kind.INT64,
    "real": Kind.FLOAT32,
    "double precision": Kind.FLOAT64,
    "bytea": Kind.BYTES,
    "date": Kind.DATE,
}
_TEXTS = frozenset({"text", "character varying", "character", "name", "citext", '"char"', "bpchar"})
_TYPE = re.compile(r"^(?P<name>[^(\[]+?)(?:\((?P<arguments>[^)]*)\))?(?P<rest> with(?:out)? time zone)?$")

# Kinds of relations (pg_class.relkind) by what JDBC calls them.
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
# A domain is shown as the type that it is built on.
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


class PostgreSqlDialect(Dialect):
    """PostgreSQL. Types without a counterpart in Connect (uuid, json, interval, inet, ...) are texts."""

    name = "postgresql"

    def prepare(self, connection: Any) -> None:
        """Speak UTC, and in forms that do not depend on the server's settings."""
        before, connection.autocommit = connection.autocommit, True
        with connection.cursor() as cursor:
            cursor.execute(
                "select set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO, YMD', false), "
                "set_config('IntervalStyle', 'postgres', false), set_config('extra_float_digits', '1', false), "
                "set_config('bytea_output', 'hex', false)"
            )
        connection.autocommit = before

    def list_tables(self, connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
        import sqlalchemy as sa

        kinds = [_RELATIONS[each.upper()] for each in types if each.upper() in _RELATIONS]
        if "r" in kinds:
            kinds.append("p")  # for its partitions hold the rows, and nobody wants those one by one and the whole as well
        statement = sa.text(_LIST + "").bindparams(sa.bindparam("kinds", kinds))
        rows = connection.execute(statement)
        return [TableId(*row) for row in rows]

    def columns(self, connection: sa.Connection, table: TableId) -> list[Column]:
        name = ".".join(PostgreSqlDialect().quote(part) for part in (table.schema, table.table) if part)
        rows = connection.exec_driver_sql(_COLUMNS, (name if self._quote else self.qualified(table),))
        return [
            Column(
                field,
                self.column_type(text),
                text,
                nullable=not not_null,
                primary_key=key,
                auto_increment=auto,
                has_default=default,
                generated=generated,
            )
            for field, text, not_null, key, auto, default, generated in rows
        ]

    def query_columns(self, connection: sa.Connection, query: str) -> list[Column]:
        raw: Any = connection.connection
        with raw.cursor() as cursor:
            cursor.execute(f"select * from ({query}) as q where false")
            result: Any = getattr(cursor, "pgresult", None)
            found = [(result.fname(i).decode(), result.ftype(i), result.fmod(i)) for i in range(result.nfields)]
            columns = []
            for name, oid, modifier in found:
                cursor.execute("select pg_catalog.format_type(%s, %s)", (oid, modifier))
                [(text,)] = cursor.fetchall()
                columns.append(Column(name, self.column_type(text), text))
        return columns

    def column_type(self, text: str) -> ColumnType:
        """Return the type that ``format_type`` calls this: ``numeric(10,2)``, ``time(3) with time zone``, ``integer[]``."""
        if text.endswith("[]"):
            return ColumnType(Kind.ARRAY, items=self.column_type(text[:-2]))
        parts = _TYPE.match(text)
        if parts is None:
            return OTHER
        name, arguments = (
            parts["name"].strip(),
            [int(each) for each in (parts["arguments"] or "").split(",") if each.strip().lstrip("-").isdigit()],
        )
        if name == "numeric":
            precision, scale = [*arguments, 0][:2] if arguments else (None, None)
            return ColumnType(Kind.DECIMAL, precision, scale)
        if name in ("timestamp", "time"):
            fraction = arguments[0] if arguments else 6
            zoned = parts["rest"] == " with time zone"
            return ColumnType(Kind.TIMESTAMP if name == "timestamp" else Kind.TIME, fraction=fraction, zoned=zoned)
        if name == "bit" and arguments in ([], [1]):
            return ColumnType(Kind.BOOLEAN, as_text=False, precision=1)
        if name in _TEXTS:
            return TEXT
        return ColumnType(_PLAIN[name]) if name in _PLAIN else OTHER
