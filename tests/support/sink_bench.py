"""Measures sinks from outside: CPU time and memory of their processes, and the rows in their targets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.dataset as ds
import pyarrow.parquet as pq


class FailedRunError(Exception):
    """A sink did not do its work, or its target does not have what it should."""


class Meter(threading.Thread):
    """CPU time of processes and their children since its creation, and their highest PSS."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__(daemon=True)
        self._pids = pids
        self._ended = threading.Event()
        self._begin = self.cpu_seconds()
        self.pss = 0.0

    def _family(self) -> list[psutil.Process]:
        found = [psutil.Process(pid) for pid in self._pids]
        return [member for each in found for member in (each, *each.children(recursive=True))]

    def cpu_seconds(self) -> float:
        return sum(each.cpu_times().user + each.cpu_times().system for each in self._family())

    def run(self) -> None:
        while True:
            try:
                self.pss = max(self.pss, sum(each.memory_full_info().pss for each in self._family()) / (1 << 20))
            except psutil.Error:  # a process has ended
                return
            if self._ended.wait(1.0):
                return

    def stop(self) -> float:
        """Return the CPU seconds used since the creation."""
        used = self.cpu_seconds() - self._begin
        self._ended.set()
        self.join()
        return used


class Lines:
    """Counts the lines of growing files, reading only what is new."""

    def __init__(self, folder: Path, pattern: str) -> None:
        self._folder, self._pattern = folder, pattern
        self._read: dict[Path, tuple[int, int]] = {}

    def __call__(self) -> int:
        for path in self._folder.rglob(self._pattern):
            position, count = self._read.get(path, (0, 0))
            with path.open("rb") as file:
                file.seek(position)
                while block := file.read(1 << 22):
                    position, count = position + len(block), count + block.count(b"\n")
            self._read[path] = position, count
        return sum(count for _, count in self._read.values())

    def check(self, expected: int) -> None:
        """Raise FailedRunError unless the ids of all lines are those expected."""
        ids = [
            int(line.partition(b'"id":' if b'"id"' in line else b"id=")[2].split(b",")[0].rstrip(b"}\n")) for line in self._all()
        ]
        check_ids(len(ids), len(set(ids)), expected)

    def _all(self) -> Iterator[bytes]:
        for path in self._read:
            with path.open("rb") as file:
                yield from file


class ParquetFiles:
    """Counts the rows of complete Parquet files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[Path, int] = {}

    def __call__(self) -> int:
        for path in self._folder.rglob("*.parquet"):
            if path not in self._rows:
                self._rows[path] = pq.read_metadata(path).num_rows
        return sum(self._rows.values())

    def check(self, expected: int) -> None:
        ids = ds.dataset([str(path) for path in self._rows]).to_table(columns=["id"]).column("id")
        check_ids(len(ids), len(ids.unique()), expected)


class IcebergTable:
    """Counts the rows of an Iceberg table by its newest metadata file."""

    def __init__(self, warehouse: Path) -> None:
        self._warehouse = warehouse

    def metadata(self) -> dict[str, Any]:
        """Return the table's newest metadata; empty if there is no table yet."""
        newest = self._newest()
        try:
            return dict(json.loads(newest.read_bytes())) if newest is not None else {}
        except ValueError:  # half written
            return {}

    def _newest(self) -> Path | None:
        files = list(self._warehouse.rglob("*.metadata.json"))
        return max(files, key=lambda path: path.stat().st_mtime_ns) if files else None

    def __call__(self) -> int:
        found = self.metadata()
        current = [each for each in found.get("snapshots", ()) if each["snapshot-id"] == found.get("current-snapshot-id")]
        return max((int(each["summary"]["total-records"]) for each in current), default=0)

    def check(self, expected: int) -> None:
        from pyiceberg.table import StaticTable

        ids = StaticTable.from_metadata(str(self._newest())).scan(selected_fields=("id",)).to_arrow().column("id")
        check_ids(len(ids), len(ids.unique()), expected)


class UpsertedTable(IcebergTable):
    """Counts the records that a sink of ours has read into an Iceberg table, by the offsets in the table."""

    def __call__(self) -> int:
        properties = self.metadata().get("properties", {})
        return sum(int(value) for name, value in properties.items() if name.startswith("sluiceway.offset."))


Target = Lines | ParquetFiles | IcebergTable


def check_ids(rows: int, distinct: int, expected: int) -> None:
    if (rows, distinct) != (expected, expected):
        raise FailedRunError(f"the target has {rows:,} rows with {distinct:,} ids instead of {expected:,}")
