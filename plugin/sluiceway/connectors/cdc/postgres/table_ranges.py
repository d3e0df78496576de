"""Reads ranges of tables by COPY, over sessions that share one snapshot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.cdc.emitter import FEWEST_ROWS
from sluiceway.connectors.cdc.key_order import where
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import connect, driver, quoted
from sluiceway.connectors.cdc.postgres.copying import copy_lines, parse_lines
from sluiceway.connectors.cdc.postgres.key_order import key_order
from sluiceway.connectors.cdc.ranges import Key, Range, TableToRead
from sluiceway.connectors.cdc.tables import TableSchema

if TYPE_CHECKING:
    import psycopg

    from sluiceway.connectors.cdc.column_rows import Rows

    Connection = psycopg.Connection[tuple[Any, ...]]

_BATCH_BYTES = 1 << 20
_ONE_SESSION = frozenset({"read_committed", "read_uncommitted"})  # whose transactions have no snapshot to share


class PostgresRanges:
    """The sessions of a snapshot. The first one is the caller's; the others import its snapshot.

    Args:
        schemas: the tables' schemas, in the order of ``plan``.
        conditions: the rows to read, by table.
        columns: whether to read many rows as columns, for an emitter that encodes them.
    """

    def __init__(
        self,
        config: PostgresConfig,
        connection: Connection,
        schemas: Sequence[TableSchema],
        plan: Sequence[TableToRead],
        conditions: Mapping[str, str],
        *,
        columns: bool,
    ) -> None:
        self._config = config
        self._connection = connection
        self._schemas = schemas
        self._plan = plan
        self._conditions = conditions
        self._as_columns = columns
        self.threads = 1 if config.isolation in _ONE_SESSION else min(config.common.snapshots.threads, self._work())
        self._snapshot: str | None = None
        if self.threads > 1:
            row = connection.execute("select pg_export_snapshot()").fetchone()
            self._snapshot = None if row is None else str(row[0])

    def _work(self) -> int:
        """Return the number of ranges, as far as estimates tell, at least one."""
        size = self._config.common.snapshots.range_rows
        return max(1, sum(max(1, table.rows // size) if table.key else 1 for table in self._plan))

    def open(self, number: int) -> Connection:
        if number == 0 or self._snapshot is None:
            return self._connection
        session = connect(self._config.address)
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        session.execute(f"SET TRANSACTION SNAPSHOT '{self._snapshot}'")
        return session

    def cancel(self, session: Connection) -> None:
        with contextlib.suppress(driver().Error):
            session.cancel()

    def close(self, session: Connection) -> None:
        if session is not self._connection:
            session.close()

    def bounds(self, session: Connection, table: TableToRead) -> tuple[int, int] | None:
        key = quoted(table.key[0])
        row = session.execute(f"select min({key}), max({key}) from {quoted(*table.table)}").fetchone()  # noqa: S608
        return None if row is None or row[0] is None else (int(row[0]), int(row[1]))

    def boundary(self, session: Connection, table: TableToRead, after: Key | None, rows: int) -> Key | None:
        order = key_order(session, table.table, table.key)
        behind = f"{quoted(*table.table)}{where(order.between(after, None))}"
        query = f"select {order.values} from {behind} order by {order.by()} offset {rows - 1} limit 1"  # noqa: S608
        row = session.execute(query).fetchone()
        return None if row is None else tuple(row)

    def read(self, session: Connection, found: Range) -> Iterator[Rows]:
        """Yield the rows in the order of the table's columns; those that records leave out are None."""
        schema, common = self._schemas[found.table], self._config.common
        override = common.snapshots.select_overrides.get(str(schema.id))
        if override is not None:
            cursor = session.execute(f"select * from ({override}) as t limit 0")  # noqa: S608
            read, query = [column.name for column in cursor.description or ()], override
        else:
            read = self._columns(schema)
            query = self._query(session, found, schema, read)
        positions = [read.index(name) if name in read else None for name in schema.columns]
        straight = positions == list(range(len(schema.columns)))
        for lines in copy_lines(session, query, common.batch_size, _BATCH_BYTES):
            if self._as_columns and len(lines) >= FEWEST_ROWS:
                from sluiceway.connectors.cdc.postgres.copy_columns import column_rows

                yield column_rows(lines).select(positions)
                continue
            rows = parse_lines(lines)
            yield [*rows] if straight else [[None if at is None else row[at] for at in positions] for row in rows]

    def _columns(self, schema: TableSchema) -> list[str]:
        """Return the columns to read; like Debezium's, snapshots leave out columns that are not captured, even of keys."""
        names, included = schema.columns, self._config.common.columns
        keep = self._config.settings.correct and schema.key is not None
        keys = {names[index] for index, _ in schema.key.fields} if keep and schema.key is not None else set()
        return [name for name in names if included(f"{schema.id}.{name}") or name in keys] or list(names)

    def _query(self, session: Connection, found: Range, schema: TableSchema, columns: Sequence[str]) -> str:
        condition = self._conditions.get(str(schema.id))
        conditions = [f"({condition})"] if condition else []
        if found.after is not None or found.last is not None:
            key = self._plan[found.table].key
            conditions += key_order(session, schema.id, key).between(found.after, found.last)
        return f"select {', '.join(map(quoted, columns)) or 'null'} from {quoted(*schema.id)}{where(conditions)}"  # noqa: S608
