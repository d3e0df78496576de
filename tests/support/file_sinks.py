"""Runs file sink tasks in tests and reads what they wrote."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.orc as orc
import pyarrow.parquet as pq

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.api.columns import ColumnBatch, NotColumnar
from sluiceway.columns.rows import column_batches
from sluiceway.connectors.files.task import FileSinkTask
from sluiceway.data import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, Schema, Struct
from sluiceway.discovery import connector_class
from sluiceway.testing import MemorySinkContext

ROW = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA}, name="row", version=1)
TOPIC = "orders"
P0 = TopicPartition(TOPIC, 0)
_ID = re.compile(r"\bid=(\d+)")


def record(
    offset: int,
    value: Any = None,
    schema: Schema | None = ROW,
    *,
    topic: str = TOPIC,
    partition: int = 0,
    timestamp: int | None = 1_700_000_000_000,
) -> SinkRecord:
    """Return a record; mappings become structs if there is a schema."""
    if isinstance(value, Mapping) and schema is not None:
        value = Struct(schema, value)
    kind = 0 if timestamp is None else 1
    return SinkRecord(
        topic, partition, offset, value, None if value is None else schema, timestamp=timestamp, timestamp_type=kind
    )


def row(offset: int, **more: Any) -> SinkRecord:
    """Return a record whose fields depend on its offset."""
    return record(offset, {"id": offset, "name": f"n{offset}"}, **more)


def rows(start: int, end: int, **more: Any) -> list[SinkRecord]:
    return [row(offset, **more) for offset in range(start, end)]


class FileSink:
    """A started task with its context, as the runtime would call it."""

    def __init__(self, config: Mapping[str, str], partitions: Sequence[TopicPartition], *, reports: bool = True) -> None:
        self.config = {"name": "sink", **config}
        self.context = MemorySinkContext(self.config, partitions, reports=reports)
        connector = connector_class(self.config["connector.class"])
        task = connector.task_class()
        assert isinstance(task, FileSinkTask)
        self.task = task
        self.next: dict[TopicPartition, int] = {}
        task.initialize(self.context)
        task.start(self.config)
        self.open(partitions)

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        self.task.open(list(partitions))
        self.next.update(self.context.rewinds)
        self.context.rewinds.clear()

    def put(self, records: Sequence[SinkRecord], *, columns: bool = False) -> None:
        """Put records, as columns where that is possible."""
        for part in column_batches(records) if columns else [list(records)]:
            if isinstance(part, ColumnBatch):
                try:
                    self.task.put_columns(part)
                except NotColumnar:
                    start = records.index(next(each for each in records if each.original_kafka_offset == part.offsets[0].as_py()))  # type: ignore[index]
                    self.task.put(records[start : start + len(part)])
            else:
                self.task.put(part)
        for each in records:
            self.next[TopicPartition(each.original_topic, each.original_kafka_partition)] = each.original_kafka_offset + 1
        self.next.update(self.context.rewinds)
        self.context.rewinds.clear()

    def commit(self, *, last: bool = False) -> dict[TopicPartition, int]:
        self.context.delivery_ends = last
        try:
            return dict(self.task.pre_commit(dict(self.next)))
        finally:
            self.context.delivery_ends = False

    def end(self) -> dict[TopicPartition, int]:
        """Commit for the last time and close, as the runtime does."""
        safe = self.commit(last=True)
        self.task.close(list(self.next))
        return safe


@contextmanager
def file_sink(
    folder: Path,
    connector: str = "ParquetSink",
    *,
    partitions: int = 1,
    reports: bool = True,
    given: Mapping[str, str] | None = None,
    **more: str,
) -> Iterator[FileSink]:
    """Start a task that writes below a folder, with keys ``given``, and keyword arguments as keys with underscores for dots."""
    keys = {**(given or {}), **{name.replace("_", "."): value for name, value in more.items()}}
    places = [TopicPartition(TOPIC, number) for number in range(partitions)]
    sink = FileSink({"connector.class": connector, "path": str(folder), **keys}, places, reports=reports)
    try:
        yield sink
    finally:
        sink.task.stop()


def data_files(folder: Path) -> list[Path]:
    """Return the files of a folder in order, without the commit log."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and "_sluiceway" not in path.parts)


def names(folder: Path) -> list[str]:
    """Return the paths of the files below ``topics``."""
    return [str(path.relative_to(folder / "topics")) for path in data_files(folder)]


def read(path: Path) -> list[Any]:
    """Return a file's rows as dicts, or as texts."""
    if path.suffix == ".parquet":
        return pq.ParquetFile(path).read().to_pylist()
    if path.suffix == ".orc":
        return orc.ORCFile(path).read().to_pylist()
    if path.suffix == ".avro":
        with path.open("rb") as file:
            return list(fastavro.reader(file))
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if ".csv" in path.suffixes:
        return list(csv.DictReader(data.decode().splitlines()))
    lines = data.decode().split("\n")[:-1]
    return [json.loads(line) for line in lines] if ".json" in path.suffixes else list(lines)


def all_rows(folder: Path) -> list[Any]:
    return [found for path in data_files(folder) for found in read(path)]


def ids(folder: Path) -> list[int]:
    """Return the sorted ids of all rows; lines of text are structs in Java's form."""
    rows = all_rows(folder)
    return sorted(int(_ID.findall(found)[0] if isinstance(found, str) else found["id"]) for found in rows)
