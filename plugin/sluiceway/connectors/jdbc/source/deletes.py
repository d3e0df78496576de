"""Finds deleted rows: the primary keys seen so far, kept in a temporary file, against those that are there now. Executor.

Rows that are deleted while no task runs are not noticed: what was seen is known as long as the task lives.
"""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

Key = tuple[Any, ...]

_BATCH = 1000


class SeenKeys:
    """The keys of a table's rows, on disk, so that memory stays flat. Each look through the table has a number."""

    def __init__(self) -> None:
        self._looks = 0
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # "" is a temporary file
        self._file.execute("pragma journal_mode = off")
        self._file.execute("create table seen (key blob primary key, look integer) without rowid")
        self._file.execute("begin")

    def add(self, keys: Iterable[Key]) -> None:
        """Take keys of rows that were read; they count as there at the look that is going on, and at the next one if none is."""
        self._file.executemany(
            "insert into seen values (?, ?) on conflict (key) do update set look = excluded.look",
            ((pickle.dumps(key, protocol=5), self._looks + 1) for key in keys),
        )

    def missing(self) -> Iterator[list[Key]]:
        """End a look for which ``add`` was given all keys of the table: give those that are gone, and forget them.

        The first look only learns what there is.
        """
        self._looks += 1
        gone = "from seen where look < ?"
        while rows := self._file.execute(f"select key {gone} limit {_BATCH}", (self._looks,)).fetchall():
            self._file.executemany("delete from seen where key = ?", rows)
            yield [pickle.loads(row[0]) for row in rows]  # noqa: S301 (what we wrote ourselves)
        self._file.execute("commit")
        self._file.execute("begin")

    def close(self) -> None:
        self._file.close()
