"""Reads the chunks of incremental snapshots from MariaDB and MySQL, and writes their watermarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental import Mark, ReadOnlyChunk
from sluiceway.connectors.cdc.incremental_offsets import Request
from sluiceway.connectors.cdc.mysql.binlog.gtids import MySqlGtidSet
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.connection import Server, quoted
from sluiceway.connectors.cdc.mysql.ddl.model import JdbcType, TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.tables import Row, TableSchema
from sluiceway.errors import ConnectError

_NUMBERS = {JdbcType.SMALLINT, JdbcType.INTEGER, JdbcType.BIGINT, JdbcType.DECIMAL, JdbcType.NUMERIC}
_KINDS = {JdbcType.SMALLINT: "Integer", JdbcType.INTEGER: "Integer", JdbcType.BIGINT: "Long", JdbcType.DECIMAL: "BigDecimal"}


class BinlogChunks:
    """Reads chunks of tables and writes marks, over one connection. Values are those of snapshots.

    Args:
        tables: the tables as the log declares them.
        server: opens a connection, again if the last one was lost.
    """

    snapshot_values = True

    def __init__(
        self, config: SourceConfig, position: LogPosition, catalog: Catalog, tables: Tables, server: Callable[[], Server]
    ) -> None:
        self._config = config
        self._position = position
        self._catalog = catalog
        self._tables = tables
        self._server = server
        database, _, table = (config.common.signals.table or "").partition(".")
        self._signals = f"{quoted(database)}.{quoted(table)}"

    def schema(self, table: TableId) -> TableSchema | None:
        found = self._tables.get(table)
        return None if found is None or not self._config.captures(table) else self._catalog.schema(found)

    def key(self, table: TableId) -> Sequence[str]:
        return self._definition(table).primary_key

    def _definition(self, table: TableId) -> TableDefinition:
        return self._tables.get(table) or TableDefinition(table)

    def kinds(self, request: Request) -> list[str]:
        columns = (self._definition(request.table).column(name) for name in request.key)
        return ["String" if column is None else _KINDS.get(column.jdbc_type, "String") for column in columns]

    def count(self, request: Request) -> int:
        where = f" WHERE {_condition(request)}" if request.condition else ""
        rows = self._server().rows(f"SELECT COUNT(*) FROM {_name(request.table)}{where}")  # noqa: S608
        return int(rows[0][0])

    def maximum(self, request: Request) -> list[Any] | None:
        names = ", ".join(map(quoted, request.key))
        where = f" WHERE {_condition(request)}" if request.condition else ""
        order = ", ".join(f"{quoted(name)} DESC" for name in request.key)
        found = self._server().rows(f"SELECT {names} FROM {_name(request.table)}{where} ORDER BY {order} LIMIT 1")  # noqa: S608
        return list(found[0]) if found else None

    def chunk(self, request: Request, schema: TableSchema, limit: int) -> list[Row]:
        definition = self._definition(request.table)
        conditions, parameters = key_conditions(definition, request.key, request.after, request.maximum)
        if request.condition:
            conditions.append(_condition(request).replace("%", "%%") if parameters else _condition(request))
        columns = ", ".join(map(quoted, schema.columns))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        order = ", ".join(map(quoted, request.key))
        query = f"SELECT {columns} FROM {_name(request.table)}{where} ORDER BY {order} LIMIT {limit}"  # noqa: S608
        return list(self._server().rows(query, parameters))

    def read_only_chunk(self, request: Request, schema: TableSchema, limit: int) -> ReadOnlyChunk | None:
        """Return a chunk as one snapshot sees it, and the position of that snapshot.

        MariaDB tells the exact position. MySQL does not, but its executed GTIDs are updated after transactions become visible.
        """
        server = self._server()
        if not server.mariadb:
            return self._mysql_chunk(server, request, schema, limit)
        start = server.snapshot_position()
        try:
            mark = (file_number(start.file), start.position)
            if mark < log_position(self._position):
                return None
            return ReadOnlyChunk(self.chunk(request, schema, limit), mark)
        finally:
            server.execute("ROLLBACK")

    def _mysql_chunk(self, server: Server, request: Request, schema: TableSchema, limit: int) -> ReadOnlyChunk | None:
        if not self._position.gtids:
            raise ConnectError(
                "Incremental snapshots with read.only need GTIDs on MySQL. Start the server with gtid_mode=ON, or set "
                "signal.data.collection to a table that the connector may write."
            )
        before = MySqlGtidSet.parse(server.variable("global.gtid_executed").replace("\n", ""))
        if not before.contains_all(MySqlGtidSet.parse(self._position.gtids)):
            return None
        rows = self.chunk(request, schema, limit)
        return ReadOnlyChunk(rows, (server.variable("global.gtid_executed").replace("\n", ""),))

    def reached(self, mark: Mark) -> bool:
        if self._position.in_transaction:
            return False
        if len(mark) == 1:
            return MySqlGtidSet.parse(self._position.gtids).contains_all(MySqlGtidSet.parse(mark[0]))
        return log_position(self._position) >= mark

    def insert_mark(self, identifier: str, kind: str, data: str) -> None:
        self._server().rows(f"INSERT INTO {self._signals} VALUES (%s, %s, %s)", (identifier, kind, data))  # noqa: S608

    def delete_mark(self, identifier: str) -> None:
        self._server().rows(f"DELETE FROM {self._signals} WHERE id = %s", (identifier,))  # noqa: S608


def file_number(file: str) -> int:
    """Return the number of a log file, by which files are in order."""
    return int(file.rpartition(".")[2] or 0)


def log_position(position: LogPosition) -> tuple[int, int]:
    """Return up to where the log has been read; less than any position while that is unknown."""
    return (file_number(position.file), position.end) if position.located else (-1, 0)


def key_conditions(
    table: TableDefinition, key: Sequence[str], after: Sequence[Any] | None, last: Sequence[Any] | None
) -> tuple[list[str], list[object]]:
    """Return the SQL conditions that a key is greater than ``after`` and not greater than ``last``, and their parameters."""
    conditions, parameters = [], []
    for values, form in ((after, "{}"), (last, "NOT {}")):
        if values is not None:
            text, more = _greater(table, key, values)
            conditions.append(form.format(text))
            parameters += more
    return conditions, parameters


def _greater(table: TableDefinition, key: Sequence[str], values: Sequence[Any]) -> tuple[str, list[object]]:
    typed = [_typed(table, name, value) for name, value in zip(key, values, strict=True)]
    alternatives, parameters = [], []
    for index, name in enumerate(key):
        equal = [f"{quoted(other)} = %s" for other in key[:index]]
        alternatives.append("(" + " AND ".join([*equal, f"{quoted(name)} > %s"]) + ")")
        parameters += typed[: index + 1]
    return "(" + " OR ".join(alternatives) + ")", list(parameters)


def _typed(table: TableDefinition, name: str, value: Any) -> object:
    """Return a number for a column of numbers, because the server compares a text with it as inexact floats."""
    column = table.column(name)
    if column is None or column.jdbc_type not in _NUMBERS or not isinstance(value, str):
        return value
    try:
        return Decimal(value)
    except InvalidOperation:
        return value


def _name(table: TableId) -> str:
    return f"{quoted(table.schema)}.{quoted(table.table)}"


def _condition(request: Request) -> str:
    return f"({request.condition})"
