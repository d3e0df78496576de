"""Reads ranges of tables by streamed queries, over connections that see one snapshot."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.key_order import where
from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.connection import Server, quoted
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition
from sluiceway.connectors.cdc.mysql.key_order import is_integer, may_be_long, selected
from sluiceway.connectors.cdc.mysql.table_order import table_order
from sluiceway.connectors.cdc.ranges import Key, Range, TableToRead

if TYPE_CHECKING:
    from sluiceway.connectors.cdc.column_rows import Rows

log = logging.getLogger(__name__)

_TRIES = 20


def open_sessions(server: Server, count: int) -> tuple[StartPosition, list[Server]]:
    """Start a snapshot at the same position in ``count`` connections, of which ``server`` is the first, without any lock.

    The positions of snapshots that start one after the other differ if a transaction commits in between; then all start again.
    On a server that is too busy for that, one connection reads everything.
    """
    others = [server.sibling() for _ in range(count - 1)]
    for _ in range(_TRIES):
        start = server.snapshot_position()
        if all(other.snapshot_position() == start for other in others):
            return start, [server, *others]
        for each in (server, *others):
            each.execute("ROLLBACK")
    log.warning("The server commits too often for snapshots at one position in %d connections; one reads all tables.", count)
    for other in others:
        other.close()
    return server.snapshot_position(), [server]


def table_to_read(table: TableDefinition, config: SourceConfig, rows: Mapping[TableId, int]) -> TableToRead:
    """Return how a snapshot reads a table: by ranges of its key, or as a whole if the config has a statement for it.

    Also if the key may be null, or has the beginnings of long values: the server would sort all rows for each range.
    """
    columns = [table.column(name) for name in table.primary_key]
    ordered = all(each is not None and not each.optional and not may_be_long(each) for each in columns)
    if str(table.id) in config.common.snapshots.select_overrides or not ordered:
        return TableToRead(table.id)
    integer = len(columns) == 1 and columns[0] is not None and is_integer(columns[0])
    return TableToRead(table.id, table.primary_key, rows.get(table.id, 0), integer)


@dataclass
class BinlogRanges:
    """The connections of a snapshot, one for each thread.

    Args:
        tables: the tables in the order of the plan.
        conditions: the rows to read, by table.
        columns: whether to read many rows as columns, for an emitter that encodes them.
    """

    config: SourceConfig
    sessions: Sequence[Server]
    tables: Sequence[TableDefinition]
    conditions: Mapping[str, str]
    columns: bool

    def open(self, number: int) -> Server:
        return self.sessions[number]

    def cancel(self, session: Server) -> None:
        session.shut()

    def close(self, session: Server) -> None:
        if session is not self.sessions[0]:
            session.close()

    def bounds(self, session: Server, table: TableToRead) -> tuple[int, int] | None:
        key = quoted(table.key[0])
        first, last = session.row(f"SELECT MIN({key}), MAX({key}) FROM {_name(table.table)}")  # noqa: S608
        return None if first is None else (int(first), int(last))

    def boundary(self, session: Server, table: TableToRead, after: Key | None, rows: int) -> Key | None:
        definition = next(each for each in self.tables if each.id == table.table)
        order = table_order(session, definition, table.key)
        behind = where(order.between(after, None))
        query = (
            f"SELECT {order.values} FROM {_name(table.table)}{behind} ORDER BY {order.by()} "  # noqa: S608
            f"LIMIT 1 OFFSET {rows - 1}"
        )
        found = session.rows(query)
        return tuple(found[0]) if found else None

    def read(self, session: Server, found: Range) -> Iterator[Rows]:
        """Yield the rows with values in the order of the table's columns."""
        table, common = self.tables[found.table], self.config.common
        names = [column.name.lower() for column in table.columns]
        override = common.snapshots.select_overrides.get(str(table.id))
        if override is not None:
            session.execute(f"USE {quoted(table.id.schema)}")  # for names without a database
            query = override
        else:
            query = self._query(session, table, found)
        limit = min(common.snapshots.fetch_size, common.batch_size)
        for header, rows in session.stream(query, limit, columns=self.columns):
            lowered = {name.lower(): index for index, name in enumerate(header)}
            indexes = [lowered.get(name) for name in names]
            if indexes == list(range(len(header))):
                yield rows
            elif not isinstance(rows, list):
                yield rows.select(indexes)
            else:
                yield [tuple(None if index is None else row[index] for index in indexes) for row in rows]

    def _query(self, session: Server, table: TableDefinition, found: Range) -> str:
        """Return the query of a range; like Debezium's it leaves out columns that are not captured, even of keys."""
        included = [column.name for column in table.columns if self.config.common.columns(f"{table.id}.{column.name}")]
        if not included or self.config.common.correct:
            included = [column.name for column in table.columns]
        conditions = table_order(session, table, table.primary_key).between(found.after, found.last)
        condition = self.conditions.get(str(table.id))
        if condition:
            conditions.append(f"({condition})")
        columns = ", ".join(f"{selected(table, name)} AS {quoted(name)}" for name in included)
        return f"SELECT {columns} FROM {_name(table.id)}{where(conditions)}"  # noqa: S608


def _name(table: TableId) -> str:
    return f"{quoted(table.schema)}.{quoted(table.table)}"
