"""Splits the tables of an initial snapshot into ranges of keys, and keeps which ranges are done. No I/O of its own."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental_offsets import INITIAL_SIGNAL, Request

log = logging.getLogger(__name__)

PROGRESS = "sluiceway_snapshot"
"""The key of source offsets with the progress of an initial snapshot, beside Debezium's keys, which ignores it."""

Session = TypeVar("Session")
Key = tuple[Any, ...]


class TableToRead(NamedTuple):
    """A table of a snapshot. ``rows`` is an estimate; a table without ``key`` is read as a whole.

    ``integer`` says that the key is one column of whole numbers, whose ranges need no query.
    """

    table: TableId
    key: tuple[str, ...] = ()
    rows: int = 0
    integer: bool = False


class Range(NamedTuple):
    """Rows with keys greater than ``after`` and not greater than ``last``. None is no bound: the last range has no ``last``."""

    table: int
    number: int
    after: Key | None
    last: Key | None


Bounds = Callable[[Any, TableToRead], "tuple[int, int] | None"]
"""Returns the smallest and the largest key of a table with an integer key, by a session."""
Boundary = Callable[[Any, TableToRead, "Key | None", int], "Key | None"]
"""Returns the key of the n-th row after a key, or None if there are not so many, by a session."""


@dataclass
class RangePlanner(Generic[Session]):
    """Hands out ranges of about ``size`` rows, table by table, to the threads that read them. Thread-safe."""

    tables: Sequence[TableToRead]
    size: int
    bounds: Bounds
    boundary: Boundary
    _table: int = 0
    _number: int = 0
    _after: Key | None = None
    _numbers: deque[int] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, session: Session) -> Range | None:
        """Return the next range, or None if all are handed out. The session may be asked for a key."""
        with self._lock:
            if self._table >= len(self.tables):
                return None
            last = self._last(session, self.tables[self._table])
            found = Range(self._table, self._number, self._after, last)
            if last is None:
                self._table, self._number, self._numbers = self._table + 1, 0, None
            else:
                self._number += 1
            self._after = last
            return found

    def _last(self, session: Session, table: TableToRead) -> Key | None:
        if not table.key or table.rows <= self.size:
            return None
        if not table.integer:
            last = self.boundary(session, table, self._after, self.size)
            if last is None or last != self._after:
                return last
            log.warning("The server does not compare the key %s of %s as it sorts it: rows may be repeated.", last, table.table)
            return None
        if self._numbers is None:
            found = self.bounds(session, table)
            self._numbers = deque(() if found is None else _steps(*found, -(-table.rows // self.size)))
        return (str(self._numbers.popleft()),) if self._numbers else None


def _steps(first: int, last: int, count: int) -> list[int]:
    """Return the inner ends of ``count`` ranges of the same width."""
    width = (last - first) // count + 1
    return [first + width * number - 1 for number in range(1, count) if first + width * number - 1 < last]


@dataclass
class _TableProgress:
    """The keys up to which all rows are done, and the ranges that are done beyond them, by number."""

    after: Key | None = None
    ranges: int = 0
    total: int | None = None
    done: dict[int, Range] = field(default_factory=dict)


class Progress:
    """The finished ranges of a snapshot. One thread uses it."""

    def __init__(self, tables: Sequence[TableToRead]) -> None:
        self._tables = tables
        self._started: dict[int, _TableProgress] = {}
        self._finished: set[int] = set()
        self._state: dict[str, Any] | None = None

    def finish(self, found: Range) -> bool:
        """Note that all rows of a range are done. Return whether those of its table are."""
        table = self._started.setdefault(found.table, _TableProgress())
        table.done[found.number] = found
        if found.last is None:
            table.total = found.number + 1
        while table.ranges in table.done:
            table.after = table.done.pop(table.ranges).last
            table.ranges += 1
        self._state = None
        if table.ranges != table.total:
            return False
        del self._started[found.table]
        self._finished.add(found.table)
        return True

    def state(self) -> dict[str, Any]:
        """Return the part of source offsets with the progress; nothing if no range is done."""
        if not self._finished and not self._started:
            return {}
        if self._state is None:
            finished = [str(self._tables[index].table) for index in sorted(self._finished)]
            ranges = {str(self._tables[index].table): _written(table) for index, table in self._started.items()}
            self._state = {PROGRESS: json.dumps({"finished": finished, "ranges": ranges}, separators=(",", ":"))}
        return self._state


def _written(table: _TableProgress) -> list[Any]:
    """Return the ranges that are not done: pairs of keys."""
    missing, after = [], table.after
    for number in sorted(table.done):
        found = table.done[number]
        if found.after != after:
            missing.append([_encoded(after), _encoded(found.after)])
        after = found.last
    return [*missing, [_encoded(after), None]] if after is not None or not table.done else missing


def rest(offset: Mapping[str, Any], tables: Sequence[TableToRead]) -> tuple[list[Request], list[TableId]] | None:
    """Return what an interrupted snapshot has not read: as requests of an incremental one, and tables without key.

    None if the offset has no such progress.
    """
    text = offset.get(PROGRESS)
    if not text:
        return None
    progress = json.loads(text)
    finished = set(progress["finished"])
    requests: list[Request] = []
    whole: list[TableId] = []
    for each in tables:
        name = str(each.table)
        if name in finished:
            continue
        if not each.key:
            whole.append(each.table)
            continue
        for after, last in progress["ranges"].get(name, [[None, None]]):
            start = _decoded(after)
            requests.append(Request(each.table, INITIAL_SIGNAL, after=start, sent=start, maximum=_decoded(last)))
    return requests, whole


def _encoded(key: Key | None) -> list[Any] | None:
    return None if key is None else [{"hex": value.hex()} if isinstance(value, bytes) else value for value in key]


def _decoded(key: list[Any] | None) -> list[Any] | None:
    return None if key is None else [bytes.fromhex(value["hex"]) if isinstance(value, dict) else value for value in key]
