"""The Iceberg connectors, sink and compaction, and their tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluiceway.connectors.iceberg.config import SINK, problems
from sluiceway.connectors.iceberg.format import IcebergKeys
from sluiceway.connectors.tables.compaction import COMPACTION, CompactionConnector, CompactionTask
from sluiceway.connectors.tables.config import TableOptions
from sluiceway.connectors.tables.connector import TableSinkConnector
from sluiceway.connectors.tables.format import WritingFormat
from sluiceway.connectors.tables.task import TableSinkTask

if TYPE_CHECKING:
    from sluiceway.connectors.tables.store import TableStore


class _Iceberg(IcebergKeys, WritingFormat):
    definition = SINK

    @classmethod
    def store_of(cls, options: TableOptions) -> TableStore:
        from sluiceway.connectors.iceberg.store import IcebergStore  # so that listing plugins does not need PyIceberg

        return IcebergStore(options)

    @classmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        return problems(config)


class IcebergSinkTask(_Iceberg, TableSinkTask):
    """Writes records to Iceberg tables."""


class IcebergSinkConnector(_Iceberg, TableSinkConnector):
    """Writes the records of its topics to Iceberg tables: appends, upserts and deletes rows, creates tables, and adds and widens
    columns. Each commit to a table contains the records' offsets, so each record is applied exactly once. Takes the config of
    Apache's sink; needs no control topic and no JVM.
    """

    task_class = IcebergSinkTask
    java_class = "org.apache.iceberg.connect.IcebergSinkConnector"
    java_task_class = "org.apache.iceberg.connect.IcebergSinkTask"


class TabularIcebergSinkConnector(IcebergSinkConnector):
    """The Iceberg sink under the class name of Tabular's sink, from which Apache's came, for configs that name it."""

    java_class = "io.tabular.iceberg.connect.IcebergSinkConnector"
    java_task_class = "io.tabular.iceberg.connect.IcebergSinkTask"


class IcebergCompactionTask(_Iceberg, CompactionTask):
    """Compacts Iceberg tables."""

    definition = SINK + COMPACTION


class IcebergCompactionConnector(_Iceberg, CompactionConnector):
    """Merges small data files of Iceberg tables into larger ones, by a schedule or at an interval. Produces no records."""

    definition = SINK + COMPACTION
    task_class = IcebergCompactionTask
