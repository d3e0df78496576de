"""The Delta source connector and its task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.delta.config import PATH, PREFIX, SOURCE
from sluiceway.connectors.tables.source.config import SourceOptions
from sluiceway.connectors.tables.source.connector import TableSourceConnector
from sluiceway.connectors.tables.source.task import TableSourceTask

if TYPE_CHECKING:
    from sluiceway.connectors.tables.source.store import SourceStore


def _store(options: SourceOptions) -> SourceStore:
    from sluiceway.connectors.delta.source_store import DeltaSourceStore  # so that listing plugins does not need delta-rs

    return DeltaSourceStore(options)


class DeltaSourceTask(TableSourceTask):
    """Reads Delta tables."""

    def options_of(self, config: Mapping[str, str]) -> SourceOptions:
        return DeltaSourceConnector.options_of(config)

    def store_of(self, options: SourceOptions) -> SourceStore:
        return _store(options)


class DeltaSourceConnector(TableSourceConnector):
    """Reads Delta tables into topics: all rows of a version, then the rows that each later version adds, and if that is wanted
    those that it changes or deletes, from the change data feed where the table has one. A task continues in the middle of a
    version, so with exactly-once support each row is produced exactly once. Needs no JVM.
    """

    task_class = DeltaSourceTask
    prefix = PREFIX
    location_key = PATH

    @classmethod
    def config_def(cls) -> ConfigDef:
        return SOURCE

    @classmethod
    def store_of(cls, options: SourceOptions) -> SourceStore:
        return _store(options)

    @classmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        return {}
