"""Finds deleted rows by comparing the primary keys read so far with those in the table. Runs on the executors.

Deletions while no task runs are not found: the keys are kept only as long as the task lives.
"""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

Key = tuple[Any, ...]

_BATCH = 1000


class SeenKeys:
    """The primary keys of a table's rows, in a temporary file, so that memory stays constant."""

    def __init__(self) -> None:
        self._scans = 0
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # "" is a temporary file
        self._file.execute("pragma journal_mode = off")
        self._file.execute("create table seen (key blob primary key, scan integer) without rowid")
        self._file.execute("begin")

    def add(self, keys: Iterable[Key]) -> None:
        """Add the keys of rows that were read, during a scan of all keys or between two scans."""
        self._file.executemany(
            "insert into seen values (?, ?) on conflict (key) do update set scan = excluded.scan",
            ((pickle.dumps(key, protocol=5), self._scans + 1) for key in keys),
        )

    def missing(self) -> Iterator[list[Key]]:
        """End a scan, in which ``add`` was given all keys of the table: yield and forget the keys that are gone."""
        self._scans += 1
        gone = "from seen where scan < ?"
        while rows := self._file.execute(f"select key {gone} limit {_BATCH}", (self._scans,)).fetchall():
            self._file.executemany("delete from seen where key = ?", rows)
            yield [pickle.loads(row[0]) for row in rows]  # noqa: S301 (written by this class)
        self._file.execute("commit")
        self._file.execute("begin")

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
