"""Signals of the PostgreSQL connector: its part of incremental snapshots, and blocking snapshots."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import INCREMENTAL
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental import IncrementalSnapshots, Request
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.postgres.catalog import Catalog, snapshot_columns
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import connect, quoted
from sluiceway.connectors.cdc.postgres.snapshot import Snapshot, begin_snapshot, snapshot_position
from sluiceway.connectors.cdc.postgres.source import SOURCE, Sources
from sluiceway.connectors.cdc.postgres.stream import StreamReader
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.signals import Signals, parse_row
from sluiceway.connectors.cdc.tables import Row, TableSchema

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

log = logging.getLogger(__name__)


class PostgresChunks:
    """Reads chunks of tables and writes marks, over a session in autocommit mode. Values are text, as in the log."""

    def __init__(self, config: PostgresConfig, connection: Connection, types: TypeRegistry) -> None:
        self._connection = connection
        self._catalog = Catalog(connection)
        self._types = types
        self._schemas = config.common.schemas(SOURCE)
        self._signals = quoted(*(config.common.signal_table or "").split(".")[-2:])

    def schema(self, table: TableId) -> TableSchema | None:
        found = self._catalog.table(table)
        if not found.columns:
            return None
        return self._schemas.build(table, snapshot_columns(found, self._types), found.key)

    def key(self, table: TableId) -> Sequence[str]:
        return self._catalog.table(table).key

    def count(self, request: Request) -> int:
        row = self._connection.execute(f"select count(*) from {quoted(*request.table)}{_where(request)}").fetchone()  # noqa: S608
        return int(row[0]) if row is not None else 0

    def maximum(self, request: Request) -> list[Any] | None:
        columns = ", ".join(f"k.{quoted(name)}::text" for name in request.key)
        order = ", ".join(f"k.{quoted(name)} desc" for name in request.key)
        query = f"select {columns} from {quoted(*request.table)} as k{_where(request)} order by {order} limit 1"  # noqa: S608
        row = self._connection.execute(query).fetchone()
        return None if row is None else list(row)

    def chunk(self, request: Request, schema: TableSchema, limit: int) -> list[Row]:
        columns = ", ".join(f"{quoted(name)}" for name in schema.columns)
        key = ", ".join(map(quoted, request.key))
        types = self._key_types(request)
        conditions = [f"({request.condition})"] if request.condition else []
        for values, operator in ((request.after, ">"), (request.maximum, "<=")):
            if values is not None:
                bound = ", ".join(f"{_literal(value)}::{type_}" for value, type_ in zip(values, types, strict=True))
                conditions.append(f"({key}) {operator} ({bound})")
        where = f" where {' and '.join(conditions)}" if conditions else ""
        query = f"select {columns} from {quoted(*schema.id)}{where} order by {key} limit {limit}"  # noqa: S608
        with self._connection.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT") as copy:
            return list(copy.rows())

    def _key_types(self, request: Request) -> list[str]:
        query = "select format_type(%s::oid, %s::int)"
        found = self._catalog.table(request.table)
        types = []
        for name in request.key:
            column = found.column(name)
            row = None if column is None else self._connection.execute(query, (column.type_oid, column.typmod)).fetchone()
            types.append("text" if row is None else str(row[0]))
        return types

    def insert_mark(self, identifier: str, kind: str, data: str) -> None:
        self._connection.execute(f"insert into {self._signals} values (%s, %s, %s)", (identifier, kind, data))  # noqa: S608

    def delete_mark(self, identifier: str) -> None:
        self._connection.execute(f"delete from {self._signals} where id = %s", (identifier,))  # noqa: S608


class PostgresSignals:
    """The signals of one task: listens to the log, and returns the records of snapshots."""

    def __init__(
        self, config: PostgresConfig, connection: Connection, types: TypeRegistry, emitter: Emitter, notifications: Notifications
    ) -> None:
        self._config = config
        self._connection = connection
        self._types = types
        self._emitter = emitter
        self._notifications = notifications
        self._sources = Sources(config.common.prefix, config.address.database)
        self._table = (config.common.signal_table or "").split(".")[-2:]
        self.incremental = IncrementalSnapshots(config.common, PostgresChunks(config, connection, types), notifications)
        self._signals = Signals(config.common, self.incremental, self._captured, self._begin_blocking)
        self._wanted: list[tuple[Sequence[TableId], Mapping[str, str]]] = []
        self._blocking: Iterator[SourceRecord] | None = None
        self._session: Connection | None = None

    def load(self, offset: Mapping[str, Any]) -> None:
        self.incremental.load(offset)

    def state(self) -> dict[str, Any]:
        """Return the part of offsets that describes incremental snapshots."""
        return self.incremental.state()

    def inserted(self, table: TableId, row: Mapping[str, Any]) -> None:
        if list(table) != self._table:
            return
        values = list(row.values())
        if self.incremental.mark(str(values[0])) or "source" not in self._config.common.signal_channels:
            return
        signal = parse_row(values)
        if signal is not None:
            self._signals.execute(signal)

    def deleted(self, table: TableId, row: Sequence[Any]) -> None:
        if list(table) == self._table and row and self._config.common.delete_watermarks:
            self.incremental.mark(str(row[0]), deleted=True)

    def changed(self, table: TableSchema, row: Sequence[Any]) -> None:
        self.incremental.changed(table, row)

    def due(self, reader: StreamReader) -> list[SourceRecord]:
        """Return the rows of a window that the last message closed, and the notifications."""
        closed = self.incremental.closed_window()
        records: list[SourceRecord] = []
        if closed is not None:
            schema, rows = closed
            offset = reader.offset()
            for row in rows:
                source = self._sources.incremental(INCREMENTAL, schema.id.schema, schema.id.table, reader.position)
                records.append(self._emitter.read(schema, row, source, offset, incremental=True))
        records += self._notifications.take(reader.offset())
        return records

    def poll(self, reader: StreamReader) -> list[SourceRecord]:
        """Read the next chunk or rows of a blocking snapshot. Called between messages, outside transactions."""
        if self._signals.file is not None:
            for signal in self._signals.file.read():
                self._signals.execute(signal)
        self.incremental.advance()
        if self._blocking is None and self._wanted:
            self._open_blocking(reader, *self._wanted.pop(0))
        if self._blocking is None:
            return self._notifications.take(reader.offset())
        records = list(islice(self._blocking, self._config.common.batch_size))
        if not records:
            self.close()
        return records

    @property
    def blocking(self) -> bool:
        """Whether a blocking snapshot keeps the log waiting."""
        return self._blocking is not None or bool(self._wanted)

    def close(self) -> None:
        self._blocking = None
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _captured(self) -> list[TableId]:
        return [table for table in Catalog(self._connection).tables() if self._config.captured(table)]

    def _begin_blocking(self, tables: Sequence[TableId], conditions: Mapping[str, str]) -> None:
        self._wanted.append((tables, conditions))

    def _open_blocking(self, reader: StreamReader, tables: Sequence[TableId], conditions: Mapping[str, str]) -> None:
        self._session = session = connect(self._config.address)
        begin_snapshot(session, self._config, None)
        position = snapshot_position(session, reader.position.lsn)
        snapshot = Snapshot(self._config, session, self._types, self._emitter, position, conditions, reader.offset())
        self._blocking = snapshot.records(tables)


def _where(request: Request) -> str:
    return f" where {request.condition}" if request.condition else ""


def _literal(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"
