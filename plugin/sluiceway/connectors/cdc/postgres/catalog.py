"""Reads tables, columns and keys from the system catalogs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.cdc.columns import Column, FieldType
from sluiceway.connectors.cdc.filters import Matcher, TableId
from sluiceway.connectors.cdc.postgres.connection import quoted
from sluiceway.connectors.cdc.postgres.pgoutput import Relation
from sluiceway.connectors.cdc.postgres.type_info import UNCONSTRAINED_DIGITS
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.data import Struct

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]


_TABLES = """
select n.nspname, c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and c.relpersistence <> 't'
and n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg\\_toast%' and n.nspname not like 'pg\\_temp%'
"""
_COLUMNS = """
select a.attname, a.atttypid, a.atttypmod, a.attnotnull, pg_catalog.pg_get_expr(d.adbin, d.adrelid), a.attgenerated <> '',
       pg_catalog.col_description(a.attrelid, a.attnum)
from pg_catalog.pg_attribute a left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
_KEY = """
select a.attname from (
  select i.indrelid, i.indkey from pg_catalog.pg_index i
  where i.indrelid = %s and i.indisunique and i.indpred is null and i.indexprs is null
  order by i.indisprimary desc, i.indexrelid::regclass::text limit 1
) i cross join lateral unnest(i.indkey) with ordinality as k(attnum, ord)
join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum order by k.ord
"""
# A literal with casts alone: of an expression with other parts, it is not the value.
_LITERAL = re.compile(r"""\(*(?P<form>[BE]?)'(?P<text>(?:[^']|'')*)'(?:\)*::[\w .,"()[\]]+)*(?: COLLATE [\w."]+)?\)*""")
_NUMBER = re.compile(r"\(*(?P<text>-?[\d.]+|true|false)(?:\)*::[\w .,\"()]+)*\)*")
_FUNCTION = re.compile(r"^\(?[A-Za-z0-9_.]+\((?:.+(?:, ?.+)*)?\)")

# What Debezium puts for a default that a function computes, by type.
_GENERATED = {
    **dict.fromkeys(("int2", "int4", "int8", "float4", "float8", "numeric"), "0"),
    **dict.fromkeys(("text", "varchar", "bpchar", "citext", "xml"), ""),
    "bool": "f",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "interval": "00:00:00",
    "json": "{}",
    "jsonb": "{}",
}
_INFINITE_DATES = {"infinity": 169_560_311, "-infinity": -170_999_002}  # Java's largest and smallest dates, cut to 32 bits
_BOOLEANS = {"true": "t", "false": "f", "t": "t", "f": "f", "yes": "t", "no": "f", "1": "t", "0": "f"}


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    name: str
    type_oid: int
    typmod: int
    not_null: bool
    default: str | None
    generated: bool
    comment: str | None


@dataclass(frozen=True, slots=True)
class CatalogTable:
    id: TableId
    columns: tuple[CatalogColumn, ...]
    key: tuple[str, ...]

    def column(self, name: str) -> CatalogColumn | None:
        return next((column for column in self.columns if column.name == name), None)


class Catalog:
    """The catalogs of a database, over one session, which the caller owns."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def tables(self) -> list[TableId]:
        """Return all tables except system tables and temporary ones, by name."""
        return sorted(TableId(*row) for row in self._connection.execute(_TABLES))

    def table(self, table: TableId) -> CatalogTable:
        """Return a table's columns and key; no columns for a table that no longer exists."""
        row = self._connection.execute("select to_regclass(%s)::oid", (quoted(*table),)).fetchone()
        if row is None or row[0] is None:
            return CatalogTable(table, (), ())
        columns = tuple(CatalogColumn(*column) for column in self._connection.execute(_COLUMNS, (row[0],)))
        key = tuple(name for (name,) in self._connection.execute(_KEY, (row[0],)))
        return CatalogTable(table, columns, key)

    def estimated_rows(self, table: TableId) -> int:
        """Return the server's estimate of a table's rows; one that was never analyzed counts by its size."""
        query = "select greatest(reltuples, pg_relation_size(oid) / 200)::bigint from pg_class where oid = to_regclass(%s)"
        row = self._connection.execute(query, (quoted(*table),)).fetchone()
        return 0 if row is None else int(row[0])


def snapshot_columns(table: CatalogTable, types: TypeRegistry) -> list[Column]:
    """Return the columns that a query of the table has."""
    return [_column(column.name, column.type_oid, column.typmod, column, types) for column in table.columns]


def stream_columns(relation: Relation, table: CatalogTable, types: TypeRegistry, known: Matcher) -> list[Column]:
    """Return the columns that the log has, which may lag behind the catalog.

    Columns that are not ``known``, by ``schema.table.column``, are optional, as in Debezium, which does not read them.
    """
    return [
        _column(
            column.name,
            column.type_oid,
            column.typmod,
            table.column(column.name) if known(f"{table.id}.{column.name}") else None,
            types,
            logged=True,
        )
        for column in relation.columns
    ]


def stream_key(relation: Relation, table: CatalogTable) -> Sequence[str]:
    """Return the key columns that the log has."""
    names = {column.name for column in relation.columns}
    return [name for name in table.key if name in names]


def _column(
    name: str, type_oid: int, typmod: int, found: CatalogColumn | None, types: TypeRegistry, *, logged: bool = False
) -> Column:
    info, field = types.resolve(type_oid, typmod)
    default = None
    declared = types.name(type_oid)
    of_domain = declared != info.name  # whose columns have no default in Debezium's schemas
    length, scale = (UNCONSTRAINED_DIGITS, 0) if info.is_unconstrained and (logged or of_domain) else (info.length, info.scale)
    if found is not None and not found.generated and found.type_oid == type_oid and not of_domain:
        default = default_of(found.default, info.name, field, enum=bool(info.labels), correct=types.correct)
    return Column(
        name=name,
        field=field,
        optional=found is None or not found.not_null,
        type_name=declared,
        length=length,
        scale=scale,
        character=info.is_character,
        default=default,
        comment=None if found is None else found.comment,
    )


def default_of(expression: str | None, type_name: str, field: FieldType | None, *, enum: bool, correct: bool) -> Any:
    """Return a column's default as a value of its field, or None if there is none or it is no constant.

    Unless ``correct``, the default of some functions is a zero, as in Debezium's schemas.
    """
    if expression is None or field is None or expression.upper().startswith("NULL"):
        return None
    text = _constant(expression, type_name, enum=enum, correct=correct)
    if text is None:
        return None
    try:
        value = field.convert(_BOOLEANS[text.lower()] if type_name == "bool" else text)
    except (ValueError, KeyError, ArithmeticError, IndexError, TypeError):
        return None
    if type_name == "date" and isinstance(value, int) and not correct:
        return _INFINITE_DATES.get(text, value)
    return None if isinstance(value, Struct) else value


def _constant(expression: str, type_name: str, *, enum: bool, correct: bool) -> str | None:
    """Return the text of a constant expression, in the type's text format."""
    if type_name not in _GENERATED and type_name not in ("bit", "varbit") and not enum:
        return None
    if _FUNCTION.match(expression) or (type_name == "date" and expression == "CURRENT_DATE"):
        return None if correct else _GENERATED.get(type_name)
    literal = _LITERAL.fullmatch(expression)
    if literal is not None:
        text = literal["text"].replace("''", "'")
        return text.replace("\\\\", "\\") if literal["form"] == "E" else text
    number = _NUMBER.fullmatch(expression)
    if number is not None:
        return number["text"]
    # Debezium takes the name of a function such as CURRENT_USER for a text.
    return expression if expression.isidentifier() and not correct else None
