"""MySQL and MariaDB, by way of PyMySQL."""

# ruff: noqa: S608 (names are quoted, values are parameters)
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import OTHER, TEXT, Column, ColumnType, Kind
from sluiceway.connectors.jdbc.dialects.base import Dialect, TableId

if TYPE_CHECKING:
    import sqlalchemy as sa

_SIGNED = {
    "tinyint": Kind.INT8,
    "smallint": Kind.INT16,
    "mediumint": Kind.INT32,
    "int": Kind.INT32,
    "integer": Kind.INT32,
    "bigint": Kind.INT64,
}
_UNSIGNED = {
    "tinyint": Kind.INT16,
    "smallint": Kind.INT32,
    "mediumint": Kind.INT32,
    "int": Kind.INT64,
    "integer": Kind.INT64,
    "bigint": Kind.INT64,
}
_PLAIN = {
    "float": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "date": Kind.DATE,
    "year": Kind.INT32,
    "binary": Kind.BYTES,
    "varbinary": Kind.BYTES,
    "tinyblob": Kind.BYTES,
    "blob": Kind.BYTES,
    "mediumblob": Kind.BYTES,
    "longblob": Kind.BYTES,
    "geometry": Kind.BYTES,
    "point": Kind.BYTES,
    "linestring": Kind.BYTES,
    "polygon": Kind.BYTES,
}
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json", "uuid", "inet6"})
_TYPE = re.compile(r"^(?P<name>\w+)(?:\((?P<arguments>.*)\))?(?P<rest>[^()]*)$", re.DOTALL)

_TABLE_TYPES = {"TABLE": "BASE TABLE", "VIEW": "VIEW", "SYSTEM VERSIONED": "SYSTEM VERSIONED", "SEQUENCE": "SEQUENCE"}
_OWN = ("information_schema", "mysql", "performance_schema", "sys")

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


class MySqlDialect(Dialect):
    """MySQL and MariaDB. A database is a catalog there, and there are no schemas. ``tinyint(1)`` is a number like any other."""

    name = "mysql"
    quote_character = "`"

    def table_id(self, catalog: str | None, schema: str | None, table: str) -> TableId:
        return TableId(catalog or schema, None, table)

    def prepare(self, connection: Any) -> None:
        """Speak UTC; take what is inserted as it is, or refuse it."""
        with connection.cursor() as cursor:
            cursor.execute("set session time_zone = '+00:00'")

    def list_tables(self, connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
        wanted = [_TABLE_TYPES[each.upper()] for each in types if each.upper() in _TABLE_TYPES] or [""]
        if "BASE TABLE" in wanted:
            wanted.append("SYSTEM VERSIONED")
        current = connection.exec_driver_sql("select database()").scalar()
        marks = ",".join(["%s"] * len(wanted))
        where = "table_schema = %s" if current else f"table_schema not in {_OWN!r} and %s is null"
        rows = connection.exec_driver_sql(
            f"select table_schema, table_name from information_schema.tables where {where} and table_type in ({marks}) "
            "order by table_schema, table_name",
            (current, *wanted),
        )
        return [TableId(catalog, None, table) for catalog, table in rows]

    def columns(self, connection: sa.Connection, table: TableId) -> list[Column]:
        rows = connection.exec_driver_sql(
            "select column_name, column_type, is_nullable, column_key, extra, column_default from information_schema.columns "
            "where table_schema = coalesce(%s, database()) and table_name = %s order by ordinal_position",
            (table.catalog, table.table),
        )
        return [
            Column(
                name,
                self.column_type(text),
                text,
                nullable=nullable == "YES",
                primary_key=key == "PRI",
                auto_increment="auto_increment" in extra.lower(),
                has_default=default is not None,
                generated="generated" in extra.lower() and "default_generated" not in extra.lower(),
            )
            for name, text, nullable, key, extra, default in rows
        ]

    def query_columns(self, connection: sa.Connection, query: str) -> list[Column]:
        raw: Any = connection.connection
        with raw.cursor() as cursor:
            cursor.execute(f"select * from ({query}) as q where false")
            result: Any = getattr(cursor, "_result", None)  # the only place with flags and character sets
            return [self._described(field) for field in result.fields]

    def _described(self, field: Any) -> Column:
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
        return Column(field.name, self.column_type(text), text)

    def column_type(self, text: str) -> ColumnType:
        """Return the type that ``information_schema`` calls this: ``int(10) unsigned``, ``decimal(10,2)``, ``bit(1)``."""
        parts = _TYPE.match(text.strip().lower())
        if parts is None:
            return OTHER
        name, rest = parts["name"], parts["rest"]
        arguments = [int(each) for each in (parts["arguments"] or "").split(",") if each.strip().isdigit()]
        if name in _SIGNED:
            return ColumnType((_UNSIGNED if "unsigned" in rest else _SIGNED)[name])
        if name in ("decimal", "numeric"):
            precision, scale = [*arguments, *(10, 0)[len(arguments) :]][:2]
            return ColumnType(Kind.DECIMAL, precision, scale)
        if name in ("datetime", "timestamp"):
            return ColumnType(Kind.TIMESTAMP, fraction=arguments[0] if arguments else 0, zoned=name == "timestamp")
        if name == "time":
            return ColumnType(Kind.TIME, fraction=arguments[0] if arguments else 0)
        if name == "bit":
            return ColumnType(Kind.INT8 if arguments in ([], [1]) else Kind.BYTES, precision=arguments[0] if arguments else 1)
        if name in _TEXTS:
            return TEXT
        return ColumnType(_PLAIN[name]) if name in _PLAIN else OTHER
