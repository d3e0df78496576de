"""The Delta source connector and its task."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.connectors.delta.config import PATH, PREFIX, SOURCE
from sluiceway.connectors.tables.source.config import SourceOptions
from sluiceway.connectors.tables.source.connector import TableSourceConnector
from sluiceway.connectors.tables.source.format import SourceFormat
from sluiceway.connectors.tables.source.store import SourceStore
from sluiceway.connectors.tables.source.task import TableSourceTask


class _DeltaTables(SourceFormat):
    prefix = PREFIX
    definition = SOURCE
    location_key = PATH

    @classmethod
    def store_of(cls, options: SourceOptions) -> SourceStore:
        from sluiceway.connectors.delta.source_store import DeltaSourceStore  # so that listing plugins does not need delta-rs

        return DeltaSourceStore(options)

    @classmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        return {}


class DeltaSourceTask(_DeltaTables, TableSourceTask):
    """Reads Delta tables."""


class DeltaSourceConnector(_DeltaTables, TableSourceConnector):
    """Reads Delta tables into topics: all rows of a version, then the rows that each later version adds, and if that is wanted
    those that it changes or deletes, from the change data feed where the table has one. A task continues in the middle of a
    version, so with exactly-once support each row is produced exactly once. Needs no JVM.
    """

    task_class = DeltaSourceTask
