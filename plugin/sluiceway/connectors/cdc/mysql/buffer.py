"""A bounded buffer between the thread that reads the database and the task's thread, which returns records from ``poll``."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from sluiceway.api import EncodedRecords, Offset, SourceRecord

_TAKEN_SHARE = 4


class StoppedError(Exception):
    """The task stops; the reading thread must end."""


class RecordBuffer:
    """Records in the order of the log, with the offsets that are safe when all records before them are sent.

    Args:
        limit: the most records that wait.
        byte_limit: the most bytes of log events that wait.
        wake: called after records were added to an empty buffer.
    """

    def __init__(self, limit: int, byte_limit: int, wake: Callable[[], None]) -> None:
        self._items: deque[tuple[Sequence[SourceRecord] | EncodedRecords, Offset | None, int]] = deque()
        self._limit = limit
        self._byte_limit = byte_limit
        self._wake = wake
        self._changed = threading.Condition()
        self._count = self._bytes = 0
        self._error: BaseException | None = None
        self._stopped = False
        self.offset: Offset | None = None
        """The offset after all records that ``take`` has returned; the task's thread reads it."""
        self.trouble: str | None = None
        """Why the reading thread tries again at the moment; None while it reads."""

    def put(self, records: Sequence[SourceRecord] | EncodedRecords, size: int = 0, offset: Offset | None = None) -> None:
        """Add records; wait while the buffer is full. ``offset`` is the position between transactions after them.

        Raises:
            StoppedError: the task stops.
        """
        with self._changed:
            while not self._stopped and self._count and (self._count >= self._limit or self._bytes >= self._byte_limit):
                self._changed.wait()
            if self._stopped:
                raise StoppedError
            if not len(records) and self._items and not len(self._items[-1][0]):
                self._items[-1] = (records, offset, 0)  # only the newest offset counts
                return
            was_empty = not self._count
            self._items.append((records, offset, size))
            self._count += len(records)
            self._bytes += size
        if was_empty and len(records):
            self._wake()

    def is_drained(self) -> bool:
        """Whether neither records nor an error wait."""
        return not self._items and self._error is None

    def fail(self, error: BaseException) -> None:
        """Make ``take`` raise an error after all records before it."""
        with self._changed:
            self._error = error
        self._wake()

    def stop(self) -> None:
        """End all waits, and refuse further records."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def is_stopped(self) -> bool:
        return self._stopped

    def wait_stopped(self, seconds: float) -> bool:
        """Wait until the task stops, at most so long; return whether it stops."""
        with self._changed:
            return self._stopped or self._changed.wait_for(lambda: self._stopped, seconds)

    def take(self, limit: int) -> list[SourceRecord] | EncodedRecords:
        """Return about ``limit`` records, possibly none, of at most about a quarter of the buffer's bytes; or a batch of them.

        Raises the reading thread's error once the buffer is empty.
        """
        taken: list[Any] = []
        left = self._byte_limit // _TAKEN_SHARE
        with self._changed:
            while self._items and len(taken) < limit and left > 0:
                if taken and isinstance(self._items[0][0], EncodedRecords):
                    break
                records, offset, size = self._items.popleft()
                left -= size
                self._count -= len(records)
                self._bytes -= size
                if offset is None and len(records):  # within a transaction
                    offset = (records if isinstance(records, EncodedRecords) else records[-1]).source_offset
                if offset is not None:
                    self.offset = offset
                if isinstance(records, EncodedRecords):
                    self._changed.notify_all()
                    return records
                taken += records
            if taken:
                self._changed.notify_all()
            elif self._error is not None:
                raise self._error
        return taken
