"""Keeps rows that are too many for memory in temporary files, until they are committed. Runs on executors."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa


class Spool:
    """Tables in a temporary folder, which ends with it."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: list[Path] = []

    def add(self, rows: pa.Table) -> None:
        """Write rows to a file."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="sluiceway-spool-")
        file = Path(self._folder.name) / str(len(self._files))
        with pa.OSFile(str(file), "wb") as stream, pa.ipc.new_file(stream, rows.schema) as writer:
            writer.write_table(rows)
        self._files.append(file)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows that were added, in their order."""
        for file in self._files:
            with pa.memory_map(str(file)) as stream:
                yield pa.ipc.open_file(stream).read_all()

    def clear(self) -> None:
        """Delete the files."""
        self._files = []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
