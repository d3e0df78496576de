"""Reads the captured tables at one position of the log."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.columns import Column
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import FIRST, FIRST_IN_TABLE, LAST, LAST_IN_TABLE, TRUE
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.catalog import Catalog, snapshot_columns
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import quoted
from sluiceway.connectors.cdc.postgres.source import SOURCE, Position, Sources
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.tables import TableSchema

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

log = logging.getLogger(__name__)

_ISOLATION = {"read_committed": "READ COMMITTED", "read_uncommitted": "READ UNCOMMITTED", "repeatable_read": "REPEATABLE READ"}


def begin_snapshot(connection: Connection, config: PostgresConfig, exported: str | None) -> None:
    """Begin the transaction that reads the tables: on the slot's exported snapshot, or on one of its own."""
    if exported is not None:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(f"SET TRANSACTION SNAPSHOT '{exported}'")
    else:
        level = _ISOLATION.get(config.isolation, "SERIALIZABLE")
        connection.execute(f"BEGIN ISOLATION LEVEL {level} READ ONLY{' DEFERRABLE' if level == 'SERIALIZABLE' else ''}")


def snapshot_position(connection: Connection, lsn: int) -> Position:
    """Return the position of a snapshot's rows, within its transaction."""
    row = connection.execute("select txid_current(), (extract(epoch from now()) * 1000000)::bigint").fetchone()
    assert row is not None  # noqa: S101 (the query has one row)
    return Position(lsn=lsn, xid=int(row[0]), micros=int(row[1]))


class Snapshot:
    """Reads tables, one after the other, over a session in the snapshot's transaction.

    Args:
        conditions: the rows to read, by table, of a blocking snapshot.
        fixed_offset: the offset of all records of a blocking snapshot, which is a position of the log.
    """

    def __init__(
        self,
        config: PostgresConfig,
        connection: Connection,
        types: TypeRegistry,
        emitter: Emitter,
        position: Position,
        conditions: Mapping[str, str] | None = None,
        fixed_offset: Mapping[str, Any] | None = None,
    ) -> None:
        self._config = config
        self._connection = connection
        self._types = types
        self._emitter = emitter
        self._position = position
        self._conditions = conditions or {}
        self._fixed_offset = fixed_offset
        self._schemas = config.common.schemas(SOURCE)
        self._sources = Sources(config.common.prefix, config.address.database)
        self.counts: dict[str, int] = {}

    def offset(self, *, completed: bool) -> dict[str, Any]:
        """Return the source offset of the snapshot's rows."""
        position = self._position
        if self._fixed_offset is not None:
            return dict(self._fixed_offset)
        return {
            "last_snapshot_record": completed,
            "lsn": position.lsn,
            "txId": position.xid,
            "ts_usec": position.micros,
            "snapshot": "INITIAL",
            "snapshot_completed": completed,
        }

    def records(self, tables: Sequence[TableId]) -> Generator[SourceRecord, None, None]:
        """Yield the records of all rows. The last one's offset says that the snapshot is complete."""
        catalog = Catalog(self._connection)
        held: SourceRecord | None = None
        for index, table in enumerate(tables):
            found = catalog.table(table)
            if not found.columns:
                continue
            columns = snapshot_columns(found, self._types)
            schema = self._schemas.build(table, columns, found.key)
            log.info("Snapshot of %s", table)
            first, count = True, 0
            for row, last in _with_last(self._rows(table, columns, schema)):
                marker = _marker(first, last, first_table=index == 0, last_table=index == len(tables) - 1)
                first = False
                count += 1
                source = self._sources.snapshot(marker, table.schema, table.table, self._position)
                if held is not None:
                    yield held
                held = self._emitter.read(schema, row, source, self.offset(completed=False))
            self.counts[str(table)] = count
        if held is not None:
            held.source_offset = self.offset(completed=True)
            yield held

    def _rows(self, table: TableId, columns: Sequence[Column], schema: TableSchema) -> Iterator[Sequence[str | None]]:
        """Yield the rows of a table in the order of its columns; those that records leave out are None."""
        names = [column.name for column in columns]
        override = self._config.common.select_overrides.get(str(table))
        if override is not None:
            cursor = self._connection.execute(f"select * from ({override}) as t limit 0")  # noqa: S608
            read = [column.name for column in cursor.description or ()]
            statement = override
        else:
            included = self._config.common.columns
            keep = self._config.settings.correct and schema.key is not None
            keys = {names[index] for index, _ in schema.key.fields} if keep and schema.key is not None else set()
            read = [name for name in names if included(f"{table}.{name}") or name in keys] or names
            listed = ", ".join(map(quoted, read)) or "null"
            condition = self._conditions.get(str(table))
            statement = f"select {listed} from {quoted(*table)}{f' where {condition}' if condition else ''}"  # noqa: S608
        positions = [read.index(name) if name in read else None for name in names]
        straight = positions == list(range(len(names)))
        with self._connection.cursor() as cursor, cursor.copy(f"COPY ({statement}) TO STDOUT") as copy:
            for row in copy.rows():
                yield row if straight else [None if at is None else row[at] for at in positions]


def _marker(first: bool, last: bool, *, first_table: bool, last_table: bool) -> str:
    if first and first_table:
        return FIRST
    if last:
        return LAST if last_table else LAST_IN_TABLE
    return FIRST_IN_TABLE if first else TRUE


def _with_last(rows: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
    """Yield rows with whether they are the last one."""
    held = None
    for row in rows:
        if held is not None:
            yield held, False
        held = row
    if held is not None:
        yield held, True
