"""Runs the Iceberg and the Delta sink in tests, in the test or in a process that kills itself at a named point."""

from __future__ import annotations

import functools
import itertools
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pyarrow as pa

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.api.columns import ColumnBatch, NotColumnar
from sluiceway.columns.rows import column_batches, sink_records
from sluiceway.connectors.delta import DeltaCompactionConnector, DeltaSinkConnector
from sluiceway.connectors.dlt.sink import DltSinkConnector
from sluiceway.connectors.files.filesystem.hdfs import HdfsFileSystem, HdfsLogin
from sluiceway.connectors.iceberg import IcebergCompactionConnector, IcebergSinkConnector
from sluiceway.connectors.tables.compaction import CompactionConnector
from sluiceway.connectors.tables.connector import TableSinkConnector
from sluiceway.connectors.tables.task import TableSinkTask
from sluiceway.runtime.sink.task_consumer import TaskConsumer
from sluiceway.testing import MemorySinkContext
from support.eventually import LIMIT
from support.jdbc_sink import JSON, STATIC_MEMBER, run_task
from support.processes import fresh_processes

POINTS = ("staged", "before the commit", "after the commit", "before the group's commit")
LAST_POINT = "after the group's commit"


@dataclass(frozen=True)
class Lake:
    """Tables of one format in a folder; Iceberg's in a SQL catalog, or in the REST catalog with a URI.

    With ``url`` the tables are below this URL of an HDFS; only Iceberg's SQL catalog is in the folder.
    """

    format: str
    folder: Path
    rest: str = ""
    url: str = ""

    @property
    def connector(self) -> type[TableSinkConnector]:
        return _CONNECTORS[self.format]

    def config(self, name: str = "sink", table: str = "db.t", **more: str) -> dict[str, str]:
        """Return a config that creates and changes tables; ``more`` has keys below the prefix with underscores for dots."""
        prefix = f"{self.format}."
        places = {
            "iceberg.catalog.type": "sql",
            "iceberg.catalog.uri": f"sqlite:///{self.folder}/catalog.db",
            "iceberg.catalog.warehouse": self.url or self.folder.as_uri(),
        }
        if self.rest:
            places = {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": self.rest}
        if self.format == "delta":
            places = {"delta.path": self.url or str(self.folder / "lake")}
        if self.format == "dlt":  # each with a folder of its own, so that two tasks may live at once
            places = {
                "dlt.destination": "duckdb",
                "dlt.destination.args": orjson.dumps({"credentials": str(self.folder / "lake.duckdb")}).decode(),
                "dlt.dataset": "loaded",
                "dlt.folder": str(self.folder / f"dlt-{next(_NUMBERS)}"),
            }
        given = {prefix + key.replace("_", "."): value for key, value in more.items()}
        return {
            "name": name,
            "connector.class": self.connector.__name__.removesuffix("Connector"),
            **places,
            f"{prefix}tables": table,
            f"{prefix}tables.auto-create-enabled": "true",
            f"{prefix}tables.evolve-schema-enabled": "true",
            **given,
        }

    def table(self, config: Mapping[str, str], name: str = "db.t") -> Any:
        """Return a table as the sink sees it."""
        if self.format == "dlt":  # a task may live, which has its folder for itself
            config = {**config, "dlt.folder": str(self.folder / f"dlt-{next(_NUMBERS)}")}
        store = self.connector.store_of(self.connector.options_of(config))
        try:
            return store.table(name)
        finally:
            if self.format == "dlt":
                store.close()

    def read(self, config: Mapping[str, str], name: str = "db.t") -> pa.Table:
        """Return the rows of a table, read by the format's own library."""
        if self.format == "dlt":
            return self._read_duckdb(name)
        loaded = self.table(config, name)._table
        return loaded.scan().to_arrow() if self.format == "iceberg" else pa.table(loaded.to_pyarrow_table())

    def _read_duckdb(self, name: str) -> pa.Table:
        import duckdb

        with duckdb.connect(str(self.folder / "lake.duckdb"), read_only=True) as database:
            table = database.sql(f"select * from loaded.{name.replace('.', '_')}")  # noqa: S608
            return table.to_arrow_table()

    def rows(self, config: Mapping[str, str], name: str = "db.t") -> list[dict[str, Any]]:
        return self.read(config, name).to_pylist()

    def files(self) -> set[str]:
        """Return the names of all Parquet files that sinks wrote."""
        if self.url:
            return {name for name in _names(self.url) if name.startswith("sluiceway-") and name.endswith(".parquet")}
        return {path.name for path in self.folder.rglob("sluiceway-*.parquet")}


_CONNECTORS: dict[str, type[TableSinkConnector]] = {
    "delta": DeltaSinkConnector,
    "dlt": DltSinkConnector,
    "iceberg": IcebergSinkConnector,
}
_NUMBERS = itertools.count()


def _names(url: str) -> Iterator[str]:
    """Yield the names of all files below a folder of an HDFS."""
    client, folders = HdfsFileSystem(HdfsLogin(url)), [urlsplit(url).path]
    while folders:
        folder = folders.pop()
        yield from client.names(folder)
        folders += [f"{folder}/{each}" for each in client.folders(folder)]


class Task:
    """A started task with its config and context, whose partitions are open."""

    def __init__(self, lake: Lake, config: Mapping[str, str], partitions: Sequence[TopicPartition], *, reports: bool = False):
        self.lake, self.config = lake, dict(config)
        self.context = MemorySinkContext(self.config, partitions, reports=reports)
        task = lake.connector.task_class()
        assert isinstance(task, TableSinkTask)
        self.task = task
        task.initialize(self.context)
        task.start(self.config)
        task.open(partitions)

    def put(self, *records: SinkRecord) -> None:
        """Deliver records to the Delta sink as records, and to the Iceberg sink as columns where the runtime would."""
        if self.lake.format == "delta" or not records:
            return self.task.put(records)
        for part in column_batches(records):
            if isinstance(part, ColumnBatch):
                if part.key.objects is not None or part.value.objects is not None:
                    self.task.put(sink_records(part))
                    continue
                try:
                    self.task.put_columns(part)
                except NotColumnar:
                    self.task.put(sink_records(part))
            else:
                self.task.put(part)
        return None

    def commit(self, *ends: int, topic: str = "people") -> dict[TopicPartition, int]:
        """Call ``pre_commit`` with the next offsets of the partitions from 0 on."""
        return dict(self.task.pre_commit({TopicPartition(topic, number): end for number, end in enumerate(ends)}))

    def rows(self, name: str = "db.t") -> list[dict[str, Any]]:
        return self.lake.rows(self.config, name)


def compaction(lake: Lake) -> type[CompactionConnector]:
    """Return the compaction connector of a lake's format."""
    return IcebergCompactionConnector if lake.format == "iceberg" else DeltaCompactionConnector


def compact(lake: Lake, **more: str) -> None:
    """Run the compaction's task as a micro-batch does."""
    started = compaction(lake)()
    config = {**lake.config("compaction"), **more}
    started.start(config)
    [given] = started.task_configs(3)
    task: Any = started.task_class()
    task.start(given)
    assert task.poll() is None
    task.stop()


def sink_config(lake: Lake, topic: str, **more: str) -> dict[str, str]:
    """Return the config of a sink that a process runs."""
    return {**lake.config(f"sink-{topic}", **more), **JSON, **STATIC_MEMBER, "topics": topic}


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _run_until(config: dict[str, str], bootstrap: str, point: str, times: int) -> None:
    """Run a task that kills itself when it reaches a point for the given time; the entry point of ``crash``."""
    from sluiceway.connectors.delta.table import DeltaTable
    from sluiceway.connectors.iceberg.table import IcebergTable

    left = [times]

    def reached() -> None:
        left[0] -= 1
        if left[0] <= 0:
            _die()

    def around(method: Callable[..., Any], before: str, after: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **more: Any) -> Any:
            if point == before:
                reached()
            found = method(*args, **more)
            if point == after:
                reached()
            return found

        return call

    table: Any = IcebergTable if config["connector.class"] == "IcebergSink" else DeltaTable
    table.stage = around(table.stage, "", "staged")
    table.append = around(table.append, "before the commit", "after the commit")
    TaskConsumer.commit = around(TaskConsumer.commit, "", LAST_POINT)  # type: ignore[method-assign]
    TableSinkTask.pre_commit = around(TableSinkTask.pre_commit, "", "before the group's commit")  # type: ignore[method-assign]
    run_task(config, bootstrap, bounded=True)


def crash(config: Mapping[str, str], bootstrap: str, point: str, times: int) -> bool:
    """Run a task until it reaches a point for the given time; return whether it was killed there."""
    context = fresh_processes()
    process = context.Process(target=_run_until, args=(dict(config), bootstrap, point, times), daemon=True)
    process.start()
    process.join(LIMIT)
    return process.exitcode == -signal.SIGKILL
