"""SQLite, by way of Python's own sqlite3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import TEXT, Column, ColumnType, Kind
from sluiceway.connectors.jdbc.dialects.base import Dialect, TableId

if TYPE_CHECKING:
    import sqlalchemy as sa

# SQLite takes any name for a type. The known ones first, then its own rules of affinity
# (https://www.sqlite.org/datatype3.html#determination_of_column_affinity).
_NAMES = {
    "boolean": Kind.BOOLEAN,
    "bool": Kind.BOOLEAN,
    "tinyint": Kind.INT8,
    "smallint": Kind.INT16,
    "int2": Kind.INT16,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "datetime": Kind.TIMESTAMP,
    "timestamp": Kind.TIMESTAMP,
    "float": Kind.FLOAT64,
}
_AFFINITIES = (
    (("int",), Kind.INT64),
    (("char", "clob", "text"), Kind.STRING),
    (("blob",), Kind.BYTES),
    (("real", "floa", "doub"), Kind.FLOAT64),
)
_TYPE = re.compile(r"^\s*(?P<name>[^()]*?)\s*(?:\((?P<arguments>[^)]*)\))?\s*$")


class SqliteDialect(Dialect):
    """SQLite. Column types are what they were declared as; dates and times are read from ISO texts or from numbers."""

    name = "sqlite"
    marker = "?"

    def table_id(self, catalog: str | None, schema: str | None, table: str) -> TableId:
        return TableId(None, None, table)

    def prepare(self, connection: Any) -> None:
        """Texts that are not UTF-8 are read all the same."""
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")

    def list_tables(self, connection: sa.Connection, types: Sequence[str]) -> list[TableId]:
        wanted = {each.lower() for each in types}
        rows = connection.exec_driver_sql(
            "select type, name from sqlite_master where name not like 'sqlite\\_%' escape '\\' order by name"
        )
        return [TableId(None, None, name) for kind, name in rows if kind in wanted]

    def columns(self, connection: sa.Connection, table: TableId) -> list[Column]:
        return self._columns(connection, table.table)

    def _columns(self, connection: sa.Connection, name: str) -> list[Column]:
        rows = connection.exec_driver_sql(
            'select name, type, "notnull", pk, hidden, dflt_value from pragma_table_xinfo(?)', (name,)
        ).all()
        keys = [row for row in rows if row[3]]
        return [
            Column(
                field,
                self.column_type(text),
                text,
                nullable=not (not_null or (key and len(keys) == 1 and text.lower() == "integer")),
                primary_key=bool(key),
                auto_increment=bool(key) and len(keys) == 1 and text.lower() == "integer",
                has_default=default is not None,
                generated=hidden in (2, 3),
            )
            for field, text, not_null, key, hidden, default in rows
        ]

    def query_columns(self, connection: sa.Connection, query: str) -> list[Column]:
        """A temporary view knows what types the columns behind it were declared with."""
        connection.exec_driver_sql(f"create temp view sluiceway_query as {query}")
        try:
            return self._columns(connection, "sluiceway_query")
        finally:
            connection.exec_driver_sql("drop view temp.sluiceway_query")

    def column_type(self, text: str) -> ColumnType:
        parts = _TYPE.match(text.lower())
        if parts is None:
            return TEXT
        name = parts["name"]
        arguments = [int(each) for each in (parts["arguments"] or "").split(",") if each.strip().isdigit()]
        if name in _NAMES:
            return ColumnType(_NAMES[name])
        if name.startswith(("decimal", "numeric")):
            precision, scale = [*arguments, 0][:2] if arguments else (None, None)
            return ColumnType(Kind.DECIMAL, precision, scale)
        for parts_of_names, kind in _AFFINITIES:
            if any(part in name for part in parts_of_names):
                return ColumnType(kind)
        return TEXT
