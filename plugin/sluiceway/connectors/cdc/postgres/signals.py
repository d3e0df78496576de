"""Executes signals: incremental and blocking snapshots, and log messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.stream import StreamReader
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.tables import TableSchema

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresSignals:
    """The signals of one connector."""

    def __init__(
        self, config: PostgresConfig, connection: Connection, types: TypeRegistry, emitter: Emitter, notifications: Notifications
    ) -> None:
        self._config = config

    def load(self, offset: Mapping[str, Any]) -> None: ...

    def with_state(self, offset: dict[str, Any]) -> dict[str, Any]:
        return offset

    def inserted(self, table: TableId, row: Mapping[str, Any]) -> None: ...

    def changed(self, table: TableSchema, row: Sequence[Any]) -> None: ...

    def due(self, reader: StreamReader) -> list[SourceRecord]:
        return []

    def poll(self, reader: StreamReader) -> list[SourceRecord]:
        return []
