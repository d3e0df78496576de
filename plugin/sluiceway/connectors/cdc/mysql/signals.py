"""Signals of the MariaDB and MySQL connectors: their part of incremental snapshots, and blocking snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import INCREMENTAL
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.rows import DELETE, INSERT, Row
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.chunks import BinlogChunks
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.connection import Server
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.signals import SignalProcessor
from sluiceway.connectors.cdc.tables import TableSchema

IDLE_SECONDS = 0.5
"""The time between two looks at other channels while the log has no events."""


class BinlogSignals(SignalProcessor):
    """The signals of one connector. The reading thread uses it, except for ``commit``."""

    def __init__(
        self,
        config: SourceConfig,
        emitter: Emitter,
        position: LogPosition,
        catalog: Catalog,
        tables: Tables,
        notifications: Notifications,
    ) -> None:
        self._position = position
        self._catalog = catalog
        self._server: Server | None = None
        self._connection = config.connection
        self._loaded = False
        chunks = BinlogChunks(config, position, catalog, tables, self._open_server)
        super().__init__(
            config.common, chunks, emitter, notifications, lambda: [table for table in tables.tables if config.captures(table)]
        )
        self.returned_chunk = False
        """Whether the last ``after_event`` has returned a chunk, possibly an empty one, and others follow."""
        position.extra = self.state

    def start(self, offset: Mapping[str, Any]) -> None:
        """Continue the incremental snapshots of the stored offset, and open the channels. Later calls have no effect."""
        if not self._loaded:
            self.load(offset)
            self._loaded = True

    @property
    def active(self) -> bool:
        """Whether there may be signals or incremental snapshots, so that rows must be reported."""
        config = self._config
        wanted = config.signals.table or config.signals.channels & {"file", "kafka"} or config.snapshots.new_tables
        return bool(wanted or self.incremental.running or self.blocking)

    def on_row(self, table: TableId, operation: str, definition: TableDefinition, before: Row | None, after: Row | None) -> None:
        """Handle a change of any table that is read."""
        if self.is_signal_table(table):
            if operation == INSERT and after is not None:
                self.inserted(table, after)
            elif operation == DELETE and before is not None:
                self.deleted(table, before)
        elif self.incremental.running or self._config.snapshots.new_tables:
            schema = self._catalog.schema(definition)
            for row in (before, after):
                if row is not None:
                    self.changed(schema, row)

    def after_event(self) -> list[SourceRecord]:
        """Return the rows of closed windows, and read the next chunks between transactions."""
        returned = self.incremental.chunks_returned
        records = self.due(self._position.offset, self._source)
        if not self._position.in_transaction:
            self.poll()
            records += self.due(self._position.offset, self._source)
        self.returned_chunk = self.incremental.running and self.incremental.chunks_returned > returned
        return records

    def _source(self, schema: TableSchema) -> Any:
        return self._position.block(schema.id.schema, schema.id.table, snapshot=INCREMENTAL)

    def _open_server(self) -> Server:
        """Return a connection, a new one if the server has closed the last one."""
        if self._server is not None and not self._server.is_open():
            self.disconnect()
        if self._server is None:
            self._server = Server(self._connection)
        return self._server

    def close(self) -> None:
        """Close the channels and the connection. The reading thread has ended, or waits for a new connection."""
        super().close()
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection, which is opened again when it is needed."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
