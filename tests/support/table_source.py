"""Runs the Iceberg and the Delta source in tests, on real tables in a folder that other libraries write."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog, load_catalog

from sluiceway.api import SourceColumns, SourceRecord
from sluiceway.connectors.delta import DeltaSourceConnector
from sluiceway.connectors.iceberg import IcebergSourceConnector
from sluiceway.connectors.tables.source.connector import TableSourceConnector
from sluiceway.connectors.tables.source.task import TableSourceTask
from sluiceway.testing import MemoryOffsets, MemorySourceContext

FEED = {"delta.enableChangeDataFeed": "true"}
AT = dt.datetime(2026, 1, 31, 12, tzinfo=dt.timezone.utc)


def numbers(start: int, end: int, **more: pa.Array[Any]) -> pa.Table:
    """Return rows with the ids from ``start`` to ``end``, exclusive."""
    ids = range(start, end)
    columns = {
        "id": pa.array(ids, pa.int64()),
        "name": pa.array([f"n{number}" for number in ids], pa.string()),
        "at": pa.array([AT] * len(ids), pa.timestamp("us", "UTC")),
        "tags": pa.array([{"a": number} for number in ids], pa.struct([("a", pa.int64())])),
    }
    return pa.table({**columns, **more})


@dataclass(frozen=True)
class SourceLake:
    """Tables of one format in a folder, as another program writes them."""

    format: str
    folder: Path

    @property
    def connector(self) -> type[TableSourceConnector]:
        return IcebergSourceConnector if self.format == "iceberg" else DeltaSourceConnector

    def config(self, name: str = "source", tables: str = "db.t", **more: str) -> dict[str, str]:
        """Return a config; ``more`` has further keys, with underscores for dots."""
        places = {"delta.path": str(self.folder / "lake")}
        if self.format == "iceberg":
            places = {f"iceberg.catalog.{name}": value for name, value in self._catalog.items()}
        return {
            "name": name,
            "connector.class": "IcebergSource" if self.format == "iceberg" else "DeltaSource",
            **places,
            f"{self.format}.tables": tables,
            "poll.interval.ms": "0",
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    def ids(self, columns: str = "id") -> dict[str, str]:
        """Return the key with the id columns."""
        return {f"{self.format}.tables.default-id-columns": columns}

    @property
    def _catalog(self) -> dict[str, str]:
        return {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": self.folder.as_uri()}

    def catalog(self) -> Catalog:
        return load_catalog("iceberg", **self._catalog)

    def location(self, table: str = "db.t") -> str:
        return str(self.folder / "lake" / table.replace(".", "/"))

    def append(self, rows: pa.Table, table: str = "db.t", *, feed: bool = False) -> None:
        """Append rows to a table, which is created if it does not exist."""
        if self.format == "delta":
            write_deltalake(self.location(table), rows, mode="append", configuration=FEED if feed else None, schema_mode="merge")
            return
        catalog = self.catalog()
        if not catalog.table_exists(table):
            catalog.create_namespace_if_not_exists(table.rpartition(".")[0])
            catalog.create_table(table, rows.schema)
        loaded = catalog.load_table(table)
        with loaded.update_schema() as update:
            update.union_by_name(rows.schema)
        loaded.append(rows)

    def delete(self, condition: str, table: str = "db.t") -> None:
        if self.format == "delta":
            DeltaTable(self.location(table)).delete(condition)
        else:
            self.catalog().load_table(table).delete(condition)

    def replace(self, condition: str, rows: pa.Table, table: str = "db.t") -> None:
        """Replace the rows that meet a condition."""
        if self.format == "delta":
            write_deltalake(self.location(table), rows, mode="overwrite", predicate=condition)
        else:
            self.catalog().load_table(table).overwrite(rows, condition)

    def drop(self, table: str = "db.t") -> None:
        import shutil

        if self.format == "delta":
            shutil.rmtree(self.location(table))
        else:
            self.catalog().drop_table(table)

    def current(self, table: str = "db.t") -> int:
        """Return the current snapshot or version."""
        if self.format == "delta":
            return DeltaTable(self.location(table)).version()
        found = self.catalog().load_table(table).current_snapshot()
        assert found is not None
        return found.snapshot_id


class Reading:
    """A started task with its offsets in memory."""

    def __init__(self, lake: SourceLake, config: Mapping[str, str], offsets: MemoryOffsets | None = None) -> None:
        self.offsets = offsets or MemoryOffsets()
        task = lake.connector.task_class()
        assert isinstance(task, TableSourceTask)
        self.task = task
        task.initialize(MemorySourceContext(config, self.offsets))
        task.start(config)
        self.batches: list[SourceColumns | list[SourceRecord]] = []

    def poll(self, *, columns: bool = True) -> list[SourceRecord]:
        """Return the records of one poll."""
        found = self.task.poll_columns() if columns else self.task.poll()
        if found is None:
            return []
        self.batches.append(found if isinstance(found, SourceColumns) else list(found))
        return list(found.records() if isinstance(found, SourceColumns) else found)

    def all(self, *, columns: bool = True) -> list[SourceRecord]:
        """Return the records of all polls until there are none, and store their offsets."""
        records: list[SourceRecord] = []
        while found := self.poll(columns=columns):
            records += found
        self.offsets.store_all(records)
        return records

    def ids(self) -> list[int]:
        return [record.value["id"] for record in self.all()]
