"""Handles signals: ad-hoc incremental snapshots, and log messages."""

from __future__ import annotations

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.rows import Row
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.offsets import LogPosition


class Signals:
    """The signals of one connector."""

    def __init__(
        self,
        config: SourceConfig,
        emitter: Emitter,
        position: LogPosition,
        catalog: Catalog,
        tables: Tables,
        calendar: Calendar,
    ) -> None:
        self._config = config

    def on_row(
        self, table: TableId, operation: str, definition: TableDefinition, before: Row | None, after: Row | None
    ) -> list[SourceRecord]:
        return []

    def close(self) -> None:
        pass
