"""The Iceberg source connector and its task."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.connectors.iceberg.config import SOURCE, catalog_problems
from sluiceway.connectors.iceberg.format import IcebergKeys
from sluiceway.connectors.tables.source.config import SourceOptions
from sluiceway.connectors.tables.source.connector import TableSourceConnector
from sluiceway.connectors.tables.source.format import SourceFormat
from sluiceway.connectors.tables.source.store import SourceStore
from sluiceway.connectors.tables.source.task import TableSourceTask


class _IcebergTables(IcebergKeys, SourceFormat):
    definition = SOURCE

    @classmethod
    def store_of(cls, options: SourceOptions) -> SourceStore:
        # Listing plugins does not need PyIceberg.
        from sluiceway.connectors.iceberg.source_store import IcebergSourceStore

        return IcebergSourceStore(options)

    @classmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        return catalog_problems(config)


class IcebergSourceTask(_IcebergTables, TableSourceTask):
    """Reads Iceberg tables."""


class IcebergSourceConnector(_IcebergTables, TableSourceConnector):
    """Reads Iceberg tables into topics: all rows of a snapshot, then the rows that each later snapshot adds, and if that is
    wanted those that it changes or deletes. A task continues in the middle of a snapshot, so with exactly-once support each row
    is produced exactly once. Catalog keys are those of the Iceberg sink. Needs no JVM.
    """

    task_class = IcebergSourceTask
