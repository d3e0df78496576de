"""Threads that read ranges."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.parallel import ParallelReader
from sluiceway.connectors.cdc.ranges import Key, Range, RangePlanner, TableToRead
from sluiceway.connectors.cdc.tables import Row

_SIZE = 10


class _Database:
    """A table of the keys 1 to 100. A session is its number."""

    def __init__(self, fails: int | None = None) -> None:
        self.closed: set[int] = set()
        self.cancelled = threading.Event()
        self._fails = fails

    def open(self, number: int) -> int:
        return number

    def bounds(self, _session: int, _table: TableToRead) -> tuple[int, int]:
        return 1, 100

    def boundary(self, _session: int, _table: TableToRead, _after: Key | None, _rows: int) -> Key | None:
        return None

    def read(self, _session: int, found: Range) -> Iterator[list[Row]]:
        first = int(found.after[0]) + 1 if found.after else 1
        last = int(found.last[0]) if found.last else 100
        for key in range(first, last + 1):
            if key == self._fails:
                raise ValueError("a bad row")
            yield [(key,)]

    def cancel(self, _session: int) -> None:
        self.cancelled.set()

    def close(self, session: int) -> None:
        self.closed.add(session)


def _reader(database: _Database, threads: int) -> ParallelReader[int]:
    table = TableToRead(TableId("public", "t"), ("k",), 100, integer=True)
    planner: RangePlanner[int] = RangePlanner([table], _SIZE, database.bounds, database.boundary)
    return ParallelReader(planner, database, threads)


@pytest.mark.parametrize("threads", [1, 4])
def test_all_rows_are_read_once(threads: int) -> None:
    database = _Database()
    batches = list(_reader(database, threads).batches())
    rows: list[Any] = [row[0] for _, batch in batches for row in batch or ()]
    assert sorted(rows) == list(range(1, 101))
    assert sum(batch is None for _, batch in batches) == 10
    assert database.closed == set(range(threads))


def test_an_error_of_a_thread_ends_the_snapshot() -> None:
    database = _Database(fails=50)
    with pytest.raises(ValueError, match="a bad row"):
        list(_reader(database, 3).batches())
    assert database.closed == {0, 1, 2}


def test_closing_ends_threads_that_wait_for_space() -> None:
    database = _Database()
    batches = _reader(database, 2).batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]  # it is a generator
    assert database.cancelled.is_set()
    assert database.closed == {0, 1}
