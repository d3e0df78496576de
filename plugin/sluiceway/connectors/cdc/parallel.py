"""Reads the ranges of a snapshot in threads, one database session each, into a bounded buffer."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from sluiceway.connectors.cdc.ranges import Range, RangePlanner, TableToRead

if TYPE_CHECKING:
    from sluiceway.connectors.cdc.column_rows import Rows

log = logging.getLogger(__name__)

Session = TypeVar("Session")

_BATCHES_PER_THREAD = 2
_JOIN_SECONDS = 10.0


class RangeReader(Protocol[Session]):
    """The database's part of a snapshot. Threads call it, each with sessions of its own."""

    def open(self, number: int) -> Session:
        """Return a session that sees the snapshot."""

    def bounds(self, session: Session, table: TableToRead) -> tuple[int, int] | None: ...

    def boundary(
        self, session: Session, table: TableToRead, after: tuple[Any, ...] | None, rows: int
    ) -> tuple[Any, ...] | None: ...

    def read(self, session: Session, found: Range) -> Iterator[Rows]:
        """Yield the rows of a range in batches of bounded size."""

    def cancel(self, session: Session) -> None:
        """End the query that another thread executes."""

    def close(self, session: Session) -> None: ...


class _ClosedError(Exception):
    """The snapshot was given up; a thread must end."""


class ParallelReader(Generic[Session]):
    """Reads all ranges of a planner with some threads. The caller's thread iterates over ``batches``, and closes."""

    def __init__(self, planner: RangePlanner[Session], reader: RangeReader[Session], threads: int) -> None:
        self._planner = planner
        self._reader = reader
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Range, Rows | None]] = deque()
        self._limit = threads * _BATCHES_PER_THREAD
        self._sessions: dict[int, Session] = {}
        self._error: BaseException | None = None
        self._closed = False
        self._running = threads
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"snapshot-{number}", daemon=True)
            for number in range(threads)
        ]

    def batches(self) -> Iterator[tuple[Range, Rows | None]]:
        """Yield the rows of ranges as they arrive, and None at the end of each range. Raises the threads' errors."""
        for thread in self._threads:
            thread.start()
        try:
            while (found := self._take()) is not None:
                yield found
        finally:
            self.close()

    def close(self) -> None:
        """End the threads and their sessions. Idempotent."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
            sessions = list(self._sessions.values())
        for session in sessions:
            self._reader.cancel(session)
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(_JOIN_SECONDS)

    def _take(self) -> tuple[Range, Rows | None] | None:
        with self._changed:
            while not self._waiting and self._running and self._error is None and not self._closed:
                self._changed.wait()
            if self._error is not None:
                raise self._error
            if not self._waiting:
                return None
            found = self._waiting.popleft()
            self._changed.notify_all()
            return found

    def _put(self, found: Range, rows: Rows | None) -> None:
        with self._changed:
            while len(self._waiting) >= self._limit and not self._closed:
                self._changed.wait()
            if self._closed:
                raise _ClosedError
            self._waiting.append((found, rows))
            self._changed.notify_all()

    def _run(self, number: int) -> None:
        error: BaseException | None = None
        try:
            self._read(number)
        except _ClosedError:
            pass
        except Exception as raised:  # noqa: BLE001 (the caller's thread raises it)
            error = raised
        with self._changed:
            self._running -= 1
            session = self._sessions.pop(number, None)
            if error is not None and not self._closed and self._error is None:
                self._error = error
            self._changed.notify_all()
        if session is not None:
            self._reader.close(session)

    def _read(self, number: int) -> None:
        session = self._reader.open(number)
        with self._changed:
            self._sessions[number] = session
        while not self._closed and (found := self._planner.next(session)) is not None:
            for rows in self._reader.read(session, found):
                self._put(found, rows)
            self._put(found, None)
