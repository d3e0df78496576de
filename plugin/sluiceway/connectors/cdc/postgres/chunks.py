"""Reads the chunks of incremental snapshots from PostgreSQL, and writes their watermarks."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental import Chunk, Mark, ReadOnlyChunk
from sluiceway.connectors.cdc.incremental_offsets import Request
from sluiceway.connectors.cdc.key_order import KeyOrder, where
from sluiceway.connectors.cdc.postgres.catalog import Catalog, snapshot_columns
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import is_interrupted, is_transient, quoted
from sluiceway.connectors.cdc.postgres.copying import copy_lines, parse_lines
from sluiceway.connectors.cdc.postgres.key_order import key_order
from sluiceway.connectors.cdc.postgres.source import SOURCE
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.tables import Row, TableSchema

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_KINDS = {
    "int2": "Integer",
    "int4": "Integer",
    "int8": "Long",
    "oid": "Long",
    "float4": "Float",
    "float8": "Double",
    "numeric": "BigDecimal",
    "uuid": "UUID",
    "bool": "Boolean",
    "date": "Date",
    "timestamp": "Timestamp",
}
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SNAPSHOT = """
select txid_current_snapshot()::text,
  (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end - '0/0'::pg_lsn)::bigint
"""
_UNIQUE = """
select 1 from pg_catalog.pg_index i where i.indrelid = pg_catalog.to_regclass(%s)
and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
and not exists (
  select 1 from unnest(i.indkey) with ordinality as k(attnum, ord)
  join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
  where k.ord <= i.indnkeyatts and not (a.attnotnull and a.attname = any(%s))
)
"""
_REMEMBERED_TRANSACTIONS = 256
_XID_MASK = (1 << 32) - 1


class VisibleTransactions(NamedTuple):
    """The transactions that a snapshot sees: before ``next_xid``, and not ``in_progress``. Ids have 32 bits, as in the log."""

    next_xid: int
    in_progress: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> VisibleTransactions:
        """Parse ``xmin:xmax:xip,xip``."""
        _, next_xid, listed = text.split(":")
        return cls(int(next_xid) & _XID_MASK, frozenset(int(each) & _XID_MASK for each in listed.split(",") if each))

    def sees(self, xid: int) -> bool:
        behind = (self.next_xid - xid) & _XID_MASK  # ids wrap around
        return 0 < behind < 1 << 31 and xid not in self.in_progress


class PostgresChunks:
    """Reads chunks of tables and writes marks, over a session in autocommit mode. Rows have texts, as in the log.

    ``log_lsn`` is the position up to which the log has been read, None within a transaction.
    """

    def __init__(self, config: PostgresConfig, connection: Connection, types: TypeRegistry) -> None:
        self._connection = connection
        self._catalog = Catalog(connection)
        self._types = types
        self._schemas = config.common.schemas(SOURCE)
        self._signals = quoted(*(config.common.signals.table or "").split(".")[-2:])
        self._seen: deque[int] = deque(maxlen=_REMEMBERED_TRANSACTIONS)
        self._byte_limit = config.common.queue_bytes
        self.log_lsn: int | None = None

    def follow(self, lsn: int, xid: int | None, *, in_transaction: bool) -> None:
        """Note how far the log has been read, and its last transaction."""
        self.log_lsn = None if in_transaction else lsn
        if xid is not None and (not self._seen or self._seen[-1] != xid):
            self._seen.append(xid)

    def schema(self, table: TableId) -> TableSchema | None:
        found = self._catalog.table(table)
        if not found.columns:
            return None
        return self._schemas.build(table, snapshot_columns(found, self._types), found.key)

    def key(self, table: TableId) -> Sequence[str]:
        return self._catalog.table(table).key

    def kinds(self, request: Request) -> list[str]:
        found = self._catalog.table(request.table)
        columns = [found.column(name) for name in request.key]
        return [_KINDS.get(self._types.name(column.type_oid), "String") if column is not None else "String" for column in columns]

    def has_unique_key(self, table: TableId, names: Sequence[str]) -> bool:
        row = self._connection.execute(_UNIQUE, (quoted(*table), list(names))).fetchone()
        return row is not None

    def identity(self, schema: TableSchema, row: Row, *, logged: bool) -> Hashable:
        key = tuple(row[index] for index in schema.primary)
        return tuple(row) if not key or None in key else key

    def _order(self, request: Request) -> KeyOrder:
        return key_order(self._connection, request.table, request.key)

    def count(self, request: Request) -> int:
        query = f"select count(*) from {quoted(*request.table)}{where(_conditions(request))}"  # noqa: S608
        row = self._connection.execute(query).fetchone()
        return int(row[0]) if row is not None else 0

    def maximum(self, request: Request) -> list[Any] | None:
        return self._key(request, self._order(request), _conditions(request), " desc", 0)

    def _key(self, request: Request, order: KeyOrder, conditions: list[str], direction: str, offset: int) -> list[Any] | None:
        """Return the key of the row behind so many others, or None if there is none."""
        rows = f"{quoted(*request.table)}{where(conditions)}"
        query = f"select {order.values} from {rows} order by {order.by(direction)} offset {offset} limit 1"  # noqa: S608
        row = self._connection.execute(query).fetchone()
        return None if row is None else list(row)

    def chunk(self, request: Request, schema: TableSchema, limit: int) -> Chunk:
        order, own = self._order(request), _conditions(request)
        end = None
        if not request.unique:
            end = self._key(request, order, [*order.between(request.after, request.maximum), *own], "", limit - 1)
        conditions = [*order.between(request.after, request.maximum if end is None else end), *own]
        columns = ", ".join([*map(quoted, schema.columns), order.values])
        last = f" limit {limit}" if request.unique else ""  # rows with the same key must not be parted
        rows = f"{quoted(*schema.id)}{where(conditions)} order by {order.by()}{last}"
        lines = copy_lines(self._connection, f"select {columns} from {rows}", limit, self._byte_limit)  # noqa: S608
        return Chunk.split([row for each in lines for row in parse_lines(each)], len(request.key), end)

    def is_transient(self, error: Exception) -> bool:
        return is_transient(error) and not is_interrupted(error)

    def read_only_chunk(self, request: Request, schema: TableSchema, limit: int) -> ReadOnlyChunk | None:
        """Return a chunk as one snapshot sees it, with the end of the log at that time.

        The log may be ahead of what snapshots see: transactions are sent before they become visible. Such a chunk would put older
        rows behind newer ones, so it is not read.
        """
        connection = self._connection
        connection.execute(_BEGIN)
        try:
            row = connection.execute(_SNAPSHOT).fetchone()
            assert row is not None  # noqa: S101 (the query has one row)
            visible = VisibleTransactions.parse(row[0])
            if not all(map(visible.sees, self._seen)):
                return None
            return ReadOnlyChunk(self.chunk(request, schema, limit), (int(row[1]),))
        finally:
            connection.execute("ROLLBACK")

    def reached(self, mark: Mark) -> bool:
        return self.log_lsn is not None and self.log_lsn >= mark[0]

    def insert_mark(self, identifier: str, kind: str, data: str) -> None:
        self._connection.execute(f"insert into {self._signals} values (%s, %s, %s)", (identifier, kind, data))  # noqa: S608

    def delete_mark(self, identifier: str) -> None:
        self._connection.execute(f"delete from {self._signals} where id = %s", (identifier,))  # noqa: S608


def _conditions(request: Request) -> list[str]:
    return [f"({request.condition})"] if request.condition else []
