"""Orders and compares the columns of keys as PostgreSQL sorts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.key_order import KeyColumn, KeyOrder
from sluiceway.connectors.cdc.postgres.connection import quoted
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

# The operators of a type's default order may have other names, as those of hstore, or be in the schema of an extension that the
# search path does not have: citext would then be compared as text.
_COLUMNS = """
with recursive types(name, required, type, base) as (
  select a.attname, a.attnotnull, pg_catalog.format_type(a.atttypid, a.atttypmod), a.atttypid
  from pg_catalog.pg_attribute a
  where a.attrelid = pg_catalog.to_regclass(%s) and a.attname = any(%s) and a.attnum > 0 and not a.attisdropped
  union all
  select b.name, b.required, b.type, t.typbasetype from types b
  join pg_catalog.pg_type t on t.oid = b.base and t.typtype = 'd'
)
select b.name, b.required, b.type, t.typname, (
  select pg_catalog.jsonb_object_agg(s.amopstrategy, pg_catalog.format('OPERATOR(%%I.%%s)', n.nspname, o.oprname))
  from pg_catalog.pg_opclass c join pg_catalog.pg_am m on m.oid = c.opcmethod and m.amname = 'btree' and c.opcdefault
  join pg_catalog.pg_amop s on s.amopfamily = c.opcfamily and s.amoplefttype = t.oid and s.amoprighttype = t.oid
  join pg_catalog.pg_operator o on o.oid = s.amopopr
  join pg_catalog.pg_namespace n on n.oid = o.oprnamespace and n.nspname <> 'pg_catalog'
  where c.opcintype = t.oid
)
from types b join pg_catalog.pg_type t on t.oid = b.base and t.typtype <> 'd'
"""
_STRATEGIES = {"<": "1", "<=": "2", "=": "3", ">": "5"}

Operators = Mapping[str, str]
"""The operators of another schema by the numbers of their strategies, or nothing for a type with those of PostgreSQL."""


def key_order(connection: Connection, table: TableId, key: Sequence[str]) -> KeyOrder:
    """Return the order of a table's columns. Raises ConnectError if there is no such column."""
    rows = {row[0]: row for row in connection.execute(_COLUMNS, (quoted(*table), list(key)))}
    missing = [name for name in key if name not in rows]
    if missing:
        raise ConnectError(f"The table {table} has no column {missing[0]}. Name one of its columns as surrogate-key.")
    found = [(name, required, _cast(base, type_), own or {}) for name, required, type_, base, own in map(rows.__getitem__, key)]
    columns = tuple(_column(name, cast, own, optional=not required) for name, required, cast, own in found)
    names = ", ".join(column.name for column in columns)
    casts, own = [each[2] for each in found], found[0][3]
    if any(each[3] != own for each in found):
        return KeyOrder(columns, nulls_first=False)

    def compare_row(operator: str, values: Sequence[Any]) -> str:
        bound = ", ".join(f"{literal(value)}::{cast}" for value, cast in zip(values, casts, strict=True))
        return f"({names}) {_operator(operator, own)} ({bound})"

    return KeyOrder(columns, nulls_first=False, compare_row=compare_row)


def _column(name: str, cast: str, own: Operators, *, optional: bool) -> KeyColumn:
    identifier = quoted(name)
    through = "::oid" if cast.startswith("oid::") else ""
    return KeyColumn(
        identifier,
        f"{identifier}{through}::text",
        lambda operator, value: f"{identifier} {_operator(operator, own)} {literal(value)}::{cast}",
        optional=optional,
    )


def _operator(operator: str, own: Operators) -> str:
    return own.get(_STRATEGIES[operator], operator)


def _cast(base: str, type_: str) -> str:
    """Return the type that a text is cast to. The names that stand for OIDs are not in their order, and may vanish."""
    return f"oid::{type_}" if base.startswith("reg") else type_


def literal(value: Any) -> str:
    """Return a literal of a text or of bytes, whatever standard_conforming_strings is."""
    text = f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)
    escaped = text.replace("'", "''")
    return " E'" + escaped.replace("\\", "\\\\") + "'" if "\\" in text else f"'{escaped}'"
