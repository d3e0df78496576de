"""The Iceberg source connector and its task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.iceberg.config import CATALOG_TYPE, PREFIX, SOURCE, catalog_problems
from sluiceway.connectors.tables.source.config import SourceOptions
from sluiceway.connectors.tables.source.connector import TableSourceConnector
from sluiceway.connectors.tables.source.task import TableSourceTask

if TYPE_CHECKING:
    from sluiceway.connectors.tables.source.store import SourceStore


def _store(options: SourceOptions) -> SourceStore:
    from sluiceway.connectors.iceberg.source_store import IcebergSourceStore  # so that listing plugins does not need PyIceberg

    return IcebergSourceStore(options)


class IcebergSourceTask(TableSourceTask):
    """Reads Iceberg tables."""

    def options_of(self, config: Mapping[str, str]) -> SourceOptions:
        return IcebergSourceConnector.options_of(config)

    def store_of(self, options: SourceOptions) -> SourceStore:
        return _store(options)


class IcebergSourceConnector(TableSourceConnector):
    """Reads Iceberg tables into topics: all rows of a snapshot, then the rows that each later snapshot adds, and if that is
    wanted those that it changes or deletes. A task continues in the middle of a snapshot, so with exactly-once support each row
    is produced exactly once. Catalog keys are those of the Iceberg sink. Needs no JVM.
    """

    task_class = IcebergSourceTask
    prefix = PREFIX
    location_key = CATALOG_TYPE

    @classmethod
    def config_def(cls) -> ConfigDef:
        return SOURCE

    @classmethod
    def store_of(cls, options: SourceOptions) -> SourceStore:
        return _store(options)

    @classmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        return catalog_problems(config)
