"""Signals of the PostgreSQL connector, and blocking snapshots, which read tables while the log waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import INCREMENTAL
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.postgres.catalog import Catalog
from sluiceway.connectors.cdc.postgres.chunks import PostgresChunks
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import connect
from sluiceway.connectors.cdc.postgres.snapshot import Snapshot, begin_snapshot, snapshot_position
from sluiceway.connectors.cdc.postgres.source import Sources
from sluiceway.connectors.cdc.postgres.stream import StreamReader
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.ranges import PROGRESS
from sluiceway.connectors.cdc.signals import BlockingRequest, SignalProcessor
from sluiceway.connectors.cdc.sizes import bounded
from sluiceway.connectors.cdc.tables import TableSchema

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_SNAPSHOT_KEYS = ("snapshot", "snapshot_completed", "last_snapshot_record")


class PostgresSignals:
    """The signals of one task: listens to the log, and returns the records of snapshots."""

    def __init__(
        self, config: PostgresConfig, connection: Connection, types: TypeRegistry, emitter: Emitter, notifications: Notifications
    ) -> None:
        self._config = config
        self._connection = connection
        self._types = types
        self._emitter = emitter
        self._sources = Sources(config.common.prefix, config.address.database)
        self._chunks = PostgresChunks(config, connection, types)
        self._wanted: list[BlockingRequest] = []
        self._processor = SignalProcessor(
            config.common, self._chunks, emitter, notifications, self._captured, self._wanted.append
        )
        self.incremental = self._processor.incremental
        self.load, self.commit = self._processor.load, self._processor.commit
        self.deleted, self.changed = self._processor.deleted, self._processor.changed
        self._request: BlockingRequest | None = None
        self._blocking: Iterator[SourceRecord] | None = None
        self._session: Connection | None = None
        self._unfinished: Mapping[str, Any] = {}

    def state(self) -> dict[str, Any]:
        """Return the part of source offsets that describes snapshots beside the log."""
        state = self._processor.state()
        return {**state, **self._unfinished} if self._unfinished else state

    def finish_snapshot(self, tables: Sequence[TableId], offset: Mapping[str, Any]) -> None:
        """Read the tables without key that an interrupted snapshot has left, before reading of the log continues.

        Until they are read, offsets say that the snapshot is not complete, as its offset does.
        """
        self._unfinished = {key: offset[key] for key in (*_SNAPSHOT_KEYS, PROGRESS) if key in offset}
        self._wanted.append(BlockingRequest(None, tables, {}))

    def inserted(self, table: TableId, row: Mapping[str, Any]) -> None:
        self._processor.inserted(table, list(row.values()))

    def due(self, reader: StreamReader) -> list[SourceRecord]:
        """Return the rows of a window that the last message closed, and the notifications."""
        if reader.in_transaction and self._processor.idle:
            return []
        position = reader.position
        self._chunks.follow(max(position.lsn, reader.safe_lsn), position.xid, in_transaction=reader.in_transaction)

        def source(schema: TableSchema) -> Any:
            return self._sources.incremental(INCREMENTAL, schema.id.schema, schema.id.table, position)

        return self._processor.due(reader.offset, source)

    def poll(self, reader: StreamReader) -> list[SourceRecord]:
        """Read the next chunk or rows of a blocking snapshot. Called between messages, outside transactions."""
        self._processor.poll()
        if self._request is None and self._wanted:
            self._request = self._wanted.pop(0)
        if self._request is None:
            return self.due(reader)
        try:
            records = self._read_blocking(reader, self._request)
        except Exception as error:  # noqa: BLE001 (it is raised again if the task must see it)
            return self._end_blocking(self._request, error)
        return records or self._end_blocking(self._request)

    def _read_blocking(self, reader: StreamReader, request: BlockingRequest) -> list[SourceRecord]:
        if self._blocking is None:
            self._blocking = self._open_blocking(reader, request)
        common = self._config.common
        return bounded(self._blocking, common.batch_size, common.queue_bytes // 4)

    def _end_blocking(self, request: BlockingRequest, error: Exception | None = None) -> list[SourceRecord]:
        self._close_blocking()
        self._processor.blocking_ended(request, error)
        self._unfinished = {}
        return []

    @property
    def blocking(self) -> bool:
        """Whether a blocking snapshot keeps the log waiting."""
        return self._request is not None or bool(self._wanted)

    def close(self) -> None:
        self._close_blocking()
        self._processor.close()

    def _close_blocking(self) -> None:
        self._blocking = self._request = None
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _captured(self) -> list[TableId]:
        return [table for table in Catalog(self._connection).tables() if self._config.captured(table)]

    def _open_blocking(self, reader: StreamReader, request: BlockingRequest) -> Iterator[SourceRecord]:
        self._session = session = connect(self._config.address)
        begin_snapshot(session, self._config, None)
        position = snapshot_position(session, reader.position.lsn)
        offset = reader.offset()
        snapshot = Snapshot(self._config, session, self._types, self._emitter, position, request.conditions, offset)
        return snapshot.records(request.tables)
