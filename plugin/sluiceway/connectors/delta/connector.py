"""The Delta connectors, sink and compaction, and their tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluiceway.connectors.delta.config import PATH, PREFIX, SINK, problems
from sluiceway.connectors.tables.compaction import COMPACTION, CompactionConnector, CompactionTask
from sluiceway.connectors.tables.config import TableOptions
from sluiceway.connectors.tables.connector import TableSinkConnector
from sluiceway.connectors.tables.format import WritingFormat
from sluiceway.connectors.tables.task import TableSinkTask

if TYPE_CHECKING:
    from sluiceway.connectors.tables.store import TableStore


class _Delta(WritingFormat):
    prefix = PREFIX
    definition = SINK
    location_key = PATH

    @classmethod
    def store_of(cls, options: TableOptions) -> TableStore:
        from sluiceway.connectors.delta.store import DeltaStore  # so that listing plugins does not need delta-rs

        return DeltaStore(options)

    @classmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        return problems(config)


class DeltaSinkTask(_Delta, TableSinkTask):
    """Writes records to Delta tables."""


class DeltaSinkConnector(_Delta, TableSinkConnector):
    """Writes the records of its topics to Delta tables: appends, upserts and deletes rows, creates tables and adds columns. Each
    commit to a table contains the records' offsets, so each record is applied exactly once. Needs no JVM.
    """

    task_class = DeltaSinkTask


class DeltaCompactionTask(_Delta, CompactionTask):
    """Compacts Delta tables."""

    definition = SINK + COMPACTION


class DeltaCompactionConnector(_Delta, CompactionConnector):
    """Merges small data files of Delta tables into larger ones, by a schedule or at an interval. Produces no records."""

    definition = SINK + COMPACTION
    task_class = DeltaCompactionTask
