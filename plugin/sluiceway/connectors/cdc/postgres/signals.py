"""Signals of the PostgreSQL connector, and blocking snapshots, which read tables while the log waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import INCREMENTAL
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.postgres.catalog import Catalog
from sluiceway.connectors.cdc.postgres.chunks import PostgresChunks
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import connect
from sluiceway.connectors.cdc.postgres.snapshot import Snapshot, begin_snapshot, snapshot_position
from sluiceway.connectors.cdc.postgres.source import Sources
from sluiceway.connectors.cdc.postgres.stream import StreamReader
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.signals import BlockingRequest, SignalProcessor
from sluiceway.connectors.cdc.sizes import bounded
from sluiceway.connectors.cdc.tables import TableSchema

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresSignals(SignalProcessor):
    """The signals of one task: listens to the log, and returns the records of snapshots."""

    def __init__(
        self, config: PostgresConfig, connection: Connection, types: TypeRegistry, emitter: Emitter, notifications: Notifications
    ) -> None:
        self._source_config = config
        self._types = types
        self._sources = Sources(config.common.prefix, config.address.database)
        self._chunks = PostgresChunks(config, connection, types)
        super().__init__(
            config.common, self._chunks, emitter, notifications, lambda: filter(config.captured, Catalog(connection).tables())
        )
        self._rows: Iterator[SourceRecord] | None = None  # of the blocking snapshot that is being read
        self._session: Connection | None = None

    def after_message(self, reader: StreamReader) -> list[SourceRecord]:
        """Return the rows of a window that the last message closed, and the notifications."""
        if reader.in_transaction and self.idle:
            return []
        position = reader.position
        self._chunks.follow(max(position.lsn, reader.safe_lsn), position.xid, in_transaction=reader.in_transaction)

        def source(schema: TableSchema) -> Any:
            return self._sources.incremental(INCREMENTAL, schema.id.schema, schema.id.table, position)

        return self.due(reader.offset, source)

    def between_transactions(self, reader: StreamReader) -> list[SourceRecord]:
        """Read the next chunk, or rows of a blocking snapshot."""
        self.poll()
        if not self.blocking:
            return self.after_message(reader)
        request = self.blocking[0]
        try:
            records = self._read_blocking(reader, request)
        except Exception as error:  # noqa: BLE001 (it is raised again if the task must see it)
            return self._end_blocking(request, error)
        return records or self._end_blocking(request)

    def _read_blocking(self, reader: StreamReader, request: BlockingRequest) -> list[SourceRecord]:
        if self._rows is None:
            self._rows = self._open_blocking(reader, request)
        return bounded(self._rows, self._config.batch_size, self._config.queue_bytes // 4)

    def _end_blocking(self, request: BlockingRequest, error: Exception | None = None) -> list[SourceRecord]:
        self._close_blocking()
        self.blocking_ended(request, error)
        return []

    def close(self) -> None:
        self._close_blocking()
        super().close()

    def _close_blocking(self) -> None:
        self._rows = None
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _open_blocking(self, reader: StreamReader, request: BlockingRequest) -> Iterator[SourceRecord]:
        self._session = session = connect(self._source_config.address)
        begin_snapshot(session, self._source_config, None)
        position = snapshot_position(session, reader.position.lsn)
        offset = reader.offset()
        snapshot = Snapshot(self._source_config, session, self._types, self._emitter, position, request.conditions, offset)
        return snapshot.records(request.tables)
