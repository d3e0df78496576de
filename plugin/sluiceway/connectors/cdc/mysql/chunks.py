"""Reads the chunks of incremental snapshots from MariaDB and MySQL, and writes their watermarks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental import Chunk, Mark, ReadOnlyChunk
from sluiceway.connectors.cdc.incremental_offsets import Request
from sluiceway.connectors.cdc.key_order import KeyOrder, where
from sluiceway.connectors.cdc.mysql.binlog.gtids import MySqlGtidSet
from sluiceway.connectors.cdc.mysql.buffer import StoppedError
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.connection import SORTED_BYTES, Server, is_interrupted, is_transient, quoted
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.key_order import java_class, key_columns, may_be_long, selected, too_long
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.mysql.table_order import table_order
from sluiceway.connectors.cdc.tables import Row, TableSchema
from sluiceway.connectors.cdc.temporal import ZONED_TIMESTAMP
from sluiceway.data import Struct
from sluiceway.errors import ConnectError, RetriableError

_UNIQUE_KEYS = """
select index_name, coalesce(column_name, ''), nullable <> 'YES' and sub_part is null from information_schema.statistics
where table_schema = %s and table_name = %s and non_unique = 0
"""


class BinlogChunks:
    """Reads chunks of tables and writes marks, over one connection. Values are those of snapshots.

    Args:
        tables: the tables as the log declares them.
        server: opens a connection, again if the last one was lost.
    """

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

    def has_unique_key(self, table: TableId, names: Sequence[str]) -> bool:
        lowered = {name.lower() for name in names}
        keys: dict[str, bool] = {}
        for index, column, whole in self._server().rows(_UNIQUE_KEYS, tuple(table)):
            fits = whole == "1" and str(column).lower() in lowered
            keys[str(index)] = keys.get(str(index), True) and fits
        return any(keys.values())

    def _definition(self, table: TableId) -> TableDefinition:
        return self._tables.get(table) or TableDefinition(table)

    def _order(self, request: Request) -> KeyOrder:
        return table_order(self._server(), self._definition(request.table), request.key)

    def kinds(self, request: Request) -> list[str]:
        columns = (self._definition(request.table).column(name) for name in request.key)
        return ["String" if column is None else java_class(column) for column in columns]

    def identity(self, schema: TableSchema, row: Row, *, logged: bool) -> Hashable:
        reader = (schema.identity or schema.value) if logged else (schema.snapshot_identity or schema.snapshot_value)
        return _identity(reader(row))

    def count(self, request: Request) -> int:
        rows = self._server().rows(f"SELECT COUNT(*) FROM {_name(request.table)}{where(_conditions(request))}")  # noqa: S608
        return int(rows[0][0])

    def maximum(self, request: Request) -> list[Any] | None:
        order = self._order(request)
        self._check_lengths(request)
        rows = where(_conditions(request))
        query = f"SELECT {order.values} FROM {_name(request.table)}{rows} ORDER BY {order.by(' desc')} LIMIT 1"  # noqa: S608
        found = self._server().rows(query)
        return list(found[0]) if found else None

    def _check_lengths(self, request: Request) -> None:
        """Raise ConnectError if the key has values that the server cannot sort. Later ones are in the log, too."""
        for column in filter(may_be_long, key_columns(self._definition(request.table), request.key)):
            rows = where([too_long(column), *_conditions(request)])
            if self._server().rows(f"SELECT 1 FROM {_name(request.table)}{rows} LIMIT 1"):  # noqa: S608
                raise ConnectError(
                    f"The server cannot sort {request.table} by {column.name}, which has values of 16,384 or more characters, or "
                    f"whose weights have {SORTED_BYTES:,} or more bytes. Name another surrogate-key."
                )

    def chunk(self, request: Request, schema: TableSchema, limit: int) -> Chunk:
        order, server = self._order(request), self._server()
        end = None if request.unique else self._end(request, order, limit)
        rows = self._between(request, order, request.maximum if end is None else end)
        definition = self._definition(request.table)
        columns = ", ".join(selected(definition, name) for name in schema.columns)
        last = f" LIMIT {limit}" if request.unique else ""  # rows with the same key must not be parted
        query = f"SELECT {columns}, {order.values} FROM {_name(request.table)}{rows} ORDER BY {order.by()}{last}"  # noqa: S608
        return Chunk.split(server.rows(query), len(request.key), end)

    def _end(self, request: Request, order: KeyOrder, limit: int) -> list[Any] | None:
        """Return the key of the last of so many rows, or None if there are fewer."""
        rows = self._between(request, order, request.maximum)
        query = (
            f"SELECT {order.values} FROM {_name(request.table)}{rows} ORDER BY {order.by()} "  # noqa: S608
            f"LIMIT 1 OFFSET {limit - 1}"
        )
        found = self._server().rows(query)
        return list(found[0]) if found else None

    def _between(self, request: Request, order: KeyOrder, last: Sequence[Any] | None) -> str:
        """Return the WHERE clause of the rows behind those that were read, up to a key."""
        return where([*order.between(request.after, last), *_conditions(request)])

    def is_transient(self, error: Exception) -> bool:
        if is_interrupted(error):
            return False
        return is_transient(error) or isinstance(error, RetriableError | StoppedError | OSError)

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
        chunk = self.chunk(request, schema, limit)
        return ReadOnlyChunk(chunk, (server.variable("global.gtid_executed").replace("\n", ""),))

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


def _name(table: TableId) -> str:
    return f"{quoted(table.schema)}.{quoted(table.table)}"


def _conditions(request: Request) -> list[str]:
    return [f"({request.condition})"] if request.condition else []


def _identity(values: Struct) -> Hashable:
    """Return the same for a row of the log and of a query: times of a query have no zeros at their end."""
    fields = zip(values.schema.fields, values.values_, strict=True)
    return repr([_shortest(value) if field.schema.name == ZONED_TIMESTAMP.name else value for field, value in fields])


def _shortest(value: Any) -> Any:
    return value.rstrip("0Z").rstrip(".") if isinstance(value, str) and "." in value else str(value).rstrip("Z")
