"""The targets of a test's sinks: their configs, and the offsets, rows and orphans in them."""

from __future__ import annotations

import functools
import json
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from sluiceway.api import TopicPartition
from sluiceway.connectors.files.filesystem import FileSystem
from sluiceway.connectors.files.filesystem.hdfs import HdfsFileSystem, HdfsLogin
from sluiceway.connectors.files.filesystem.local import LocalFileSystem
from sluiceway.connectors.tables.store import UnreachableError
from support.file_sinks import read
from support.table_sink import Lake

Offsets = dict[int, int]
"""The next offset of each partition."""
Row = tuple[int, int]
"""Partition and offset of a record, as they are in its value."""

#: Seconds between two commits.
COMMIT_SECONDS = 1.0
#: Age in seconds from which a start of a table sink deletes files that were never committed.
ORPHAN_SECONDS = 12

FILES = {
    "parquet": "ParquetSink",
    "orc": "OrcSink",
    "avro": "AvroFileSink",
    "csv": "CsvSink",
    "json": "JsonFileSink",
    "text": "TextSink",
}
TABLES = ("iceberg", "delta")
FORMATS = (*FILES, *TABLES)

_SCHEMA = {
    "type": "struct",
    "fields": [{"field": name, "type": "int64", "optional": False} for name in ("task", "seqno")],
}
_ENVELOPE = f'{{"schema":{json.dumps(_SCHEMA)},"payload":%s}}'
_OFFSETS_IN_NAME = re.compile(r"\+(\d+)\+(\d+)\+(\d+)\.")
_JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "true", "key.converter": "StringConverter"}
_TEXT = dict.fromkeys(("key.converter", "value.converter"), "StringConverter")


def value(task: int, seqno: int) -> str:
    """Return the value of a record whose partition is ``task`` and whose offset is ``seqno``."""
    return _ENVELOPE % f'{{"task":{task},"seqno":{seqno}}}'


class Output(Protocol):
    """The data of one sink."""

    @property
    def format(self) -> str: ...

    def config(self, name: str, topic: str) -> dict[str, str]:
        """Return the sink's config."""

    def offsets(self) -> Offsets:
        """Return the offsets that are stored with the data: in names of files, in properties and transactions of tables."""

    def rows(self) -> Counter[Row]:
        """Return how often each record is there."""

    def orphans(self) -> int:
        """Return the number of files that no commit names; while the sink runs, those that it writes now count too."""


@dataclass
class Files:
    """Files below a local folder or an HDFS URL."""

    format: str
    url: str
    topic: str = ""

    def config(self, name: str, topic: str) -> dict[str, str]:
        self.topic = topic
        return {
            "connector.class": FILES[self.format],
            "path": self.url,
            "flush.size": "500",
            "rotate.schedule.interval.ms": str(int(COMMIT_SECONDS * 1000)),
            "timezone": "UTC",
            "retry.backoff.ms": "500",
            **(_TEXT if self.format == "text" else _JSON),
        }

    @functools.cached_property
    def _fs(self) -> FileSystem:
        return HdfsFileSystem(HdfsLogin(self.url)) if self.url.startswith("hdfs:") else LocalFileSystem()

    @property
    def _root(self) -> str:
        return urlsplit(self.url).path

    def _paths(self) -> list[str]:
        folder, fs = f"{self._root}/topics/{self.topic}", self._fs
        return [f"{folder}/{each}/{name}" for each in fs.folders(folder) for name in fs.names(f"{folder}/{each}")]

    def offsets(self) -> Offsets:
        found: Offsets = {}
        for path in self._paths():
            match = _OFFSETS_IN_NAME.search(path)
            assert match is not None, path
            partition, _, last = map(int, match.groups())
            found[partition] = max(found.get(partition, 0), last + 1)
        return found

    def rows(self) -> Counter[Row]:
        fs = self._fs
        found: Counter[Row] = Counter()
        with tempfile.TemporaryDirectory() as folder:
            for path in self._paths():
                copy = Path(folder, Path(path).name)
                copy.write_bytes(fs.read(path))
                found.update(map(_row, read(copy)))
                copy.unlink()
        return found

    def orphans(self) -> int:
        fs, folders, found = self._fs, [f"{self._root}/_sluiceway"], 0
        while folders:
            folder = folders.pop()
            folders += [f"{folder}/{each}" for each in fs.folders(folder)]
            found += sum(name.endswith(".tmp") for name in fs.names(folder))
        return found


@dataclass
class Table:
    """An Iceberg or a Delta table in a local folder or below an HDFS URL. Iceberg's catalog is in the folder."""

    format: str
    folder: Path
    url: str = ""
    topic: str = ""
    _keys: Mapping[str, str] | None = None

    @property
    def _lake(self) -> Lake:
        return Lake(self.format, self.folder, url=self.url)

    def config(self, name: str, topic: str) -> dict[str, str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.topic = topic
        self._keys = {
            **self._lake.config(name),
            f"{self.format}.control.commit.interval-ms": str(int(COMMIT_SECONDS * 1000)),
            "sluiceway.unreachable.timeout.ms": str((ORPHAN_SECONDS - 2) * 1000),
            "sluiceway.orphans.age.ms": str(ORPHAN_SECONDS * 1000),
            **_JSON,
        }
        return {key: text for key, text in self._keys.items() if key != "name"}

    def _table(self) -> Any:
        assert self._keys is not None
        try:
            return self._lake.table(self._keys)
        except UnreachableError:  # delta-rs has waited for an answer that never comes; sinks try again too
            return self._lake.table(self._keys)

    def offsets(self) -> Offsets:
        table = self._table()
        if table is None:
            return {}
        found = {partition: table.offset(TopicPartition(self.topic, partition)) for partition in range(2)}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def rows(self) -> Counter[Row]:
        assert self._keys is not None
        if self._table() is None:
            return Counter()
        columns = self._lake.read(self._keys)
        return Counter(map(_row, columns.select(["task", "seqno"]).to_pylist()))

    def orphans(self) -> int:
        written, table = self._lake.files(), self._table()
        if table is None:
            return len(written)
        loaded = table._table
        paths: Sequence[str] = (
            loaded.inspect.files().column("file_path").to_pylist() if self.format == "iceberg" else loaded.file_uris()
        )
        return len(written - {Path(path).name for path in paths})


def outputs(formats: Sequence[str], folder: Path, url: str = "") -> list[Output]:
    """Return an output of each format, in a folder or below the URL of a folder in an HDFS."""
    assert set(formats) <= set(FORMATS), f"formats are {', '.join(FORMATS)}"
    return [
        Table(each, folder / each, f"{url}/{each}" if url else "")
        if each in TABLES
        else Files(each, f"{url}/{each}" if url else str(folder / each))
        for each in formats
    ]


def _row(found: Any) -> Row:
    fields = json.loads(found)["payload"] if isinstance(found, str) else found
    return int(fields["task"]), int(fields["seqno"])
